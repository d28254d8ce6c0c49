"""Session folders, ids, catalog entries, and the lock that limits the writing of a session to one process."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import NotKept, OpenElsewhere, SessionError, TooNew
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import make_private, open_private, runs
from tui_agent.files.text import size_in_words
from tui_agent.log import database
from tui_agent.log.database import RawRows, read_raw
from tui_agent.store.state import State

LOCK = "lock"
#: Maximum wait for the lock of a dead owner, and pause between tries, in seconds.
_PATIENCE, _PAUSE = 2.0, 0.01
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


class SessionLock:
    """The right to write the session, until `release` or the exit of the process."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: Path) -> SessionLock:
        """Creates the folder if missing. Raises SessionError, which names the owning process."""
        try:
            make_private(folder)
            descriptor = open_private(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError as error:
            raise _not_kept(folder, error) from error
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                # Of a dead owner, a process that it was starting holds the lock until it runs its own program.
                # An owner on another machine counts as alive.
                process, machine = holder(folder)
                if not (machine or runs(str(process)) or time.monotonic() > deadline):
                    time.sleep(_PAUSE)
                    continue
                os.close(descriptor)
                if error.errno not in _BUSY:
                    raise _not_kept(folder, error) from error
                who = f"process {process}" if process else "another process"
                who += f" on {machine}" if machine else ""
                raise OpenElsewhere(
                    f"the session {folder.name} is open in {who}",
                    f"close it there, or continue a copy: `tui-agent sessions fork {folder.name}`",
                    folder.name,
                ) from error
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)
        return cls(folder, descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(folder: Path) -> tuple[int, str]:
    """Process id, 0 if unknown; and name of its machine, "" for this one."""
    try:
        words = read_start(folder / LOCK, 300).decode(errors="replace").split()
    except OSError:
        words = []
    process = whole_number(words[0]) if words else 0
    machine = words[1] if process and len(words) > 1 else ""
    return process, "" if machine == os.uname().nodename else machine


def _not_kept(folder: Path, error: OSError) -> SessionError:
    if os.path.lexists(lock := folder / LOCK) and not lock.is_file():
        return NotKept(
            f"the session {folder.name} cannot be saved, {display_path(str(lock))} is not a regular file",
            "move it away, then open the session again",
        )
    return database.not_made(folder, error)


LOG = "log.sqlite3"
SNAPSHOT = "snapshot"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SessionEntry(Struct, frozen=True):
    """`updated` is a Unix time, `size` is in bytes. `rank` increases with each write, even if the clock is
    set back (see `Ranks`).

    `set_meta` stored `name`, `workspace`, `started_from`, `turns` and `first_request`. `note` is the
    reason why the session cannot be opened, or "".
    """

    id: str
    name: str = ""
    workspace: str = ""
    started_from: str = ""
    updated: float = 0.0
    turns: int = 0
    first_request: str = ""
    size: int = 0
    note: str = ""
    rank: float = 0.0

    @property
    def size_in_words(self) -> str:
        return size_in_words(self.size)

    @property
    def title(self) -> str:
        return " ".join((self.name or self.first_request or "nothing said yet").split())


def new_id(data: Path) -> str:
    """Sorts by creation time (UTC): `20261121-221500-ab12`."""
    while True:
        session = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
        if not os.path.lexists(folder_of(data, session)):  # False without access, which the lock reports
            return session


def folder_of(data: Path, session: str) -> Path:
    """Raises SessionError for an invalid id."""
    if not _ID.fullmatch(session):
        raise SessionError(
            f"{display_path(session)} is not a session id", "`tui-agent sessions list` shows them"
        )
    return data / "sessions" / session


def existing(data: Path, session: str) -> Path:
    """Raises SessionError."""
    folder = folder_of(data, session)
    there = folder.is_dir() and (any(folder.glob(f"{LOG}*")) or (folder / SNAPSHOT).is_file())
    if not there:
        raise SessionError(f"There is no session {session}", "`tui-agent sessions list --all` shows them")
    return folder


def read_entry(folder: Path) -> SessionEntry | None:
    """Returns None if the log is missing or unreadable."""
    path = folder / LOG
    try:
        with closing(database.connect_to_read(path)) as connection:
            return entry_of(folder, database.read_meta(connection))
    except (SessionError, sqlite3.Error, ValueError, OSError) as error:
        return broken_entry(folder, error)


def broken_entry(folder: Path, error: Exception) -> SessionEntry | None:
    """Returns a partial entry; None if nothing is readable."""
    from tui_agent.log import snapshot

    newer = isinstance(error, TooNew)
    kept = snapshot.load(folder)
    try:
        raw = read_raw(folder / LOG)
    except OSError:
        if (folder / LOG).is_file():
            return None
        raw = RawRows({}, {}, {})
    name = database.other_file(folder / LOG)
    if name and not (name == LOG and kept):
        note = f"its {name} is not a regular file: move it away"
    elif newer or raw.records or kept:
        note = "of a newer version" if newer else "damaged; resume it to recover the readable part"
    else:
        return None
    found = kept.state if kept else State()
    meta = {"workspace": found.session.workspace, "name": found.session.name, "turns": found.turn.number}
    meta |= {name: value for name, value in raw.meta.items() if name in SessionEntry.__struct_fields__}
    try:
        return replace(entry_of(folder, meta), note=note)
    except msgspec.MsgspecError:
        return SessionEntry(folder.name, workspace=found.session.workspace, size=_size(folder), note=note)


def entry_of(folder: Path, meta: dict[str, Any]) -> SessionEntry:
    """Raises OSError, or msgspec's error for invalid metadata."""
    known = {name: meta[name] for name in SessionEntry.__struct_fields__ if name in meta}
    known |= {"id": folder.name, "size": _size(folder)}
    known.setdefault("updated", (folder if not (folder / LOG).exists() else folder / LOG).stat().st_mtime)
    entry = msgspec.convert(known, type=SessionEntry)
    return replace(entry, rank=max(entry.rank, entry.updated))  # Older versions store only the time.


def folders(data: Path) -> list[Path]:
    return [data / "sessions" / name for name in ids(data)]


def ids(data: Path) -> list[str]:
    try:
        with os.scandir(data / "sessions") as entries:
            return [entry.name for entry in entries if _ID.fullmatch(entry.name) and entry.is_dir()]
    except OSError:
        return []


def _size(folder: Path) -> int:
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())
