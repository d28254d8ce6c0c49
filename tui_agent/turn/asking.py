"""Asking the model: the request goes out, the answer streams in and is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from tui_agent.answers.structured import StructuredReader
from tui_agent.answers.tools import ToolsReader
from tui_agent.answers.values import Delta, Reply
from tui_agent.errors import ContextTooLong, EmptyReply, Refused
from tui_agent.model.client import CallChunk, EndChunk, ReasoningChunk, RetryChunk, TextChunk, UsageChunk
from tui_agent.store import events as e
from tui_agent.store.state import SentMessage, Usage
from tui_agent.turn.beginning import keep
from tui_agent.turn.composing import Composed, compose
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.limits import check_limits
from tui_agent.turn.making_room import make_room

#: How often a request that is too long is made shorter before the person is told.
MOST_ATTEMPTS = 3
#: An answer of more letters is no answer: what comes after them is not read.
MOST_LETTERS = 4_000_000
#: More changes in one answer are more than anybody looks through.
MOST_CHANGES = 1_000


async def ask(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Send the next request and read the reply into `gathered`. Raises a `ModelError` when none came.

    A request that is too long for the provider is made shorter and sent again.
    """
    for attempt in range(1, MOST_ATTEMPTS + 1):
        async for event in make_room(desk, gathered, too_long=attempt > 1):
            yield event
        try:
            async for event in _ask_once(desk, gathered):
                yield event
            return
        except ContextTooLong:
            if attempt == MOST_ATTEMPTS:
                raise
            yield e.NoticeGiven(
                "info", "The request is too long for the model: it is made shorter and sent again"
            )


async def _ask_once(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    composed = await compose(desk, gathered)
    check_limits(desk, round(composed.event.tokens * desk.state().usage.scale))
    yield composed.event
    gathered.handed_over()
    answer = _Answer(desk, composed.event.protocol == "tools")
    async with aclosing(desk.model.stream(composed.request)) as chunks:
        async for chunk in chunks:
            for event in answer.take(chunk):
                yield event
            if answer.letters > MOST_LETTERS:
                break
    reply = await asyncio.to_thread(answer.finish, composed.request.model)
    gathered.reply = reply
    (sent,), _ = await keep(desk, [answer.message(reply)])
    yield e.UsageCounted(answer.usage or _estimated(composed, sent))
    first = changes_of(desk, gathered.turn) + 1
    ids = tuple(f"c{gathered.turn}.{number}" for number in range(first, first + len(reply.changes)))
    yield _read_event(gathered.turn, reply, answer.reasoning, sent, ids)


def changes_of(desk: Desk, turn: int) -> int:
    """How many changes a turn has proposed so far; the next one's id is the turn and the number after that."""
    return sum(change.turn == turn for change in desk.state().review.changes)


class _Answer:
    """One reply as it comes in: the text, the calls, what it cost, and how it ended."""

    def __init__(self, desk: Desk, tools: bool) -> None:
        self.reader = ToolsReader(desk.reply_schema) if tools else StructuredReader(desk.reply_schema)
        self.reasoning = ""
        self.letters = 0
        self.usage: Usage | None = None
        self.end: EndChunk | None = None
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def take(self, chunk: object) -> list[e.Event]:
        match chunk:
            case TextChunk(text):
                self.letters += len(text)
                self._pieces.append(text)
                return [e.ReplyStreamed(delta.part, delta.text) for delta in self._read(text)]
            case CallChunk() if isinstance(self.reader, ToolsReader):
                self.letters += len(chunk.arguments)
                self.reader.call(chunk)
            case ReasoningChunk(text):
                self.letters += len(text)
                self.reasoning += text
                return [e.ReplyStreamed("reasoning", text)]
            case UsageChunk(given, came, cached, cost):
                self.usage = Usage(given, came, cached, cost)
            case RetryChunk(attempt, seconds, why):
                return [e.RetryCounted(round(seconds), attempt, why)]
            case EndChunk():
                self.end = chunk
        return []

    def _read(self, text: str) -> list[Delta]:
        match self.reader:
            case ToolsReader() as reader:
                return reader.text(text)
            case StructuredReader() as reader:
                return reader.feed(text)

    def finish(self, model: str) -> Reply:
        end = self.end or EndChunk("cut")
        if end.reason == "refused":
            raise Refused(
                f"{model} declined to answer", "word the request differently, or choose another model"
            )
        reply = _bounded(self.reader.finish(cut=end.reason in ("cut", "length")), self.letters)
        if not self.text.strip() and not reply.calls:
            raise EmptyReply(
                f"{model} answered without a word", "send the request again, or choose another model"
            )
        return reply

    def message(self, reply: Reply) -> dict[str, Any]:
        """The reply as the next request carries it."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in reply.calls
            ]
        if self.end and self.end.thinking:
            message["thinking_blocks"] = list(self.end.thinking)
        return message


def _bounded(reply: Reply, letters: int) -> Reply:
    """The reply with no more changes than can be looked through; what was left out is one of its faults."""
    faults = list(reply.faults)
    if letters > MOST_LETTERS:
        faults.append(
            f"The answer had more than {MOST_LETTERS:,} letters: what came after them was not read."
        )
    if (count := len(reply.changes)) > MOST_CHANGES:
        faults.append(f"The answer held {count:,} changes: the first {MOST_CHANGES:,} were taken.")
    return replace(reply, changes=reply.changes[:MOST_CHANGES], faults=tuple(faults))


def _estimated(composed: Composed, sent: SentMessage) -> Usage:
    return Usage(composed.event.tokens, sent.tokens, 0, None, estimated=True)


def _read_event(
    turn: int, reply: Reply, reasoning: str, sent: SentMessage, ids: tuple[str, ...]
) -> e.ReplyRead:
    return e.ReplyRead(
        turn=turn,
        summary=reply.summary,
        message=reply.message,
        reasoning=reasoning,
        sent=sent,
        open_calls=tuple(call.id for call in reply.calls),
        changes=ids,
        todos=reply.todos or (),
        sub_tasks=reply.sub_tasks,
        next_steps=reply.next_steps,
        cut=reply.cut,
        faults=reply.faults,
    )
