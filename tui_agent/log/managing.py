"""Renaming and deleting sessions that nobody has open."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from tui_agent.errors import SessionError
from tui_agent.log import catalog, log
from tui_agent.log.lock import SessionLock
from tui_agent.store.events import SessionRenamed


def rename(data: Path, session: str, name: str) -> None:
    """Give a session a name. Raises SessionError, also where another process has it open."""
    folder = catalog.existing(data, session)
    failures: list[SessionError] = []
    with SessionLock.take(folder):
        kept = log.Log.open(folder / catalog.LOG)
        kept.append([SessionRenamed(name)], lambda _: None, failures.append)
        kept.set_meta(name=name)
        kept.close()
    if failures:
        raise failures[0]


async def delete(data: Path, session: str) -> None:
    """Delete a session for good, with the private commits that it made in its workspace's repository.

    Raises SessionError, also where another process has it open, and ChildFailed; nothing is deleted then.
    """
    folder = catalog.existing(data, session)
    with await asyncio.to_thread(SessionLock.take, folder):
        entry = await asyncio.to_thread(catalog.read_entry, folder)
        if entry is not None and entry.workspace:
            await _forget_checkpoints(Path(entry.workspace), session)
        try:
            await asyncio.to_thread(shutil.rmtree, folder)
        except OSError as error:
            raise SessionError(
                f"{session} cannot be deleted ({error.strerror})", f"look at {folder}"
            ) from error


async def _forget_checkpoints(workspace: Path, session: str) -> None:
    """A workspace that is gone, or in no repository, has none."""
    if not await asyncio.to_thread(_may_be_in_repository, workspace):
        return
    from tui_agent.git.client import GitClient
    from tui_agent.processes.child import Child
    from tui_agent.processes.environment import for_workspace

    child = Child("tui_agent.workspace.worker", name="workspace", env=for_workspace())
    try:
        await GitClient(child, workspace).forget_checkpoints(session)
    finally:
        await child.close()


def _may_be_in_repository(folder: Path) -> bool:
    return folder.is_dir() and any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))
