"""A session that another process writes: here it is only looked at."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from tui_agent.errors import OnlyRead, SessionError
from tui_agent.log.catalog import LOG
from tui_agent.log.tail import News, Tail
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import State

#: What only looks, or passes. Whatever else a session can be asked to do is refused.
LOOKS = frozenset(
    (
        "activate_buffer",
        "close",
        "close_buffer",
        "commit_plan",
        "conflict",
        "diff",
        "earlier",
        "finished",
        "memory",
        "notice",
        "open_file",
        "preview",
        "reload_buffer",
        "sent",
        "start_services",
        "stop",
        "subtask_state",
        "subtasks_settled",
        "summary",
        "take_up",
        "tell_opening",
        "version_diff",
        "wait_for_files",
    )
)
#: What the person does here for themselves: where they look is theirs, whatever the writer looks at.
_OWN = ("layout", "cursor:", "scroll:")
#: Seconds between two looks at the log.
EVERY = 1.0


class ReadOnlySession(Session):
    """Shows a session as its log has it, and follows what the other process adds. It takes no lock and has no log."""

    _following: asyncio.Task[None] | None = None

    @property
    def log_path(self) -> Path:
        return self.storage.folder / LOG

    async def take_up(self) -> None:
        """Read the open files; a turn that runs elsewhere is not ended here."""
        self._tail = Tail(self.log_path, self.storage.number)
        await self._rest_without_writer()
        await self._open_files.restore()

    async def start_services(self) -> None:
        await super().start_services()
        if self._following is None:
            self._following = asyncio.create_task(self._follow(), name="following")

    async def close(self, within: float | None = None) -> None:
        if self._following is not None:
            self._following.cancel()
        await super().close(within)

    def _on_event(self, event: e.Event, state: State) -> None:
        """Sub-tasks run in the other process."""

    async def _follow(self) -> None:
        """Look again and again, until the log cannot be read any more."""
        try:
            while True:
                await asyncio.sleep(EVERY)
                news = await asyncio.to_thread(self._tail.news)
                if news is not None:
                    await self._take(news)
                await self._rest_without_writer()
        except SessionError as error:
            await self.notice(f"What is added elsewhere is not shown any more, {error}", "warning")

    async def _take(self, news: News) -> None:
        for event in news.events:
            if isinstance(event, e.Growing) and event.key.startswith(_OWN):
                continue
            await self._fold(event)
        for key in news.given_up:
            if key.startswith("buffer:"):
                await self._open_files.load(key.removeprefix("buffer:"))
        for sentence in news.lost:
            await self.notice(sentence, "warning")

    async def _fold(self, event: e.Lasting | e.Growing) -> None:
        match event:
            case e.BufferEdited():
                self.journal.tell(replace(event, from_outside=True))
            case e.FreshnessChanged() if self._is_known(event):
                pass  # seen here too, and said
            case e.BufferOpened(path) | e.BufferSaved(path):
                self.journal.tell(event)
                await self._open_files.load(path)
            case e.ReplyGrew():
                self.journal.tell(event)
                self.journal.tell(e.PhaseChanged("streaming"))
            case _:
                self.journal.tell(event)

    def _is_known(self, event: e.FreshnessChanged) -> bool:
        entry = self.state.known.files.get(event.path)
        return entry is None or (entry.freshness, entry.renamed_to) == (event.freshness, event.renamed_to)

    async def _rest_without_writer(self) -> None:
        """A turn whose process is gone does not run."""
        if self.state.turn.running and not await asyncio.to_thread(self._tail.is_written):
            self.journal.tell(e.PhaseChanged("idle"))


async def _refuse(self: Session, *_: object, **__: object) -> NoReturn:
    raise OnlyRead(
        f"The session {self.state.session.id} is open elsewhere, here it can only be read",
        "close it there, or fork it",
    )


for _name, _ in inspect.getmembers(Session, inspect.iscoroutinefunction):
    if not _name.startswith("_") and _name not in LOOKS:
        setattr(ReadOnlySession, _name, _refuse)
