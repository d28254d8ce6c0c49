"""What makes opening and scrolling fast, written beside the log when a turn has ended: a snapshot, pages."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from sqlite3 import Error

from tui_agent.errors import SessionError
from tui_agent.log import database, pages, snapshot
from tui_agent.log.journal import Journal
from tui_agent.log.snapshot import Snapshot
from tui_agent.store import events as e
from tui_agent.store.state import State

#: After so many records a snapshot is made: at the end of a turn, and when the session is closed.
EVERY, AT_CLOSE = 300, 40


class Shortcuts:
    """Belongs to the session's loop; writes in a thread, one thing at a time."""

    def __init__(self, journal: Journal, path: Path, since: int) -> None:
        """`since` counts the records that came after the last snapshot."""
        self._journal = journal
        self._path = path
        self._saved = journal.number - since
        self._paged = 0
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe = journal.store.subscribe(self._happened)

    async def close(self) -> None:
        """Make a last snapshot, where it is worth one."""
        self._unsubscribe()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._worth(AT_CLOSE):
            await self._write(AT_CLOSE)

    def _happened(self, event: e.Event, state: State) -> None:
        if isinstance(event, e.TurnEnded) and (self._task is None or self._task.done()):
            # not now: what is being folded may go on behind this event
            self._task = asyncio.get_running_loop().create_task(self._write(EVERY))

    def _worth(self, records: int) -> bool:
        state = self._journal.store.state
        return (
            self._journal.keeps
            and not state.turn.running
            and self._journal.number - self._saved >= max(records, 1)
        )

    async def _write(self, records: int) -> None:
        state, number = self._journal.store.state, self._journal.number
        messages = [message for message in state.chat.messages if message.number > self._paged]
        self._paged = state.chat.total
        await asyncio.to_thread(pages.put, self._path.parent, messages)
        if self._worth(records):
            self._saved = number
            await asyncio.to_thread(_save, self._path, state, number)


def _save(path: Path, state: State, number: int) -> None:
    try:
        with closing(database.connect_to_read(path)) as connection:
            checksum = database.checksum_of(connection, number)
    except (SessionError, Error):
        return
    if checksum is not None:
        snapshot.save(path.parent, Snapshot(number, checksum, state))
