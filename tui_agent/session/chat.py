"""The conversation of a session: send, stop, answer, continue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.context import memory
from tui_agent.errors import FileError, Outdated, SessionError, TuiAgentError
from tui_agent.files.batch import write_file
from tui_agent.files.private import replace_private
from tui_agent.log.core import Core, call
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import messages_before
from tui_agent.processes.background import start_task
from tui_agent.session.turns import Turns
from tui_agent.settings.schema import Effort
from tui_agent.store import events as e
from tui_agent.store.state import ChatMessage, Decision, State
from tui_agent.turn.pastes import PASTED, check_pastes, pasted_line

if TYPE_CHECKING:
    from tui_agent.log.transfer import Exchange
    from tui_agent.turn.context import TurnContext


class Chat:
    """`look` updates the known files. `apart` is the context of requests outside turns."""

    def __init__(
        self,
        core: Core,
        turns: Turns,
        *,
        context: Callable[[], TurnContext],
        apart: Callable[[], Awaitable[TurnContext]],
        look: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = core.journal
        self._storage = core.storage
        self._turns = turns
        self._log = core.storage.log.path if core.storage.log else None
        self._context = context
        self._apart = apart
        self._look = look
        self._asides: set[asyncio.Task[None]] = set()
        self._lost = set(core.storage.lost)
        #: Unfinished writes of pastes, and used placeholder lines.
        self._keeping: set[asyncio.Task[None]] = set()
        self._lines: set[str] = set()

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def submit(self, text: str, attachments: Sequence[str] = (), effort: Effort | None = None) -> None:
        """Returns once the message is on disk. Raises `PasteTooLong`."""
        if PASTED.search(text):
            await asyncio.gather(*self._keeping, self._turns.get_ready())
            await check_pastes(self._context(), text)
        await self._turns.submit(text, attachments, effort)

    @call(changes=True)
    async def ask_beside(self, question: str) -> None:
        start_task(self._asides, self._answer_beside(question), "side question")

    async def _answer_beside(self, question: str) -> None:
        from tui_agent.turn.beside import answer_beside

        try:
            answer = await answer_beside(await self._apart(), question, self._journal.record)
            await self._journal.record(e.AsideAnswered(question, answer))
        except TuiAgentError as error:
            await self._journal.record(e.NoticeGiven("error", str(error)))

    @call(changes=False)
    async def close(self) -> None:
        for task in self._asides:
            task.cancel()
        await asyncio.gather(*self._asides, return_exceptions=True)

    @call(changes=True)
    def keep_paste(self, text: str) -> str:
        line = pasted_line(text, self.state.input.pastes.keys() | self._lines)
        self._lines.add(line)
        start_task(self._keeping, self._keep(line, text), "keep what was pasted")
        return line

    @call(changes=True)
    async def save_paste(self, line: str) -> str:
        """Writes the text to a new workspace file. Raises `FileError` or `PathRefused`."""
        gate = self._context().core.workspace.gate
        text = await asyncio.to_thread(self._storage.blobs.get_text, self.state.input.pastes[line])
        for number in count(1):
            path = "pasted.txt" if number == 1 else f"pasted-{number}.txt"
            with suppress(Outdated):
                await asyncio.to_thread(write_file, gate, path, text.encode("utf-8", "replace"), "")
                return path
        raise AssertionError("some number is free")

    async def _keep(self, line: str, text: str) -> None:
        blob = await asyncio.to_thread(self._storage.blobs.hold_text, text)
        await self._journal.record(e.PasteKept(line, blob))

    @call(changes=False)
    async def memory(self) -> str:
        """Returns "" if there is nothing to continue. Raises `SessionError` during a turn."""
        if self.state.turn.running:
            raise SessionError(
                "A turn is running; its progress is known at its end",
                "wait for it, or stop it",
            )
        if not self.state.turn.number or self.state.input.memory:
            return self.state.input.memory
        from tui_agent.turn.conversation import remembered

        await self._look()
        return memory.untitled(remembered(self.state, self.state.next_turn, {}))

    @call(changes=True)
    async def go_on(self, text: str, remembered: str) -> None:
        await self._journal.record(e.MemoryEdited(remembered))
        await self.submit(text)

    @call(changes=False)
    async def finished(self) -> None:
        await self._turns.finished()

    @call(changes=False)
    async def stop(self) -> None:
        await self._turns.stop()

    @call(changes=True)
    def set_draft(self, text: str) -> None:
        if text != self.state.input.draft:
            self._journal.grow(e.DraftChanged(text))

    @call(changes=False)
    def set_typed(self, place: str, text: str) -> None:
        """Stores text of an input other than the chat's."""
        if text != self.state.input.typed.get(place, ""):
            self._journal.grow(e.TypingChanged(place, text))

    @call(changes=True)
    async def set_queue(self, queue: Sequence[str]) -> None:
        await self._turns.set_queue(queue)

    @call(changes=True)
    async def send_queue(self) -> None:
        self._turns.send_queue()

    @call(changes=False)
    def set_attended(self, attended: bool) -> None:
        """Without a terminal, messages and the next batch wait; a goal is pursued."""
        self._turns.set_attended(attended)

    @call(changes=True)
    async def compact(self) -> None:
        """Raises `SessionError` if there are none, or during a turn."""
        if len(self.state.conversation.messages) < 2:
            raise SessionError("There is nothing to summarise", "send a message first")
        self._turns.compact()

    @call(changes=False)
    async def export(self, target: Path) -> None:
        """Writes Markdown with mode 0600 and masked secrets. Raises `FileError`, or `SessionError` without a
        log.
        """
        if self._log is None:
            raise SessionError("This session is only in memory", "copy the text that you need")
        from tui_agent.log.transfer import as_markdown

        path, name, decisions = self._log, self.state.session.id, self.state.secrets
        secrets = self._context().secrets

        def write() -> None:
            if target.exists():
                raise FileError(f"{target} already exists", "name another file")
            events = list(events_of(path, []))
            text = as_markdown(name, events, secrets.look(decisions))
            try:
                replace_private(target, text.encode("utf-8", "replace"))
            except OSError as error:
                raise FileError(
                    f"{target} cannot be written ({error.strerror})", "name another file"
                ) from error

        await asyncio.to_thread(write)

    @call(changes=True)
    async def answer(self, action: str, path: str = "") -> None:
        """Without a path, skips the action."""
        await self._turns.answer(action, path)

    @call(changes=True)
    async def permit(self, asked: str, answer: str, reason: str = "") -> None:
        await self._turns.answer(asked, answer, reason)

    @call(changes=True)
    async def revoke(self, digest: str) -> None:
        from tui_agent.tools.permission import forget_approval

        await self._journal.record(e.PermissionRevoked(digest))
        await asyncio.to_thread(forget_approval, self._context().core.folders.config, digest)

    @call(changes=True)
    async def decide(
        self, action: str, path: str = "", patterns: Sequence[str] = (), everything: bool = False
    ) -> None:
        """Another file, other patterns or all matches; otherwise skips. Its own patterns repeat the search."""
        await self._turns.decide(Decision(action, path, tuple(patterns), everything))

    @call(changes=False)
    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        if self._log is None or before <= 1:
            return ()
        lost: list[str] = []
        found = await asyncio.to_thread(messages_before, self._log, before, count, lost=lost)
        await self._say_lost(lost)
        return found

    @call(changes=False)
    async def summary(self) -> str:
        sent = next((it for it in self.state.conversation.messages if it.kind == "summary"), None)
        if sent is None:
            return ""
        from tui_agent.turn.conversation import words_of

        message = json.loads(await asyncio.to_thread(self._storage.blobs.get_text, sent.blob))
        return words_of(str(message["content"]))

    @call(changes=True)
    async def edit_summary(self, text: str) -> bool:
        from tui_agent.turn.conversation import edit_summary

        return await edit_summary(self._context(), text, self._journal.record)

    @call(changes=False)
    async def sent(self) -> list[Exchange]:
        from tui_agent.log.transfer import exchanges

        path = self._log
        if path is None:
            return []
        lost: list[str] = []
        found = await asyncio.to_thread(lambda: list(exchanges(events_of(path, lost), self._storage.blobs)))
        await self._say_lost(lost)
        return found

    async def _say_lost(self, lost: Sequence[str]) -> None:
        fresh = [sentence for sentence in lost if sentence not in self._lost]
        self._lost.update(fresh)
        await self._journal.record(*(e.NoticeGiven("warning", sentence) for sentence in fresh))
