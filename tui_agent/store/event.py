"""Base classes of events. A `Growing` event describes unfinished content (a draft, an unsaved buffer, a
streaming reply), until a lasting event replaces it. New fields need defaults; older versions skip unknown
events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from tui_agent.store.state import State


class Event(Struct, frozen=True, tag_field="type", tag=lambda name: name):
    def apply(self, state: State) -> State:
        """Deterministic; unaffected slices keep their identity."""
        raise NotImplementedError


class Lasting(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Logged before it is applied."""


class Growing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """The newest per key is stored about once a second."""

    @property
    def key(self) -> str:
        raise NotImplementedError


class Passing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Never stored."""
