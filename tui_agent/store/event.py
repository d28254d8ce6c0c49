"""What an event is. Three kinds.

A `Lasting` event is in the log before it is applied. A `Growing` event describes something that is still being made (a
half-typed message, an unsaved buffer, a reply as it streams): the newest one under each `key` is kept, about once a
second, until a lasting event takes its place. A `Passing` event is applied and forgotten: progress, countdowns, what
can be measured again.

A field that is added later has a default; an event that a newer version wrote is skipped by an older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from tui_agent.store.state import State


class Event(Struct, frozen=True, tag_field="type", tag=lambda name: name):
    """Base of all events; `type` on the wire is the class's name."""

    def apply(self, state: State) -> State:
        """The state after this event: the same events always give the same state, and slices that this one does not
        touch stay the same objects."""
        raise NotImplementedError


class Lasting(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """On disk before it is acknowledged."""


class Growing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """The newest under its key is kept within a second."""

    @property
    def key(self) -> str:
        raise NotImplementedError


class Passing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Applied, never kept."""
