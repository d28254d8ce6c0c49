"""Base classes of events.

A `Lasting` event is logged before it is applied. A `Growing` event describes unfinished content (a draft, an
unsaved buffer, a streaming reply): the newest per `key` is stored about once a second until a lasting event
replaces it. A `Passing` event is never stored.

New fields need defaults; older versions skip unknown events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from tui_agent.store.state import State


class Event(Struct, frozen=True, tag_field="type", tag=lambda name: name):
    """Serialised with the class name as `type`."""

    def apply(self, state: State) -> State:
        """Deterministic; unaffected slices keep their identity."""
        raise NotImplementedError


class Lasting(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Logged before it is acknowledged."""


class Growing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Stored within a second, newest per key."""

    @property
    def key(self) -> str:
        raise NotImplementedError


class Passing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Never stored."""
