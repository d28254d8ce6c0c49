"""What the log refused until the end of its session, in a file beside it: put into the log by the next who opens it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import RecordRefused, SessionError
from tui_agent.files.private import write_private
from tui_agent.log.log import Log
from tui_agent.log.records import VERSION, Body, Record, body_of, checksum, growing, lasting
from tui_agent.store.events import Event, Growing, Lasting

#: The file in a session's folder.
NAME = "late"


class LeftBehind(Struct, frozen=True):
    """Events that come behind record `number`, and what was growing then."""

    number: int
    events: tuple[Lasting, ...]
    growing: tuple[Growing, ...]


class _Left(Struct, frozen=True):
    """The same as it is written: each event as its type and JSON."""

    number: int
    events: tuple[tuple[str, bytes], ...]
    growing: tuple[tuple[str, str, bytes], ...]


def leave(folder: Path, late: LeftBehind, *, sync: bool) -> None:
    """Write it down, as far as that is possible: nobody is left who could be told that it is not. Without `sync` it
    outlives this process, and not a power cut."""
    events = [(body.type, body.data) for body in map(_body, late.events) if body is not None]
    kept = [(event.key, body.type, body.data) for event in late.growing if (body := _body(event)) is not None]
    left = _Left(late.number, tuple(events), tuple(kept))
    with suppress(OSError):
        write_private(folder / NAME, msgspec.msgpack.encode(left), sync=sync)


def forget(folder: Path) -> None:
    """The log has all of it."""
    with suppress(OSError):
        os.unlink(folder / NAME)


def catch_up(log: Log) -> list[str]:
    """Put what was left behind into the log, and say what could not be read. Blocking.

    What of it is in the log already is passed over. Raises SessionError where the log refuses it again: it stays.
    """
    folder = log.path.parent
    try:
        left = msgspec.msgpack.decode((folder / NAME).read_bytes(), type=_Left)
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
    log.count()  # by then it is written, or refused
    if failures:
        raise failures[0]
    forget(folder)
    return lost


def _body(event: Event) -> Body | None:
    try:
        return body_of(event)
    except RecordRefused:
        return None


def _record(kind: str, data: bytes) -> Record:
    row = (0, 0.0, kind, VERSION, data)
    return Record(*row, checksum(*row))
