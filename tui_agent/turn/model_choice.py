"""The session's current model (dialect, window, planner), and efforts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, TypeVar, cast, get_args

from msgspec import Struct

from tui_agent.model.client import Abilities
from tui_agent.settings.schema import Effort, Settings
from tui_agent.store.events import ModelChosen
from tui_agent.store.state import ModelSlice, State

T = TypeVar("T")
UNKNOWN_WINDOW = 32_000


def chosen_model(settings: Settings, name: str, abilities: Abilities) -> ModelChosen:
    protocol: Literal["auto", "tools", "structured"] = settings.protocol
    if protocol == "auto":
        protocol = "tools" if abilities.tools else "structured"
    return ModelChosen(
        name=name,
        # With one slot, a planner request would evict the conversation from the server's cache; an unknown
        # server may have only one.
        planner=settings.planner_model
        or ("none" if abilities.slots == 1 or abilities.server == "local" else ""),
        protocol=protocol,
        window=settings.context.window or abilities.window or UNKNOWN_WINDOW,
        window_known=bool(settings.context.window or abilities.window),
        takes_schema=abilities.schema,
        priced=abilities.known,  # The table of windows has the prices.
        server=abilities.server,
        slots=abilities.slots,
    )


class RequestOptions(Struct, frozen=True):
    """`most` are tokens of a reply (0: unlimited); `temperature` None is the provider's default."""

    effort: Effort = "auto"
    most: int = 0
    temperature: float | None = None


def request_options(settings: Settings, state: State, name: str) -> RequestOptions:
    fitting = [options for options in settings.models.options if fnmatchcase(name, options.name)]
    temperature = _last((options.temperature for options in fitting), settings.temperature)
    effort = _last((options.effort for options in fitting), settings.effort)
    effort = _last((state.model.efforts.get(name), state.turn.effort), effort)
    most = _last((options.max_output for options in fitting), settings.max_output)
    return RequestOptions(effort, most, None if temperature < 0 else temperature)


def _last(values: Iterable[T | None], otherwise: T) -> T:
    return next((value for value in reversed(tuple(values)) if value is not None), otherwise)


def is_chosen(now: ModelSlice, event: ModelChosen) -> bool:
    return all(getattr(now, name) == getattr(event, name) for name in event.__struct_fields__)


EFFORTS: tuple[Effort, ...] = get_args(Effort)
_WRITTEN = re.compile(rf"/effort\s+({'|'.join(EFFORTS)})\s+(?=\S)", re.IGNORECASE)


def with_effort(effort: Effort | None, message: str) -> str:
    """Formats `/effort high Fix the parser`, as typed and queued."""
    return message if effort is None else f"/effort {effort} {message}"


def split_effort(text: str) -> tuple[Effort | None, str]:
    found = _WRITTEN.match(text)
    return (cast("Effort", found[1].lower()), text[found.end() :]) if found else (None, text)


def in_short(effort: Effort, level: str) -> str:
    """Returns `high`, or `high→medium` if the model uses another `level`; "" for auto or without levels."""
    if effort == "auto" or not level:
        return ""
    return effort if effort == level else f"{effort}→{level}"
