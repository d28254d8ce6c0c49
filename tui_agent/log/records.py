"""Log records: event type, version, body as JSON, and a checksum."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.errors import RecordRefused
from tui_agent.store.events import GROWING, LASTING, Event, Growing, Lasting

#: Older programs skip records of higher versions.
VERSION = 1
#: In bytes. Sqlite needs almost four times as much memory.
LARGEST = 256 * 2**20


class Record(Struct, frozen=True):
    """`at` is a Unix time; `number` counts from 1. For a growing event it is the number of the record before
    it.
    """

    number: int
    at: float
    type: str
    version: int
    body: bytes
    checksum: int

    @property
    def is_whole(self) -> bool:
        """Whether the columns have valid types; in a damaged file they may not."""
        return isinstance(self.body, bytes) and self.checksum == checksum(
            self.number, self.at, self.type, self.version, self.body
        )


class EventBody(Struct, frozen=True):
    type: str
    data: bytes


def checksum(number: int, at: float, type_name: str, version: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(f"{number} {at!r} {type_name} {version}".encode()))


def body_of(event: Event) -> EventBody:
    """Verifies that the event can be read back. Escapes lone surrogates, as in odd file names. Raises
    RecordRefused.
    """
    name = type(event).__name__
    try:
        data = as_json(event)
        if len(data) > LARGEST:
            raise ValueError(f"it takes {len(data) >> 20} MiB, {LARGEST >> 20} MiB is the most")
        _decode(data, type(event))
    except (ValueError, TypeError, RecursionError) as error:
        raise refusal(f"{name} of this session", error) from error
    return EventBody(name, data)


def refusal(what: str, error: Exception) -> RecordRefused:
    return RecordRefused(
        f"{what} cannot be saved ({error})", "remove the part that cannot be saved, and try again"
    )


def as_json(value: object) -> bytes:
    """Escapes lone surrogates; takes integers of any size. Raises ValueError or TypeError."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(value)).encode()


def from_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(data)


def lasting(record: Record) -> Lasting | str:
    """Returns the event, or a sentence about the error."""
    found = _event(record, f"record {record.number}", LASTING)
    return found if isinstance(found, str | Lasting) else f"record {record.number} is out of place"


def lasting_after(number: int, found: Iterable[Record], lost: list[str]) -> Iterator[tuple[float, Lasting]]:
    """With Unix times; `lost` gets a sentence for each missing or unreadable record."""
    for record in found:
        lost += gap(number, record.number)
        number = record.number
        event = lasting(record)
        if isinstance(event, str):
            lost.append(event)
        else:
            yield record.at, event


def growing(record: Record, key: str) -> Growing | str:
    found = _event(record, f"what was kept of {key!r}", GROWING)
    return found if isinstance(found, str | Growing) else f"what was kept of {key!r} is out of place"


def gaps(numbers: Iterable[int]) -> list[str]:
    found, before = [], 0
    for number in numbers:
        found += gap(before, number)
        before = number
    return found


def gap(before: int, number: int) -> list[str]:
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
        return msgspec.convert(json.loads(body), type=wanted)  # Only `json` accepts lone surrogates.
