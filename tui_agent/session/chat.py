"""The conversation of a session: sent, stopped, answered, looked back at, continued."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.context import memory
from tui_agent.errors import FileError, Outdated, SessionError
from tui_agent.log.calls import call
from tui_agent.log.core import Core
from tui_agent.session.turns import Turns
from tui_agent.settings.schema import Effort
from tui_agent.store import events as e
from tui_agent.store.state import ChatMessage, Decision, State
from tui_agent.turn.pastes import PASTED, check_pastes, pasted_line

if TYPE_CHECKING:
    from tui_agent.log.exchanges import Exchange
    from tui_agent.turn.context import TurnContext


class Chat:
    """What a front end asks about what is said; `Turns` runs the turns.

    `log` is where what happened can be read, None where it is in memory alone; `look` finds out what became of the
    files that the model knows.
    """

    def __init__(
        self,
        core: Core,
        turns: Turns,
        *,
        log: Path | None,
        context: Callable[[], TurnContext],
        look: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = core.journal
        self._storage = core.storage
        self._turns = turns
        self._log = log
        self._context = context
        self._look = look
        self._lost = set(core.storage.lost)
        #: Pastes on their way to the disk, and the lines that are taken.
        self._keeping: set[asyncio.Task[None]] = set()
        self._lines: set[str] = set()

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def submit(self, text: str, attachments: Sequence[str] = (), effort: Effort | None = None) -> None:
        """Begin a turn, or queue the message while one runs. Returns when it is on disk, not when it is done.

        `effort` is for this turn alone.
        Raises `PasteTooLong` where what was pasted into it is more than the model takes.
        """
        if PASTED.search(text):
            await asyncio.gather(*self._keeping, self._turns.get_ready())
            await check_pastes(self._context(), text)
        await self._turns.submit(text, attachments, effort)

    @call(changes=True)
    def keep_paste(self, text: str) -> str:
        """The line that takes the place of a long text that was pasted; the text itself is kept, and sent with it."""
        line = pasted_line(text, self.state.input.pastes.keys() | self._lines)
        self._lines.add(line)
        task = asyncio.create_task(self._keep(line, text), name="keep what was pasted")
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)
        return line

    @call(changes=True)
    async def save_paste(self, line: str) -> str:
        """Write a text that was pasted to a new file of the workspace, and return its path. Raises `FileError` or
        `PathRefused` where that cannot be done."""
        from tui_agent.files.replace import replace

        gate = self._context().workspace.gate
        text = await asyncio.to_thread(self._storage.blobs.get_text, self.state.input.pastes[line])
        for number in count(1):
            path = "pasted.txt" if number == 1 else f"pasted-{number}.txt"
            with suppress(Outdated):  # there is one already
                await asyncio.to_thread(replace, gate, path, text.encode("utf-8", "replace"), "")
                return path
        raise AssertionError("some number is free")

    async def _keep(self, line: str, text: str) -> None:
        blob = await asyncio.to_thread(self._storage.blobs.hold_text, text)
        await self._journal.record(e.PasteKept(line, blob))

    @call(changes=False)
    async def memory(self) -> str:
        """What the next request to go on tells the model of the state of the work, to be read and edited.

        Empty where there is nothing to go on with. Raises `SessionError` while a turn runs.
        """
        if self.state.turn.running:
            raise SessionError(
                "A turn is running: its progress is known when it has ended",
                "wait for it, or stop it",
            )
        if not self.state.turn.number or self.state.input.memory:
            return self.state.input.memory
        from tui_agent.turn.memory import remembered

        await self._look()
        return memory.untitled(remembered(self.state, self.state.next_turn, {}))

    @call(changes=True)
    async def go_on(self, text: str, remembered: str) -> None:
        """Send a message that asks to go on, with these words in place of the memory that would be built."""
        await self._journal.record(e.MemoryEdited(remembered))
        await self.submit(text)

    @call(changes=False)
    async def finished(self) -> None:
        """Wait until no turn runs and none is queued."""
        await self._turns.finished()

    @call(changes=False)
    async def stop(self) -> None:
        """Stop the running turn; what came so far is kept. Nothing happens when none runs."""
        await self._turns.stop()

    @call(changes=True)
    def set_draft(self, text: str) -> None:
        """What is in the chat's input; kept within a second."""
        if text != self.state.input.draft:
            self._journal.grow(e.DraftChanged(text))

    @call(changes=False)
    def set_typed(self, place: str, text: str) -> None:
        """What is typed at a place other than the chat's input, empty where it was given up; kept within a second.

        Nothing happens where the session is only read.
        """
        if not self.state.session.read_only and text != self.state.input.typed.get(place, ""):
            self._journal.grow(e.TypingChanged(place, text))

    @call(changes=True)
    async def set_queue(self, queue: Sequence[str]) -> None:
        """The messages that wait for the turn to end, as the person left them."""
        await self._turns.set_queue(queue)

    @call(changes=True)
    async def send_queue(self) -> None:
        """Begin with the messages that a stopped turn left waiting."""
        self._turns.send_queue()

    @call(changes=True)
    async def compact(self) -> None:
        """Let the model summarise all older messages, which give way to the summary.

        Raises `SessionError` where there are none, or a turn runs.
        """
        if len(self.state.conversation.messages) < 2:
            raise SessionError("There is nothing to summarise yet", "send a message first")
        self._turns.compact()

    @call(changes=False)
    async def export(self, target: Path) -> None:
        """Write what was said to a Markdown file with the rights 0600, secrets masked.

        Raises `SessionError` where nothing is kept, and `FileError` where the file is there or cannot be written.
        """
        if self._log is None:
            raise SessionError("This session is only in memory", "copy what you need")
        from tui_agent.files.private import replace_private
        from tui_agent.log.log import events_of
        from tui_agent.log.transfer import as_markdown

        path, name, decisions = self._log, self.state.session.id, self.state.secrets
        secrets = self._context().secrets

        def write() -> None:
            if target.exists():
                raise FileError(f"{target} exists already", "name another file")
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
        """Answer the plan's open question: the path that `action` means, or nothing to let it go."""
        await self._turns.answer(action, path)

    @call(changes=True)
    async def permit(self, asked: str, answer: str, reason: str = "") -> None:
        """Answer the call of a tool that asks: `once`, `session`, `always` or `no`, with a reason for the model."""
        await self._turns.answer(asked, answer, reason)

    @call(changes=True)
    async def revoke(self, digest: str) -> None:
        """Take an approval back: the same call is asked about again, in this session and in every other."""
        from tui_agent.tools.permission import forget_approval

        await self._journal.record(e.PermissionRevoked(digest))
        approvals = self._context().approvals
        if approvals is not None:
            await asyncio.to_thread(forget_approval, approvals, digest)

    @call(changes=True)
    async def decide(
        self, action: str, path: str = "", patterns: Sequence[str] = (), everything: bool = False
    ) -> None:
        """The person's word on an action of the plan, asked or not: another file, other patterns, all the files
        that its name fits, or nothing to let it go. With the plan's own patterns it is looked for again."""
        await self._turns.decide(Decision(action, path, tuple(patterns), everything))

    @call(changes=False)
    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        """Up to `count` messages of the transcript from before message number `before`, oldest first."""
        if self._log is None or before <= 1:
            return ()
        from tui_agent.log.transcript import messages_before

        lost: list[str] = []
        keep = self._storage.log is not None
        found = await asyncio.to_thread(messages_before, self._log, before, count, keep, lost)
        await self._say_lost(lost)
        return found

    @call(changes=False)
    async def summary(self) -> str:
        """The summary that stands for older messages, as the model gets it; empty where there is none."""
        sent = next((it for it in self.state.conversation.messages if it.kind == "summary"), None)
        if sent is None:
            return ""
        from tui_agent.turn.conversation import words_of

        message = json.loads(await asyncio.to_thread(self._storage.blobs.get_text, sent.blob))
        return words_of(str(message["content"]))

    @call(changes=True)
    async def edit_summary(self, text: str) -> bool:
        """Put the person's words in place of the summary of older messages; False where there is none."""
        from tui_agent.turn.conversation import edit_summary

        return await edit_summary(self._context(), text, self._journal.record)

    @call(changes=False)
    async def sent(self) -> list[Exchange]:
        """What the model was sent and what it answered, in order. Empty where nothing is kept."""
        from tui_agent.log.exchanges import exchanges
        from tui_agent.log.log import events_of

        path = self._log
        if path is None:
            return []
        lost: list[str] = []
        found = await asyncio.to_thread(lambda: list(exchanges(events_of(path, lost), self._storage.blobs)))
        await self._say_lost(lost)
        return found

    async def _say_lost(self, lost: Sequence[str]) -> None:
        """Say once that a record cannot be read: opening does not look at those that a snapshot stands for."""
        fresh = [sentence for sentence in lost if sentence not in self._lost]
        self._lost.update(fresh)
        await self._journal.record(*(e.NoticeGiven("warning", sentence) for sentence in fresh))
