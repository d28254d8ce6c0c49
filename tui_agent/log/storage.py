"""Taking a session up: its log found, locked, repaired where it must be, and read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import Damaged, SessionError, TooNew
from tui_agent.files.blobs import Blobs
from tui_agent.log import catalog, database, directory, late, recovery
from tui_agent.log.lock import SessionLock
from tui_agent.log.log import Log
from tui_agent.log.snapshot import ReadState, load, read_state
from tui_agent.store.state import State

LAST = "last"


class Storage(Struct, frozen=True):
    """Where the session is kept: its log and lock (None where nothing can be), and the texts. `lost` are
    sentences about records that could not be read; `since` counts the records after the last snapshot."""

    log: Log | None
    lock: SessionLock | None
    blobs: Blobs
    folder: Path
    lost: tuple[str, ...] = ()
    number: int = 0
    since: int = 0


def begin(data: Path) -> tuple[Storage, State]:
    """A new session. Raises SessionError."""
    folder = directory.folder_of(data, directory.new_id())
    lock = SessionLock.take(folder)
    try:
        log = Log.create(folder / directory.LOG)
    except SessionError:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Storage(log, lock, _blobs(data, log), folder), State()


def take_up(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """A session to go on with, its log locked: an id, or `last` for the newest of the workspace.

    Raises `OpenElsewhere`, `TooNew`, or `SessionError` where there is none. One whose log is broken is put aside
    whole, and goes on with what could be read; one that cannot be opened at all goes on in a new session. The newest
    is passed over for a new one where it is too new.
    """
    folder = find(data, session, workspace)
    lock = SessionLock.take(folder)
    try:
        # what the snapshot has can go on in a new session
        if not (folder / directory.LOG).exists() and load(folder) is not None:
            raise Damaged(f"the log of the session {folder.name} is gone", database.RECOVER)
        log, read = _open(folder / directory.LOG)
        log, read = _caught_up(log, read)
    except Damaged:
        with lock:
            done = recovery.recovered_as(folder)
            name, sentence = (done, "") if done else recovery.recover(data, folder.name)
        kept, state = take_up(data, name, workspace)
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
    """The texts that a log speaks of: they are durable before its records are."""
    blobs = Blobs(data / "blobs")
    log.before_commit = blobs.sync_later()
    return blobs


def look_at(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """A session to be looked at only: nothing of it is written, whoever has it open. Raises SessionError."""
    folder = find(data, session, workspace)
    read = read_state(folder / directory.LOG)
    blobs = Blobs(_temporary(), behind=data / "blobs")
    return Storage(None, None, blobs, folder, read.lost, read.number), read.state


def in_memory(data: Path, session: str, workspace: Path) -> tuple[Storage, State]:
    """A session where nothing can be written: one that is there is read, and goes on in memory."""
    folder = _temporary()
    if not session:
        return Storage(None, None, Blobs(folder), folder), State()
    read = read_state(find(data, session, workspace) / directory.LOG)
    return Storage(
        None, None, Blobs(folder, behind=data / "blobs"), folder, read.lost, read.number
    ), read.state


def find(data: Path, session: str, workspace: Path) -> Path:
    """The folder of a session that is there. Raises SessionError."""
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
    lost += recovery.repair(path, suspect=True)  # it has rotted since it was closed in order
    try:
        return _read(path, lost)
    except sqlite3.Error as error:  # broken in a way that looking through it did not show
        raise Damaged(f"the session {path.parent.name} is damaged ({error})", database.RECOVER) from error


def _caught_up(log: Log, read: ReadState) -> tuple[Log, ReadState]:
    """With what the log had refused before."""
    if not (log.path.parent / late.NAME).exists():
        return log, read
    try:
        lost = late.catch_up(log)
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
    """The newest rehearsal that was started from this folder: its workspace is a temporary one that nobody knows."""
    entries = (entry for entry in catalog.list_sessions(data) if entry.started_from == str(folder))
    return next((entry for entry in entries if entry.workspace != str(folder)), None)


def _temporary() -> Path:
    """Where texts go when nothing can be kept: a folder that lives as long as the machine lets it. Where there is no
    room for that either it does not exist, and they stay in memory."""
    try:
        return Path(tempfile.mkdtemp(prefix="tui-agent-"))
    except OSError:
        return Path(os.devnull, "tui-agent")
