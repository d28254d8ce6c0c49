"""Salvages rows from the pages of a log that sqlite cannot open. Read-only.

Implements https://www.sqlite.org/fileformat2.html: the first byte identifies table leaf pages, column
types identify rows, and checksums validate records. Includes newer pages of the write-ahead file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tui_agent.log.database import from_sql
from tui_agent.log.records import Record, from_json

_PAGE_SIZE = 4096
_TABLE_LEAF = 0x0D
_WAL_HEADER, _FRAME_HEADER = 32, 24
#: Column sizes in bytes by serial type. Higher types are computed: even for blobs, odd for text.
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}


class RawRows(Struct, frozen=True):
    """Salvaged rows: records by number, growing events by key, and the session's metadata."""

    records: dict[int, Record]
    growing: dict[str, Record]
    meta: dict[str, Any]


def read_raw(path: Path) -> RawRows:
    """Every intact row of a log's pages. Raises OSError if the file is unreadable."""
    found = RawRows({}, {}, {})
    pages = _pages(path)
    for number in sorted(pages):
        for row_id, values in _rows(pages[number], number, pages):
            _take(found, row_id, values)
    return found


def _take(found: RawRows, row_id: int, values: list[Any]) -> None:
    match values:
        case [_, float() | int() as at, str(), int(), bytes(), int()]:
            record = Record(row_id, float(at), *values[2:])
            if record.is_whole:
                found.records[row_id] = record
        case [str() | bytes(), int(), float() | int() as at, str(), int(), bytes(), int()]:
            record = Record(values[1], float(at), *values[3:])
            key = from_sql(values[0])
            older = found.growing.get(key)
            if record.is_whole and (older is None or (older.number, older.at) <= (record.number, record.at)):
                found.growing[key] = record
        case [str(name), bytes(value)] if name.isidentifier():
            try:
                found.meta[name] = from_json(value)
            except ValueError:
                return


def _pages(path: Path) -> dict[int, bytes]:
    """The newest version of each page, by number from 1."""
    data = path.read_bytes()
    size = _page_size(data)
    pages = {at // size + 1: data[at : at + size] for at in range(0, len(data) - size + 1, size)}
    try:
        log = path.with_name(f"{path.name}-wal").read_bytes()
    except OSError:
        return pages
    salt = log[16:24]
    step = _FRAME_HEADER + size
    for at in range(_WAL_HEADER, len(log) - step + 1, step):
        if log[at + 8 : at + 16] == salt:  # Frames from before the last checkpoint have another salt.
            (number,) = struct.unpack(">I", log[at : at + 4])
            pages[number] = log[at + _FRAME_HEADER : at + step]
    return pages


def _page_size(data: bytes) -> int:
    size = int.from_bytes(data[16:18], "big")
    return size if 512 <= size <= 32768 and not size & (size - 1) else _PAGE_SIZE


def _rows(page: bytes, number: int, pages: dict[int, bytes]) -> Iterator[tuple[int, list[Any]]]:
    start = 100 if number == 1 else 0
    if page[start] != _TABLE_LEAF:
        return
    (count,) = struct.unpack(">H", page[start + 3 : start + 5])
    for place in range(start + 8, min(start + 8 + 2 * count, len(page) - 1), 2):
        (at,) = struct.unpack(">H", page[place : place + 2])
        try:
            length, at = _varint(page, at)
            row_id, at = _varint(page, at)
            yield row_id, _values(_payload(page, at, length, pages))
        except (IndexError, ValueError, struct.error, KeyError, UnicodeDecodeError):
            continue  # The other rows of a damaged page may be intact.


def _payload(page: bytes, at: int, length: int, pages: dict[int, bytes]) -> bytes:
    """A row's bytes, including its overflow pages."""
    usable = len(page)
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    if length <= most:
        return page[at : at + length]
    here = least + (length - least) % (usable - 4)
    here = least if here > most else here
    parts, left = [page[at : at + here]], length - here
    (following,) = struct.unpack(">I", page[at + here : at + here + 4])
    while left > 0:
        more = pages[following]
        (following,) = struct.unpack(">I", more[:4])
        parts.append(more[4 : 4 + left])
        left -= usable - 4
    return b"".join(parts)


def _values(payload: bytes) -> list[Any]:
    header, at = _varint(payload, 0)
    kinds = []
    while at < header:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values = []
    for kind in kinds:
        size = _FIXED[kind] if kind in _FIXED else (kind - 12) // 2
        part = payload[at : at + size]
        if kind < 0 or len(part) != size or kind in (10, 11):
            raise ValueError("not a row")
        values.append(_value(kind, part))
        at += size
    return values


def _value(kind: int, part: bytes) -> Any:
    match kind:
        case 0:
            return None
        case 7:
            return struct.unpack(">d", part)[0]
        case 8 | 9:
            return kind - 8
        case _ if kind < 7:
            return int.from_bytes(part, "big", signed=True)
    return part if kind % 2 == 0 else part.decode()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer of one to nine bytes, and the offset after it."""
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            return value, at + count + 1
    return value << 8 | data[at + 8], at + 9
