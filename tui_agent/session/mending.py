"""A log that was not closed in order is looked through; one whose file is broken is put aside and written anew."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tui_agent.errors import Damaged
from tui_agent.files.names import shown
from tui_agent.session import database, records
from tui_agent.session.log import set_aside
from tui_agent.session.records import Record

#: Says how the log looked when it was last closed in order.
_CLOSED = "closed"
_NEW = ".new"


def sign(path: Path) -> None:
    """Note that the log was closed in order, as it is now: it need not be looked through the next time."""
    try:
        (path.parent / _CLOSED).write_text(_looks(path), encoding="ascii")
    except OSError:
        pass  # then it is looked through


def mend(path: Path, suspect: bool = False) -> list[str]:
    """Make sure that the log at `path` can be used; a sentence on each thing that was lost or put aside.

    One that was closed in order, and is not `suspect`, is not looked through.

    Raises SessionError where it is of a newer version, missing, or cannot be reached.
    """
    new = path.with_name(path.name + _NEW)
    if new.exists() and not path.exists():
        os.replace(new, path)  # the process died between putting the old one aside and this
    try:
        if _was_closed(path) and not suspect:
            return []
        broken, lost = look_through(path)
    except Damaged as error:
        aside = set_aside(path)
        database.make(path)
        return [f"{error.what}: it was put aside as {shown(str(aside))}, and a new one was begun"]
    if not broken:
        return lost
    kept = _write_anew(path, new)
    aside = set_aside(path)
    os.replace(new, path)
    name = f"the session {path.parent.name}"
    return [
        f"{name} is damaged: its {kept} readable records go on, the old log is {shown(str(aside))}",
        *lost,
    ]


def look_through(path: Path) -> tuple[bool, list[str]]:
    """Whether the file itself is broken, and a sentence for each record that is lost. Raises SessionError."""
    numbers: list[int] = []
    lost: list[str] = []
    with closing(database.connect_to_read(path)) as connection:
        broken = not _is_sound(connection)
        for record in database.read_records(connection):
            numbers.append(record.number)
            if not record.is_whole:
                lost.append(f"record {record.number} ({shown(str(record.type))}) is damaged and was left out")
    return broken, records.gaps(numbers) + lost


def _is_sound(connection: sqlite3.Connection) -> bool:
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        columns = {
            table: len(connection.execute(f"PRAGMA table_info({table})").fetchall()) for table in tables
        }
    except sqlite3.Error:
        return False
    return found and database.COLUMNS.items() <= columns.items()


def _write_anew(path: Path, new: Path) -> int:
    """A log with everything of this one that is whole, each record under its number; how many there are."""
    new.unlink(missing_ok=True)
    database.make(new)
    with (
        closing(database.connect_to_read(path)) as old,
        closing(sqlite3.connect(new, isolation_level=None)) as target,
    ):
        target.execute("BEGIN")
        kept = 0
        for record in database.read_records(old):
            if record.is_whole:
                target.execute("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?)", _row(record))
                kept += 1
        for key, record in _read_or_nothing(lambda: database.read_growing(old)):
            if record.is_whole:
                target.execute(
                    "INSERT OR IGNORE INTO growing VALUES (?, ?, ?, ?, ?, ?, ?)", (key, *_row(record))
                )
        for row in _read_or_nothing(lambda: old.execute("SELECT name, value FROM meta").fetchall()):
            target.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", row)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        new.with_name(new.name + suffix).unlink(missing_ok=True)
    return kept


def _read_or_nothing(read: Callable[[], list[Any]]) -> list[Any]:
    """The rows of a table that may be broken."""
    try:
        return read()
    except sqlite3.Error:
        return []


def _row(record: Record) -> tuple[object, ...]:
    return (record.number, record.at, record.type, record.version, record.body, record.checksum)


def _was_closed(path: Path) -> bool:
    try:
        return (path.parent / _CLOSED).read_text(encoding="ascii") == _looks(path)
    except (OSError, ValueError):
        return False


def _looks(path: Path) -> str:
    """Size and time of the log; whatever touches it changes them. Empty while parts of it are elsewhere."""
    if os.path.exists(f"{path}-wal"):
        raise OSError("parts of the log are still in its write-ahead file")
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
