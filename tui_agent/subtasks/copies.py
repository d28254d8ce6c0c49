"""Folders of the sub-tasks' work copies, and removal of copies left by a crash."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from tui_agent.errors import ChildFailed, FileError, SessionError
from tui_agent.files.names import plain
from tui_agent.log import directory
from tui_agent.log.directory import SessionLock
from tui_agent.processes.child import ChildProcess

FOLDER = "worktrees"


def folder_for(data: Path, session: str, name: str) -> Path:
    """`name` may be any text. `session` is the id of the session whose lock protects the copy. Raises
    `SessionError` for an invalid id."""
    return data / FOLDER / directory.folder_of(data, session).name / plain(name)


def folder_of_run(data: Path, kept: Path, name: str) -> Path:
    """A sub-task has no lock, so its copies belong to the enclosing session."""
    sessions = data / "sessions"
    way = kept.relative_to(sessions).parts if kept.is_relative_to(sessions) else (kept.name,)
    return folder_for(data, way[0], "/".join((*way[1:], name)))


async def clear(data: Path, session: str, child: ChildProcess) -> None:
    """Call it before the first copy is made."""
    folder = data / FOLDER / session
    if session and await asyncio.to_thread(folder.is_dir):
        await _remove(folder, child)


async def clear_leftovers(data: Path, child: ChildProcess) -> None:
    """Removes the copies of all sessions not open in any process, including their git registrations.

    `child` may belong to any workspace. Failed removals are retried at the next start.
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
    try:
        with os.scandir(data / FOLDER) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # No copy was ever made.


def _lock_of(data: Path, session: str) -> AbstractContextManager[object] | None:
    try:
        folder = directory.folder_of(data, session)
        return SessionLock.take(folder) if folder.is_dir() else nullcontext()
    except SessionError:
        return None
