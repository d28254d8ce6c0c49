"""Follows a log that another process writes: new records and growing events."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from tui_agent.log import database, records
from tui_agent.log.directory import holder
from tui_agent.store.events import Growing, Lasting


class LogNews(Struct, frozen=True):
    """In order. `given_up` are keys of deleted growing events, `lost` sentences about unreadable records."""

    events: tuple[Lasting | Growing, ...] = ()
    given_up: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()


class Tail:
    """From record `number`. Methods block; nothing is written."""

    def __init__(self, path: Path, number: int) -> None:
        self._path = path
        self._number = number
        self._grown: dict[str, int] = {}
        self._looks: tuple[tuple[int, int], ...] | None = None

    def news(self) -> LogNews | None:
        """None if the files are unchanged. Raises `SessionError`."""
        looks = (_size_and_time(self._path), _size_and_time(f"{self._path}-wal"))
        if looks == self._looks:
            return None
        begun = time.time_ns()
        try:
            with closing(database.connect_to_read(self._path)) as connection:
                news = self._read(connection)
        except sqlite3.Error as error:
            raise database.refusal(self._path, error) from error
        # A later write may leave the same time, so the files are checked once more.
        self._looks = looks if begun - max(changed for _, changed in looks) > database.SOON else None
        return news

    def is_written(self) -> bool:
        """Whether the last process that opened the log still exists."""
        owner = holder(self._path.parent)
        try:
            os.kill(owner, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass  # The process exists but belongs to another user.
        return owner > 0

    def _read(self, connection: sqlite3.Connection) -> LogNews:
        connection.execute("BEGIN")  # Read both tables from one transaction.
        found: list[tuple[int, Lasting | Growing | str]] = []
        for record in database.read_records(connection, self._number):
            found += [(record.number, gap) for gap in records.gap(self._number, record.number)]
            found.append((record.number, records.lasting(record)))
            self._number = record.number
        grown = dict(database.read_growing(connection))
        fresh = [key for key, record in grown.items() if self._grown.get(key) != record.checksum]
        found += [(grown[key].number, records.growing(grown[key], key)) for key in fresh]
        given_up = frozenset(self._grown.keys() - grown.keys())
        self._grown = {key: record.checksum for key, record in grown.items()}
        found.sort(key=lambda item: item[0])  # A growing event follows the record that was last at its time.
        events = tuple(event for _, event in found if not isinstance(event, str))
        return LogNews(events, given_up, tuple(event for _, event in found if isinstance(event, str)))


def _size_and_time(path: str | Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
