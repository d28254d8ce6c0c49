"""Checks logs after an unclean shutdown. Repairs a damaged log in a new file, or recovers it as a new
session."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tui_agent.errors import Damaged, SessionError
from tui_agent.files.names import display_path
from tui_agent.files.private import replace_private
from tui_agent.log import database, directory, records, snapshot
from tui_agent.log.log import set_aside
from tui_agent.log.raw_pages import RawRows, read_raw
from tui_agent.log.records import Record
from tui_agent.store import events as e

#: Marker file with the size and time of the log at its last clean shutdown.
_CLOSED = "closed"
_NEW = ".new"
#: File with the id of the session that a damaged session was recovered as.
_RECOVERED = "recovered"


def sign(path: Path) -> None:
    """Mark the log as cleanly closed, so that the next start skips the check."""
    try:
        replace_private(path.parent / _CLOSED, _looks(path).encode("ascii"), sync=False)
    except OSError:
        pass  # The next start checks it.


def repair(path: Path, suspect: bool = False) -> list[str]:
    """Makes the log at `path` usable. Returns a sentence for each loss. Skips the check of a cleanly closed
    log unless `suspect`.

    Raises Damaged if sqlite cannot open it and `recover` can read part of it; SessionError if it is of a
    newer version, missing or inaccessible.
    """
    new = path.with_name(path.name + _NEW)
    if new.exists() and not path.exists():
        os.replace(new, path)  # The process died between the two renames.
    try:
        if _was_closed(path) and not suspect:
            return []
        broken, lost = check_log(path)
    except Damaged as error:
        if can_be_recovered(path.parent):
            raise
        aside = set_aside(path)
        database.make(path)
        return [f"{error.what}: it was put aside as {display_path(str(aside))}, and a new one was begun"]
    if not broken:
        return lost
    kept = _write_anew(path, new)
    aside = set_aside(path)
    os.replace(new, path)
    name = f"the session {path.parent.name}"
    return [
        f"{name} is damaged: its {kept} readable records are kept, and the old log is {display_path(str(aside))}",
        *lost,
    ]


def can_be_recovered(folder: Path) -> bool:
    """Whether any part of an unopenable session is readable: pages of its log, or its snapshot."""
    try:
        return bool(read_raw(folder / directory.LOG).records) or snapshot.load(folder) is not None
    except OSError:
        return False


def recovered_as(folder: Path) -> str:
    """The id of the session that a damaged session was recovered as; "" if none exists."""
    try:
        name = (folder / _RECOVERED).read_text(encoding="utf-8")
        return name if directory.existing(folder.parent.parent, name) else ""
    except (OSError, ValueError, SessionError):
        return ""


def recover(data: Path, session: str) -> tuple[str, str]:
    """Copy the readable part of a damaged session to a new session; the old log is unchanged. Returns the new
    id and a sentence. Raises SessionError if writing fails."""
    old = directory.folder_of(data, session)
    name = directory.new_id()
    new = directory.folder_of(data, name)
    gone = not (old / directory.LOG).exists()
    found = RawRows({}, {}, {}) if gone else read_raw(old / directory.LOG)
    database.make(new / directory.LOG)
    with closing(sqlite3.connect(new / directory.LOG, isolation_level=None)) as target:
        target.execute("BEGIN")
        for record in found.records.values():
            target.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", _row(_renamed(record, name)))
        for key, record in found.growing.items():
            values = (database.to_sql(key), *_row(record))
            target.execute("INSERT INTO growing VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        for key, value in found.meta.items():
            target.execute("INSERT INTO meta VALUES (?, ?)", (key, records.as_json(value)))
        target.execute("COMMIT")
    kept = snapshot.load(old)
    if kept is not None:
        of = replace(kept.state, session=replace(kept.state.session, id=name))
        snapshot.save(new, replace(kept, state=of))
    try:
        replace_private(old / _RECOVERED, name.encode())
    except OSError:
        pass  # The next start repeats the recovery.
    if gone:
        said = f"the log of the session {session} is gone: what its snapshot has continues as {name}"
        return name, f"{said}, and what happened after it is lost"
    what = f"{len(found.records)} records" + (" and a snapshot" if kept is not None else "")
    return name, (
        f"the session {session} is damaged: {what} could be read and continue as {name}, "
        f"{display_path(str(old / directory.LOG))} stays as it is"
    )


def _renamed(record: Record, name: str) -> Record:
    """The record; the session's first event gets the new id."""
    event = records.lasting(record)
    if not isinstance(event, e.SessionStarted):
        return record
    data = records.body_of(replace(event, id=name)).data
    crc = records.checksum(record.number, record.at, record.type, record.version, data)
    return replace(record, body=data, checksum=crc)


def check_log(path: Path) -> tuple[bool, list[str]]:
    """Whether the file itself is damaged, and a sentence for each lost record. Raises SessionError."""
    numbers: list[int] = []
    lost: list[str] = []
    with closing(database.connect_to_read(path)) as connection:
        broken = not _is_sound(connection)
        for record in database.read_records(connection):
            numbers.append(record.number)
            if not record.is_whole:
                lost.append(
                    f"record {record.number} ({display_path(str(record.type))}) is damaged and was left out"
                )
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
    """Copies all intact records to a new log under their old numbers. Returns their count."""
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
        for record in read_raw(path).records.values():  # Intact pages may be unreachable in the tree.
            added = "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?)"
            kept += target.execute(added, _row(record)).rowcount
        for key, record in _read_or_nothing(lambda: database.read_growing(old)):
            if record.is_whole:
                target.execute(
                    "INSERT OR IGNORE INTO growing VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (database.to_sql(key), *_row(record)),
                )
        for row in _read_or_nothing(lambda: old.execute("SELECT name, value FROM meta").fetchall()):
            target.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", row)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        new.with_name(new.name + suffix).unlink(missing_ok=True)
    return kept


def _read_or_nothing(read: Callable[[], list[Any]]) -> list[Any]:
    """The rows of a possibly damaged table."""
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
    """Size and time of the log; "" while it has a write-ahead file."""
    if os.path.exists(f"{path}-wal"):
        raise OSError("parts of the log are still in its write-ahead file")
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
