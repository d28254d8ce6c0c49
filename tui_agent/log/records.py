"""An event as a record of the log: its name, a version, its body as JSON, and a checksum over all of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.errors import RecordRefused
from tui_agent.store.events import GROWING, LASTING, Event, Growing, Lasting

#: The form of the records written here; an older program leaves out what has a higher one.
VERSION = 1
#: The most that one record may hold, in bytes: sqlite takes a little less than four times as much.
LARGEST = 256 * 2**20


class Record(Struct, frozen=True):
    """One row. `at` is in seconds since 1970; `number` counts from 1 (or is the one that a growing event follows)."""

    number: int
    at: float
    type: str
    version: int
    body: bytes
    checksum: int

    @property
    def is_whole(self) -> bool:
        """Whether it is as it was written; in a damaged file a column can hold anything."""
        return isinstance(self.body, bytes) and self.checksum == checksum(
            self.number, self.at, self.type, self.version, self.body
        )


class Body(Struct, frozen=True):
    """An event that is ready to be written."""

    type: str
    data: bytes


def checksum(number: int, at: float, type_name: str, version: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(f"{number} {at!r} {type_name} {version}".encode()))


def body_of(event: Event) -> Body:
    """The event as JSON, sure to be read again. Half characters, as in odd file names, are kept as escapes.

    Raises RecordRefused for what cannot be written or would not come back.
    """
    name = type(event).__name__
    try:
        data = as_json(event)
        if len(data) > LARGEST:
            raise ValueError(f"it takes {len(data) >> 20} MiB, {LARGEST >> 20} MiB is the most")
        _decode(data, type(event))
    except (ValueError, TypeError, RecursionError) as error:
        raise refusal(f"{name} of this session", error) from error
    return Body(name, data)


def refusal(what: str, error: Exception) -> RecordRefused:
    """Why something cannot be written down, for whoever wanted it written."""
    return RecordRefused(f"{what} cannot be kept ({error})", "leave out what is odd about it, then try again")


def as_json(value: object) -> bytes:
    """A value as JSON that `from_json` reads: half characters as escapes, numbers of any size. Raises ValueError or
    TypeError for what is not JSON."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(value)).encode()


def from_json(data: bytes) -> Any:
    """What `as_json` wrote. Raises ValueError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(data)


def lasting(record: Record) -> Lasting | str:
    """The event of a record, or a sentence why there is none."""
    found = _event(record, f"record {record.number}", LASTING)
    return found if isinstance(found, str | Lasting) else f"record {record.number} is out of place"


def growing(record: Record, key: str) -> Growing | str:
    """The event of a growing record, or a sentence why there is none."""
    found = _event(record, f"what was kept of {key!r}", GROWING)
    return found if isinstance(found, str | Growing) else f"what was kept of {key!r} is out of place"


def gaps(numbers: Iterable[int]) -> list[str]:
    """A sentence for each run of numbers that is missing between 1 and the last."""
    found, before = [], 0
    for number in numbers:
        found += gap(before, number)
        before = number
    return found


def gap(before: int, number: int) -> list[str]:
    """A sentence where numbers are missing between two that follow each other."""
    if number <= before + 1:
        return []
    if number == before + 2:
        return [f"record {before + 1} is missing"]
    return [f"records {before + 1} to {number - 1} are missing"]


def _event(record: Record, name: str, types: Mapping[str, type[Event]]) -> Event | str:
    if not record.is_whole:
        return f"{name} ({record.type}) is damaged and was left out"
    wanted = types.get(record.type)
    if wanted is None or record.version > VERSION:
        return f"{name} ({record.type}) was written by a newer version and was left out"
    try:
        return _decode(record.body, wanted)
    except (ValueError, RecursionError) as error:
        return f"{name} ({record.type}) cannot be read ({error}) and was left out"


def _decode(body: bytes, wanted: type[Event]) -> Event:
    try:
        return msgspec.json.decode(body, type=wanted)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.convert(json.loads(body), type=wanted)  # only this reader takes half characters
