"""What another process adds to a log, read as it comes: its records, and what grows there."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from tui_agent.log import database, records
from tui_agent.log.lock import holder
from tui_agent.store.events import Growing, Lasting


class LogNews(Struct, frozen=True):
    """What came since the last look, in order.

    `given_up` are keys of what grew and is kept no more, `lost` sentences on what could not be read.
    """

    events: tuple[Lasting | Growing, ...] = ()
    given_up: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()


class Tail:
    """The end of a log that somebody else writes, behind record `number`. Its methods block; nothing is written."""

    def __init__(self, path: Path, number: int) -> None:
        self._path = path
        self._number = number
        self._grown: dict[str, int] = {}
        self._looks: tuple[tuple[int, int], ...] | None = None

    def news(self) -> LogNews | None:
        """What came since the last call; None where the files are as they were. Raises `SessionError`."""
        looks = (_look(self._path), _look(f"{self._path}-wal"))
        if looks == self._looks:
            return None
        begun = time.time_ns()
        try:
            with closing(database.connect_to_read(self._path)) as connection:
                news = self._read(connection)
        except sqlite3.Error as error:
            raise database.refusal(self._path, error) from error
        # what is written so soon after may leave the same time: then it is looked at once more
        self._looks = looks if begun - max(changed for _, changed in looks) > database.SOON else None
        return news

    def is_written(self) -> bool:
        """Whether the process that had it open last is there."""
        owner = holder(self._path.parent)
        try:
            os.kill(owner, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass  # there, and another user's
        return owner > 0

    def _read(self, connection: sqlite3.Connection) -> LogNews:
        connection.execute("BEGIN")  # both tables as they were at one moment
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
        found.sort(key=lambda item: item[0])  # what grew follows the record that was the last one then
        events = tuple(event for _, event in found if not isinstance(event, str))
        return LogNews(events, given_up, tuple(event for _, event in found if isinstance(event, str)))


def _look(path: str | Path) -> tuple[int, int]:
    """Size and time of a file; zeros where it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
