"""Events that the log refused until the session ended, in a file next to it. The next process that opens the
session appends them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import RecordRefused, SessionError
from tui_agent.files.private import write_private
from tui_agent.log.log import Log
from tui_agent.log.records import VERSION, EventBody, Record, body_of, checksum, growing, lasting
from tui_agent.store.events import Event, Growing, Lasting

#: File in a session's folder.
NAME = "late"


class RefusedEvents(Struct, frozen=True):
    """Events to append after record `number`, and the growing events of that time."""

    number: int
    events: tuple[Lasting, ...]
    growing: tuple[Growing, ...]


class _StoredEvents(Struct, frozen=True):
    """Serialized form: each event as its type and JSON."""

    number: int
    events: tuple[tuple[str, bytes], ...]
    growing: tuple[tuple[str, str, bytes], ...]


def store_refused(folder: Path, late: RefusedEvents, *, sync: bool) -> None:
    """Write the file if possible; errors cannot be reported at this stage. Without `sync` it survives this
    process but not a power failure."""
    events = [(body.type, body.data) for body in map(_body, late.events) if body is not None]
    kept = [(event.key, body.type, body.data) for event in late.growing if (body := _body(event)) is not None]
    left = _StoredEvents(late.number, tuple(events), tuple(kept))
    with suppress(OSError):
        write_private(folder / NAME, msgspec.msgpack.encode(left), sync=sync)


def forget(folder: Path) -> None:
    """Remove the file after all of it was appended."""
    with suppress(OSError):
        os.unlink(folder / NAME)


def append_stored(log: Log) -> list[str]:
    """Append the left-over events to the log. Returns sentences about unreadable events. Blocking.

    Skips events that the log already has. Raises SessionError if the log refuses them again; the file is
    then kept.
    """
    folder = log.path.parent
    try:
        left = msgspec.msgpack.decode((folder / NAME).read_bytes(), type=_StoredEvents)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return [f"what the log had refused cannot be read ({error})"]
    lost: list[str] = []
    there = max(0, log.count() - left.number)
    found = [lasting(_record(kind, data)) for kind, data in left.events[there:]]
    kept = [growing(_record(kind, data), key) for key, kind, data in left.growing]
    lost += [one for one in (*found, *kept) if isinstance(one, str)]
    failures: list[SessionError] = []
    log.append(
        [one for one in found if not isinstance(one, str)],
        lambda _: None,
        failures.append,
        keep=[one for one in kept if not isinstance(one, str)],
    )
    log.count()  # Wait until they are written or refused.
    if failures:
        raise failures[0]
    forget(folder)
    return lost


def _body(event: Event) -> EventBody | None:
    try:
        return body_of(event)
    except RecordRefused:
        return None


def _record(kind: str, data: bytes) -> Record:
    row = (0, 0.0, kind, VERSION, data)
    return Record(*row, checksum(*row))
