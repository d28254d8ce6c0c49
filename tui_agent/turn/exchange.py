"""One exchange with a model: a request goes out, its answer comes in, and however that ends its tokens are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui_agent.errors import LimitReached, ModelError, TimedOut
from tui_agent.model.client import (
    CallChunk,
    Chunk,
    EndChunk,
    ModelRequest,
    ReasoningChunk,
    RetryChunk,
    SentChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.store import events as e
from tui_agent.store.state import OpenRequest, Purpose, Usage
from tui_agent.turn.desk import Desk

#: An answer of more letters is not an answer: what comes after them is not read.
MOST_LETTERS = 4_000_000
#: So many of them are read at once: about ten milliseconds.
MOST_AT_ONCE = 16_384


class Answer:
    """An answer as it comes: its words, and how it ended."""

    def __init__(self) -> None:
        self.letters = 0
        self.end: EndChunk | None = None
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def cut(self) -> bool:
        """Whether something else ended it than the model."""
        return self.end is None or self.end.reason not in ("stop", "tool_calls")

    @property
    def why(self) -> str:
        """What cut it, as a sentence without its full stop; "" where nobody knows."""
        if self.letters > MOST_LETTERS:
            return "It was too long to be read to its end"
        return self.end.why if self.end else ""

    def take(self, chunk: Chunk) -> list[e.Event]:
        """Add a piece; what the person gets to see of it comes back."""
        match chunk:
            case TextChunk(text):
                self._pieces.append(text)
                self.letters += len(text)
            case ReasoningChunk(text):
                self.letters += len(text)
            case CallChunk():
                self.letters += len(chunk.arguments)
            case EndChunk():
                self.end = chunk
        return []

    def forget(self) -> None:
        """The answer begins again: nothing of it has come."""
        self.letters, self.end = 0, None
        self._pieces = []

    def is_worth_keeping(self) -> bool:
        """Whether what came is kept where the rest would have to be waited for. Takes time: not for the loop."""
        return False


def cut_off(why: str) -> str:
    """The beginning of a sentence about an answer that did not end by itself; `why` is what ended it."""
    if not why:
        return "The answer was cut off"
    words = why.removesuffix(".")
    return f"The answer was cut off ({'the ' + words[4:] if words.startswith('The ') else words})"


async def open_request(desk: Desk, model: str, tokens: int, purpose: Purpose) -> OpenRequest:
    """What a request to `model` may cost before anybody has counted; `tokens` is its own size."""
    try:
        prices = (await desk.model.abilities(model)).prices
    except ModelError:
        prices = None
    return OpenRequest(purpose, tokens, prices)


async def exchange(
    desk: Desk, request: ModelRequest, paid: OpenRequest, answer: Answer
) -> AsyncGenerator[e.Event, None]:
    """Send the request and put what comes into `answer`. Raises a `ModelError` when no answer came.

    A provider that is overloaded in the middle of an answer makes what came of it void, and it is asked again,
    unless that is worth keeping: then the answer ends there.
    """
    usage: Usage | None = None
    if desk.state().model.status in ("starting", "failed"):
        yield e.PhaseChanged("starting")
    try:
        async with aclosing(desk.model.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case SentChunk():
                        if desk.state().turn.phase == "starting":
                            yield e.PhaseChanged("planning" if paid.purpose == "plan" else "asking")
                    case UsageChunk(given, came, cached, cost):
                        usage = Usage(given, came, cached, cost)
                    case RetryChunk(attempt, seconds, why):
                        if answer.letters:
                            if await asyncio.to_thread(answer.is_worth_keeping):
                                answer.end = EndChunk("cut", why=why)
                                break
                            for event in _begun_again(desk, paid, answer, why):
                                yield event
                        yield e.RetryCounted(round(seconds), attempt, why)
                    case _:
                        async for piece in _in_pieces(chunk):
                            for event in answer.take(piece):
                                yield event
                if answer.letters > MOST_LETTERS:
                    break
    except (ModelError, LimitReached) as error:
        processed = answer.letters or isinstance(error, TimedOut)
        yield e.UsageCounted(paid.estimate(answer.letters) if processed else Usage(), paid.purpose)
        raise
    yield e.UsageCounted(usage or paid.estimate(answer.letters), paid.purpose)


async def _in_pieces(chunk: Chunk) -> AsyncGenerator[Chunk, None]:
    """A chunk as pieces that are read in a moment, and in between everybody else has a turn."""
    match chunk:
        case TextChunk(text) if len(text) > MOST_AT_ONCE:
            for at in range(0, len(text), MOST_AT_ONCE):
                yield TextChunk(text[at : at + MOST_AT_ONCE])
                await asyncio.sleep(0)
        case _:
            yield chunk


def _begun_again(desk: Desk, paid: OpenRequest, answer: Answer, why: str) -> list[e.Event]:
    """What came is void, and was paid for all the same."""
    spent = e.UsageCounted(paid.estimate(answer.letters), paid.purpose)
    answer.forget()
    said = e.NoticeGiven("info", f"{why}: what had come of the answer is dropped, and it is asked for again")
    return [spent, e.ReplyGrew(desk.state().turn.number, "", ""), said]
