"""What an event is. Three kinds.

A `Lasting` event is in the log before it is folded. A `Growing` event describes something that is still being made (a
half-typed message, an unsaved buffer, a reply as it streams): the newest one under each `key` is kept, about once a
second, until a lasting event takes its place. A `Passing` event is folded and forgotten: progress, countdowns, what can
be measured again.

A field that is added later has a default; an event that a newer version wrote is skipped by an older one.
"""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, frozen=True, tag_field="type", tag=lambda name: name):
    """Base of all events; `type` on the wire is the class's name."""


class Lasting(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """On disk before it is acknowledged."""


class Growing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """The newest under its key is kept within a second."""

    @property
    def key(self) -> str:
        raise NotImplementedError


class Passing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Folded, never kept."""
