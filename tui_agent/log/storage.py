"""Opens sessions: finds, locks, repairs and reads their logs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import Damaged, SessionError, TooNew
from tui_agent.files.blobs import Blobs
from tui_agent.log import catalog, database, directory, recovery, refused_events
from tui_agent.log.lock import SessionLock
from tui_agent.log.log import Log
from tui_agent.log.snapshot import ReadState, load, read_state
from tui_agent.store.state import State

LAST = "last"


class Storage(Struct, frozen=True):
    """Storage of a session: log and lock (None if nothing can be stored) and texts. `lost` holds sentences
    about unreadable records; `since` is the number of records after the last snapshot."""

    log: Log | None
    lock: SessionLock | None
    blobs: Blobs
    folder: Path
    lost: tuple[str, ...] = ()
    number: int = 0
    since: int = 0


def begin(data: Path) -> tuple[Storage, State]:
    """Create a session. Raises SessionError."""
    folder = directory.folder_of(data, directory.new_id())
    lock = SessionLock.take(folder)
    try:
        log = Log.create(folder / directory.LOG)
    except SessionError:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Storage(log, lock, _blobs(data, log), folder), State()


def open_session_log(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """Open and lock a session: an id, or `last` for the workspace's newest session.

    Raises `OpenElsewhere`, `TooNew`, or `SessionError` if it does not exist. A damaged log is set aside
    and its readable part continues; if it cannot be opened at all, a new session continues it. `last`
    starts a new session if the newest is of a newer version.
    """
    folder = find(data, session, workspace)
    lock = SessionLock.take(folder)
    try:
        # The snapshot can be recovered as a new session.
        if not (folder / directory.LOG).exists() and load(folder) is not None:
            raise Damaged(f"the log of the session {folder.name} is gone", database.RECOVER)
        log, read = _open(folder / directory.LOG)
        log, read = _caught_up(log, read)
    except Damaged:
        with lock:
            done = recovery.recovered_as(folder)
            name, sentence = (done, "") if done else recovery.recover(data, folder.name)
        kept, state = open_session_log(data, name, workspace)
        return _with_lost(kept, (*filter(None, [sentence]), *kept.lost)), state
    except TooNew as error:
        lock.release()
        if session != LAST:
            raise
        kept, state = begin(data)
        return _with_lost(kept, (f"{error}. A new one was begun",)), state
    except SessionError:
        lock.release()
        raise
    return Storage(log, lock, _blobs(data, log), folder, read.lost, read.number, read.folded), read.state


def _blobs(data: Path, log: Log) -> Blobs:
    """The blob store of a log. Blobs are durable before the records that refer to them."""
    blobs = Blobs(data / "blobs")
    log.before_commit = blobs.sync_later()
    return blobs


def open_read_only(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """Open a session for reading only, even if another process writes it. Raises SessionError."""
    folder = find(data, session, workspace)
    read = read_state(folder / directory.LOG)
    blobs = Blobs(_temporary(), behind=data / "blobs")
    return Storage(None, None, blobs, folder, read.lost, read.number), read.state


def in_memory(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """A session without storage; an existing session is read and continued in memory."""
    folder = _temporary()
    if not session:
        return Storage(None, None, Blobs(folder), folder), State()
    read = read_state(find(data, session, workspace) / directory.LOG)
    return Storage(
        None, None, Blobs(folder, behind=data / "blobs"), folder, read.lost, read.number
    ), read.state


def find(data: Path, session: str, workspace: Path) -> Path:
    """The folder of an existing session. Raises SessionError."""
    if session != LAST:
        return directory.existing(data, session)
    newest = catalog.newest(data, workspace) or _begun_here(data, workspace)
    if newest is None:
        raise SessionError(
            f"There is no session for {workspace} yet", "start one with `tui-agent`, without --continue"
        )
    return directory.folder_of(data, newest.id)


def _open(path: Path) -> tuple[Log, ReadState]:
    lost = recovery.repair(path)
    try:
        log, read = _read(path, lost)
        if lost or not read.lost:
            return log, read
        log.close()
    except (Damaged, sqlite3.Error):
        pass
    lost += recovery.repair(path, suspect=True)  # The file was damaged after a clean shutdown.
    try:
        return _read(path, lost)
    except sqlite3.Error as error:  # Damage that the check did not find.
        raise Damaged(f"the session {path.parent.name} is damaged ({error})", database.RECOVER) from error


def _caught_up(log: Log, read: ReadState) -> tuple[Log, ReadState]:
    """Append events that the log refused earlier."""
    if not (log.path.parent / refused_events.NAME).exists():
        return log, read
    try:
        lost = refused_events.append_stored(log)
        return log, _with_more(read_state(log.path), [*read.lost, *lost])
    except SessionError as error:
        return log, _with_more(read, [*read.lost, f"what the log had refused is still refused ({error})"])


def _read(path: Path, lost: list[str]) -> tuple[Log, ReadState]:
    read = read_state(path)
    return Log.open(path, at_least=read.number), _with_more(read, lost)


def _with_more(read: ReadState, lost: list[str]) -> ReadState:
    return ReadState(read.state, read.number, read.folded, tuple(dict.fromkeys([*lost, *read.lost])))


def _with_lost(kept: Storage, lost: tuple[str, ...]) -> Storage:
    return Storage(kept.log, kept.lock, kept.blobs, kept.folder, lost, kept.number, kept.since)


def _begun_here(data: Path, folder: Path) -> directory.SessionEntry | None:
    """The newest rehearsal started from this folder. Its workspace is temporary, so it cannot be matched by
    workspace."""
    entries = (entry for entry in catalog.list_sessions(data) if entry.started_from == str(folder))
    return next((entry for entry in entries if entry.workspace != str(folder)), None)


def _temporary() -> Path:
    """A folder for texts if nothing can be stored; the system deletes it. If its creation fails, texts stay
    in memory."""
    try:
        return Path(tempfile.mkdtemp(prefix="tui-agent-"))
    except OSError:
        return Path(os.devnull, "tui-agent")
