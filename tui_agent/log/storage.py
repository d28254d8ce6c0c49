"""Opens sessions: finds, locks, repairs and reads their logs.

Checks a log after an unclean shutdown. A damaged log is repaired in a new file, or recovered as a new
session.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import Damaged, SessionError, TooNew
from tui_agent.files.blobs import Blobs
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import make_temporary, replace_private
from tui_agent.log import catalog, database, directory, journal, records, snapshot
from tui_agent.log.database import RawRows, read_raw
from tui_agent.log.directory import SessionLock
from tui_agent.log.log import Log, set_aside
from tui_agent.log.records import Record
from tui_agent.log.snapshot import ReadState, load, read_state
from tui_agent.store import events as e
from tui_agent.store.state import State

#: Marker file: size and time of the log at its last clean shutdown.
_CLOSED = "closed"
_NEW = ".new"
_RECOVERED = "recovered"


def mark_closed(path: Path) -> None:
    """Lets the next start skip the check."""
    try:
        replace_private(path.parent / _CLOSED, _looks(path).encode("ascii"), sync=False)
    except OSError:
        pass


def repair(path: Path, suspect: bool = False) -> list[str]:
    """Returns a sentence for each loss. Skips the check of a cleanly closed log unless `suspect`.

    Raises Damaged if sqlite cannot open it and `recover` can read part of it; SessionError if it is of a
    newer version, missing or inaccessible.
    """
    new = path.with_name(path.name + _NEW)
    if new.exists() and not path.exists():
        os.replace(new, path)
    if not suspect:
        with suppress(OSError, ValueError):
            if read_start(path.parent / _CLOSED, 200).decode("ascii") == _looks(path):
                return []
    try:
        broken, lost = check_log(path)
    except Damaged as error:
        if can_be_recovered(path.parent):
            raise
        aside = set_aside(path)
        database.make(path)
        return [f"{error.what}: it was moved to {display_path(str(aside))}, and a new one was created"]
    if not broken:
        return lost
    new.unlink(missing_ok=True)
    with closing(database.connect_to_read(path)) as old:
        whole = (record for record in database.read_records(old) if record.is_whole)
        growing = _read_or_nothing(lambda: database.read_growing(old))
        kept = _fill(
            new,
            chain(whole, read_raw(path).records.values()),  # Some can be unreachable in the tree.
            [pair for pair in growing if pair[1].is_whole],
            _read_or_nothing(lambda: old.execute("SELECT name, value FROM meta").fetchall()),
        )
    aside = set_aside(path)
    os.replace(new, path)
    name = f"the session {path.parent.name}"
    return [
        f"{name} is damaged: its {kept} readable records were recovered, and the old log is {display_path(str(aside))}",
        *lost,
    ]


def can_be_recovered(folder: Path) -> bool:
    try:
        return bool(read_raw(folder / directory.LOG).records) or snapshot.load(folder) is not None
    except OSError:
        return False


def recovered_as(folder: Path) -> str:
    try:
        name = read_start(folder / _RECOVERED, 200).decode()
        return name if directory.existing(folder.parent.parent, name) else ""
    except (OSError, ValueError, SessionError):
        return ""


def recover(data: Path, session: str) -> tuple[str, str]:
    """Copies the readable part to a new session; the old log is unchanged. Returns the new id and a
    sentence. Raises SessionError.
    """
    old = directory.folder_of(data, session)
    name = directory.new_id(data)
    new = directory.folder_of(data, name)
    gone = not (old / directory.LOG).is_file()
    found = RawRows({}, {}, {}) if gone else read_raw(old / directory.LOG)
    _fill(
        new / directory.LOG,
        (_renamed(record, name) for record in found.records.values()),
        found.growing.items(),
        ((key, records.as_json(value)) for key, value in found.meta.items()),
    )
    kept = snapshot.load(old)
    if kept is not None:
        of = replace(kept.state, session=replace(kept.state.session, id=name))
        snapshot.save(new, replace(kept, state=of))
    try:
        replace_private(old / _RECOVERED, name.encode())
    except OSError:
        pass
    if gone:
        said = f"the log of the session {session} is gone: what its snapshot has continues as {name}"
        return name, f"{said}, and later events are lost"
    what = f"{len(found.records)} records" + (" and a snapshot" if kept is not None else "")
    return name, (
        f"the session {session} is damaged: {what} could be read and continue as {name}, "
        f"{display_path(str(old / directory.LOG))} stays as it is"
    )


def _renamed(record: Record, name: str) -> Record:
    event = records.lasting(record)
    if not isinstance(event, e.SessionStarted):
        return record
    data = records.body_of(replace(event, id=name)).data
    crc = records.checksum(record.number, record.at, record.type, record.version, data)
    return replace(record, body=data, checksum=crc)


def check_log(path: Path) -> tuple[bool, list[str]]:
    """Returns whether the file itself is damaged, and a sentence for each lost record. Raises SessionError."""
    numbers: list[int] = []
    lost: list[str] = []
    with closing(database.connect_to_read(path)) as connection:
        try:
            is_sound = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
            schema = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            columns = {
                table: len(connection.execute(f"PRAGMA table_info({table})").fetchall())
                for (table,) in schema.fetchall()
            }
            broken = not (is_sound and database.COLUMNS.items() <= columns.items())
        except sqlite3.Error:
            broken = True
        for record in database.read_records(connection):
            numbers.append(record.number)
            if not record.is_whole:
                lost.append(
                    f"record {record.number} ({display_path(str(record.type))}) is damaged and was left out"
                )
    return broken, records.gaps(numbers) + lost


def _fill(
    path: Path,
    kept: Iterable[Record],
    growing: Iterable[tuple[str, Record]],
    meta: Iterable[tuple[str, bytes]],
) -> int:
    """Creates a log with these rows; of rows with one key, the first. Returns the number of records."""
    database.make(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        target.execute("BEGIN")
        into_records = "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?)"
        count = sum(target.execute(into_records, _row(record)).rowcount for record in kept)
        rows = ((database.to_sql(key), *_row(record)) for key, record in growing)
        target.executemany("INSERT OR IGNORE INTO growing VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        target.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", meta)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return count


def _read_or_nothing(read: Callable[[], list[Any]]) -> list[Any]:
    try:
        return read()
    except sqlite3.Error:
        return []


def _row(record: Record) -> tuple[object, ...]:
    return (record.number, record.at, record.type, record.version, record.body, record.checksum)


def _looks(path: Path) -> str:
    if os.path.exists(f"{path}-wal"):
        raise OSError("parts of the log are still in its write-ahead file")
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


LAST = "last"


class Storage(Struct, frozen=True):
    """Log and lock (None if nothing can be stored) and texts. `lost` holds sentences about unreadable
    records; `since` is the number of records after the last snapshot.
    """

    log: Log | None
    lock: SessionLock | None
    blobs: Blobs
    folder: Path
    lost: tuple[str, ...] = ()
    number: int = 0
    since: int = 0


def begin(data: Path) -> tuple[Storage, State]:
    """Creates a session. Raises SessionError."""
    folder = directory.folder_of(data, directory.new_id(data))
    lock = SessionLock.take(folder)
    try:
        log = Log.create(folder / directory.LOG)
    except SessionError:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Storage(log, lock, _blobs(data, log), folder), State()


def open_session_log(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """`session` is an id, or `last` for the workspace's newest session. Raises `OpenElsewhere`, `TooNew`, or
    `SessionError`.

    A damaged log is set aside and its readable part continues; if it cannot be opened at all, a new
    session continues it. `last` starts a new session if the newest is of a newer version.
    """
    folder = find(data, session, workspace)
    lock = SessionLock.take(folder)
    try:
        if not (folder / directory.LOG).is_file() and load(folder) is not None:
            raise Damaged(f"the log of the session {folder.name} is gone", database.RECOVER)
        log, read = _open(folder / directory.LOG)
        if (folder / journal.REFUSED).exists():
            try:
                lost = journal.append_refused(log)
                read = _with_more(read_state(log.path), [*read.lost, *lost])
            except SessionError as error:
                still = f"events that the log had refused are still refused ({error})"
                read = _with_more(read, [*read.lost, still])
    except Damaged:
        with lock:
            done = recovered_as(folder)
            name, sentence = (done, "") if done else recover(data, folder.name)
        kept, state = open_session_log(data, name, workspace)
        return replace(kept, lost=(*filter(None, [sentence]), *kept.lost)), state
    except TooNew as error:
        lock.release()
        if session != LAST:
            raise
        kept, state = begin(data)
        return replace(kept, lost=(f"{error}. A new one was created",)), state
    except SessionError:
        lock.release()
        raise
    return Storage(log, lock, _blobs(data, log), folder, read.lost, read.number, read.folded), read.state


def _blobs(data: Path, log: Log) -> Blobs:
    blobs = Blobs(data / "blobs")
    log.before_commit = blobs.sync_later()
    return blobs


def in_memory(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    try:
        folder = Path(make_temporary())
    except OSError:
        folder = Path(os.devnull, "tui-agent")
    if not session:
        return Storage(None, None, Blobs(folder), folder), State()
    read = read_state(find(data, session, workspace) / directory.LOG)
    return Storage(
        None, None, Blobs(folder, behind=data / "blobs"), folder, read.lost, read.number
    ), read.state


def find(data: Path, session: str, workspace: Path) -> Path:
    """Raises SessionError."""
    if session != LAST:
        return directory.existing(data, session)
    newest = catalog.newest(data, workspace)
    if newest is None:  # one begun here that now has another workspace
        here = str(workspace)
        entries = (entry for entry in catalog.list_sessions(data) if entry.started_from == here)
        newest = next((entry for entry in entries if entry.workspace != here), None)
    if newest is None:
        raise SessionError(
            f"There is no session for {workspace} yet", "start one with `tui-agent`, without --continue"
        )
    return directory.folder_of(data, newest.id)


def _open(path: Path) -> tuple[Log, ReadState]:
    lost = repair(path)
    try:
        log, read = _read(path, lost)
        if lost or not read.lost:
            return log, read
        log.close()
    except (Damaged, sqlite3.Error):
        pass
    lost += repair(path, suspect=True)
    try:
        return _read(path, lost)
    except sqlite3.Error as error:
        raise Damaged(f"the session {path.parent.name} is damaged ({error})", database.RECOVER) from error


def _read(path: Path, lost: list[str]) -> tuple[Log, ReadState]:
    read = read_state(path)
    return Log.open(path, at_least=read.number), _with_more(read, lost)


def _with_more(read: ReadState, lost: list[str]) -> ReadState:
    return replace(read, lost=tuple(dict.fromkeys([*lost, *read.lost])))
