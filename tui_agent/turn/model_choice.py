"""The model that answers, as a session knows it: its dialect, its window, who plans for it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from tui_agent.model.client import Abilities
from tui_agent.settings.schema import Effort, Settings
from tui_agent.store.events import ModelChosen
from tui_agent.store.state import ModelSlice, State

#: What a model holds whose window nobody knows, in tokens.
UNKNOWN_WINDOW = 32_000


def chosen(settings: Settings, name: str, abilities: Abilities) -> ModelChosen:
    """The model with the dialect it is spoken to in: `auto` takes `tools` where it can call functions."""
    protocol: Literal["tools", "structured"]
    if settings.protocol == "auto":
        protocol = "tools" if abilities.tools else "structured"
    else:
        protocol = settings.protocol
    return ModelChosen(
        name=name,
        # with one place for requests a planner's would throw out the conversation
        planner=settings.planner_model or ("none" if abilities.slots == 1 else ""),
        protocol=protocol,
        window=settings.context.window or abilities.window or UNKNOWN_WINDOW,
        window_known=bool(settings.context.window or abilities.window),
        takes_schema=abilities.schema,
        priced=abilities.known,  # windows and prices are in one table
        server=abilities.server,
        slots=abilities.slots,
    )


class Asking(Struct, frozen=True):
    """How a model is asked: effort, the most tokens of a reply (0: no limit), temperature (None: the provider's)."""

    effort: Effort = "auto"
    most: int = 0
    temperature: float | None = None


def asking(settings: Settings, state: State, name: str) -> Asking:
    """How a model is asked now: as chosen for this turn, for it in this session, in its options, or in general."""
    most, temperature = settings.max_output, settings.temperature
    effort: Effort = settings.effort
    for options in settings.models.options:
        if fnmatchcase(name, options.name):
            effort = effort if options.effort is None else options.effort
            most = most if options.max_output is None else options.max_output
            temperature = temperature if options.temperature is None else options.temperature
    effort = state.model.efforts.get(name, effort)
    effort = effort if state.turn.effort is None else state.turn.effort
    return Asking(effort, most, None if temperature < 0 else temperature)


def is_chosen(now: ModelSlice, event: ModelChosen) -> bool:
    """Whether the state says all this already."""
    return all(getattr(now, name) == getattr(event, name) for name in event.__struct_fields__)
