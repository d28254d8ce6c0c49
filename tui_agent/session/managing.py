"""Renaming and deleting sessions that nobody has open."""

from __future__ import annotations

import shutil
from pathlib import Path

from tui_agent.errors import SessionError
from tui_agent.session import catalog, log
from tui_agent.session.lock import SessionLock
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


def delete(data: Path, session: str) -> None:
    """Delete a session for good. Raises SessionError, also where another process has it open."""
    folder = catalog.existing(data, session)
    with SessionLock.take(folder):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise SessionError(
                f"{session} cannot be deleted ({error.strerror})", f"look at {folder}"
            ) from error
