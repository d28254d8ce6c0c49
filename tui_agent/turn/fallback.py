"""Which model answers: the one that was chosen or, where it cannot be reached, the next of `models.fallbacks`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from tui_agent.errors import ModelError
from tui_agent.model.client import Abilities
from tui_agent.settings.schema import Settings
from tui_agent.store.events import ModelChosen
from tui_agent.turn.desk import Desk

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
        planner=settings.planner_model,
        protocol=protocol,
        window=settings.context.window or abilities.window or UNKNOWN_WINDOW,
        window_known=bool(settings.context.window or abilities.window),
        takes_schema=abilities.schema,
        priced=abilities.known,  # windows and prices are in one table
    )


async def next_model(desk: Desk, tried: Collection[str]) -> ModelChosen | None:
    """The first fallback that was not tried in this turn; None where there is none. A recording has no other model."""
    if desk.state().session.replay:
        return None
    for name in desk.settings.models.fallbacks:
        if name in tried:
            continue
        try:
            return chosen(desk.settings, name, await desk.model.abilities(name))
        except ModelError:
            continue  # a name that nobody knows does not help
    return None
