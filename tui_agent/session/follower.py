"""Follows a session written by another process, by reading its log."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tui_agent.errors import SessionError
from tui_agent.log.core import Core
from tui_agent.log.directory import LOG
from tui_agent.log.tail import Tail
from tui_agent.review.open_files import OpenFiles
from tui_agent.store import events as e

#: Keys of local view state, independent of the writer.
_OWN = ("layout", "cursor:", "scroll:")
#: Seconds between reads of the log.
EVERY = 1.0


class Follower:
    """Folds events appended by another process. Takes no lock and writes nothing."""

    def __init__(self, core: Core, open_files: OpenFiles) -> None:
        self._journal = core.journal
        self._open_files = open_files
        self._tail = Tail(core.storage.folder / LOG, core.storage.number)
        self._task: asyncio.Task[None] | None = None

    async def resume(self) -> None:
        """Leaves a turn of the other process running."""
        await self._rest_without_writer()
        await self._open_files.restore()

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._follow(), name="following")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        try:
            while True:
                await asyncio.sleep(EVERY)
                news = await asyncio.to_thread(self._tail.news)
                if news is not None:
                    for event in news.events:
                        if isinstance(event, e.Growing) and event.key.startswith(_OWN):
                            continue
                        await self._fold(event)
                    for key in news.given_up:
                        if key.startswith("buffer:"):
                            await self._open_files.load(key.removeprefix("buffer:"))
                    for sentence in news.lost:
                        await self._warn(sentence)
                await self._rest_without_writer()
        except SessionError as error:
            await self._warn(f"Changes from the other terminal are no longer shown ({error})")

    async def _fold(self, event: e.Lasting | e.Growing) -> None:
        match event:
            case e.BufferEdited():
                self._journal.publish(replace(event, from_outside=True))
            case e.FreshnessChanged() if self._is_known(event):
                pass  # Already reported here.
            case e.BufferOpened(path) | e.BufferSaved(path):
                self._journal.publish(event)
                await self._open_files.load(path)
            case e.ReplyGrew():
                self._journal.publish(event)
                self._journal.publish(e.PhaseChanged("streaming"))
            case _:
                self._journal.publish(event)

    def _is_known(self, event: e.FreshnessChanged) -> bool:
        entry = self._journal.store.state.known.files.get(event.path)
        return entry is None or (entry.freshness, entry.renamed_to) == (event.freshness, event.renamed_to)

    async def _rest_without_writer(self) -> None:
        if self._journal.store.state.turn.running and not await asyncio.to_thread(self._tail.is_written):
            self._journal.publish(e.PhaseChanged("idle"))

    async def _warn(self, sentence: str) -> None:
        await self._journal.record(e.NoticeGiven("warning", sentence))
