"""Asking the model: the request goes out, the answer streams in and is read."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

from msgspec.structs import replace

from tui_agent.answers.structured import StructuredReader
from tui_agent.answers.tools import ToolsReader
from tui_agent.answers.values import Delta, Reply
from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    EmptyReply,
    LimitReached,
    ModelError,
    RateLimited,
    Refused,
    Unreachable,
)
from tui_agent.model.client import CallChunk, Chunk, ReasoningChunk, TextChunk
from tui_agent.store import events as e
from tui_agent.store.state import SentMessage
from tui_agent.turn.beginning import keep
from tui_agent.turn.composing import Composed
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.exchange import MOST_LETTERS, Answer, exchange, open_request
from tui_agent.turn.fallback import next_model
from tui_agent.turn.limits import check_limits
from tui_agent.turn.making_room import fit
from tui_agent.turn.reading import window_of

#: What share of a request that was too long the next one may have, attempt by attempt.
LESS = (0.8, 0.5)
#: More changes in one answer are more than anybody looks through.
MOST_CHANGES = 1_000
#: More sentences about what could not be read are for nobody.
MOST_FAULTS = 100


async def ask(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Send the next request and read the reply into `gathered`. Raises a `ModelError` when none came.

    Where the model cannot be reached or stays overloaded, the next of `models.fallbacks` is asked.
    """
    failed: dict[str, ModelError] = {}
    while True:
        try:
            async for event in _ask_model(desk, gathered):
                yield event
            return
        except (Unreachable, RateLimited, BadKey) as error:
            if isinstance(error, BadKey) and not failed:
                raise  # the person has to mend that
            model = desk.state().model.name
            failed[model] = error
            another = await next_model(desk, failed)
            if another is None:
                if len(failed) > 1:
                    yield e.NoticeGiven("warning", f"{error.what}. No other model is left to ask")
                raise next(iter(failed.values())) from None
            yield e.RequestWithdrawn(gathered.turn)
            yield e.NoticeGiven("warning", f"{error.what}. {another.name} is asked instead, from now on")
            yield another


async def _ask_model(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Ask the model that is chosen.

    A request that the provider finds too long is taken back and sent again, each time smaller; where nothing
    is left to leave out, it is not sent.
    """
    # a recording has no window: what it answers was answered once
    ceiling, refusal = sys.maxsize if desk.state().session.replay else window_of(desk.state()), None
    for less in (*LESS, None):
        composed: list[Composed] = []
        try:
            async for event in fit(desk, gathered, ceiling, composed):
                yield event
        except ContextTooLong:
            if refusal is None:
                raise
            yield e.NoticeGiven("info", "Nothing more can be left out of the request: it is not sent again")
            raise refusal from None
        try:
            async for event in _ask_once(desk, gathered, composed[0]):
                yield event
            return
        except LimitReached:
            if desk.requests.why and not desk.part and not desk.requests.told:
                desk.requests.told = True
                yield e.NoticeGiven("warning", f"{desk.requests.why}: no more are sent")
            raise
        except ContextTooLong as error:
            yield e.RequestWithdrawn(gathered.turn)
            if less is None:
                raise
            ceiling, refusal = int(composed[0].size * less), error


async def _ask_once(desk: Desk, gathered: Gathered, composed: Composed) -> AsyncGenerator[e.Event, None]:
    tokens = round(composed.event.tokens * desk.state().usage.scale)
    check_limits(desk, tokens)
    model = composed.request.model
    paid = await open_request(desk, model, tokens, "main")
    yield replace(composed.event, paid=paid)
    answer = _Reply(desk, composed.event.protocol == "tools")
    async for event in exchange(desk, composed.request, paid, answer):
        yield event
    gathered.handed_over(composed.event)
    reply = await asyncio.to_thread(answer.finish, model)
    gathered.reply = reply
    (sent,), _ = await keep(desk, [answer.message(reply)])
    first = changes_of(desk, gathered.turn) + 1
    count = len(reply.changes) + len(reply.refused)
    ids = tuple(f"c{gathered.turn}.{number}" for number in range(first, first + count))
    yield _read_event(gathered.turn, reply, answer.reasoning, sent, ids)


def changes_of(desk: Desk, turn: int) -> int:
    """How many changes a turn has proposed so far; the next one's id is the turn and the number after that."""
    return sum(change.turn == turn for change in desk.state().review.changes)


class _Reply(Answer):
    """A reply of the main model: it is read while it comes, and what the person reads of it is shown."""

    def __init__(self, desk: Desk, tools: bool) -> None:
        self._desk = desk
        self._tools = tools
        self.forget()

    def forget(self) -> None:
        super().forget()
        self.reasoning = ""
        schema, turn = self._desk.reply_schema, self._desk.state().turn
        self.reader = (
            ToolsReader(schema, f"call_{turn.number}_{turn.step}")
            if self._tools
            else StructuredReader(schema)
        )

    def take(self, chunk: Chunk) -> list[e.Event]:
        before = self.letters
        super().take(chunk)
        letters = self.letters - before
        match chunk:
            case TextChunk(text):
                shown = [e.ReplyStreamed(delta.part, delta.text) for delta in self._read(text)]
                hidden = letters - sum(len(event.text) for event in shown)
                return [*shown, e.ReplyStreamed("", letters=hidden)] if hidden > 0 else [*shown]
            case CallChunk() if isinstance(self.reader, ToolsReader):
                self.reader.call(chunk)
                return [e.ReplyStreamed("", letters=letters)]
            case ReasoningChunk(text):
                self.reasoning += text
                return [e.ReplyStreamed("reasoning", text, letters)]
        return []

    def _read(self, text: str) -> list[Delta]:
        match self.reader:
            case ToolsReader() as reader:
                return reader.text(text)
            case StructuredReader() as reader:
                return reader.feed(text)

    def is_worth_keeping(self) -> bool:
        """Complete changes are: a model that is asked again may not propose them again."""
        return bool(self.reader.finish(cut=True).changes)

    def finish(self, model: str) -> Reply:
        """The reply; of one that was cut, what is complete. Raises `Refused` and `EmptyReply`."""
        reply = _bounded(self.reader.finish(cut=self.cut), self.letters)
        if self.end and self.end.reason == "refused" and not reply.changes:
            raise Refused(
                f"{model} declined to answer", "word the request differently, or choose another model"
            )
        if not self.text.strip() and not reply.calls:
            raise EmptyReply(
                f"{model} answered without a word", "send the request again, or choose another model"
            )
        return replace(reply, why=self.why if reply.cut else "")

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
    if (count := len(faults)) > MOST_FAULTS:
        faults = [*faults[:MOST_FAULTS], f"{count - MOST_FAULTS:,} more faults of the answer are not listed."]
    return replace(
        reply,
        changes=reply.changes[:MOST_CHANGES],
        refused=reply.refused[:MOST_CHANGES],
        faults=tuple(faults),
    )


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
        why=reply.why,
        misread={call.id: call.fault for call in reply.calls if call.fault},
    )
