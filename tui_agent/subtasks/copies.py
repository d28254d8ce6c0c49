"""Where the work copies of a session's sub-tasks lie, and the removal of those that a crash left behind."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from tui_agent.errors import ChildFailed, FileError, SessionError
from tui_agent.files.names import plain
from tui_agent.log import directory
from tui_agent.log.lock import SessionLock
from tui_agent.processes.child import ChildProcess

FOLDER = "worktrees"


def folder_for(data: Path, session: str, name: str) -> Path:
    """Where the copy of that name lies, below the folder for data; the name may be any text.

    `session` is the id of the one whose lock says that the copy is in use. Raises SessionError for what is not an id.
    """
    return data / FOLDER / directory.folder_of(data, session).name / plain(name)


def folder_of_run(data: Path, kept: Path, name: str) -> Path:
    """Where the copy of that name lies for the session that is kept in a folder: one of its own, or a sub-task's below
    that. A sub-task has no lock, so its copies lie with those of the session that it is part of."""
    sessions = data / "sessions"
    way = kept.relative_to(sessions).parts if kept.is_relative_to(sessions) else (kept.name,)
    return folder_for(data, way[0], "/".join((*way[1:], name)))


async def clear(data: Path, session: str, child: ChildProcess) -> None:
    """Remove what an earlier life of a session left; it is ours, and has made no copy in this life."""
    folder = data / FOLDER / session
    if session and await asyncio.to_thread(folder.is_dir):
        await _remove(folder, child)


async def clear_leftovers(data: Path, child: ChildProcess) -> None:
    """Remove the copies of sessions that no living process has open, from disk and from their repositories.

    `child` is that of any workspace. What cannot be removed stays for the next start.
    """
    for folder in await asyncio.to_thread(_folders, data):
        lock = await asyncio.to_thread(_lock_of, data, folder.name)
        if lock is not None:
            with lock:
                await _remove(folder, child)


async def _remove(folder: Path, child: ChildProcess) -> None:
    with suppress(ChildFailed, FileError):
        await child.ask("git_worktrees_remove", {"folder": str(folder)})


def _folders(data: Path) -> list[Path]:
    """The folders of sessions that have copies."""
    try:
        with os.scandir(data / FOLDER) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # nothing was ever copied


def _lock_of(data: Path, session: str) -> AbstractContextManager[object] | None:
    """What keeps a session closed that nobody has open; None while somebody has. One that was deleted needs none."""
    try:
        folder = directory.folder_of(data, session)
        return SessionLock.take(folder) if folder.is_dir() else nullcontext()
    except SessionError:
        return None
