"""One exchange with a model: a request goes out within the limits, its answer comes in, its tokens are counted.

Where the model cannot be reached, the next of `models.fallbacks` answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing

from tui_agent.answers.repetition import Repetition
from tui_agent.context.budget import Spent, limit_reached
from tui_agent.errors import LimitReached, ModelError, TimedOut
from tui_agent.model.client import (
    CallChunk,
    Chunk,
    EndChunk,
    LeftOutChunk,
    ModelRequest,
    ProgressChunk,
    ReasoningChunk,
    RetryChunk,
    SentChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.model.pacing import RAISE_REQUESTS
from tui_agent.store import events as e
from tui_agent.store.usage import OpenRequest, Purpose, Usage
from tui_agent.tools.context import Emit
from tui_agent.tools.files import window_of
from tui_agent.turn.context import TurnContext
from tui_agent.turn.masking import masked_apart, tell
from tui_agent.turn.model_choice import chosen, is_chosen

#: An answer of more letters is not an answer: what comes after them is not read.
MOST_LETTERS = 4_000_000
#: So many of them are read at once: about ten milliseconds.
MOST_AT_ONCE = 16_384

#: What ended an answer that would not end itself.
REPEATED = "The answer repeated itself (limits.repeat)"


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


async def open_request(context: TurnContext, model: str, tokens: int, purpose: Purpose) -> OpenRequest:
    """What a request to `model` may cost before anybody has counted; `tokens` is its own size.

    It is counted for `limits.requests`, before it is announced: sub-tasks may use up the rest at the same time. Raises
    `LimitReached` where they did.
    """
    try:
        prices = (await context.model.abilities(model)).prices
    except ModelError:
        prices = None
    context.requests.reserve()
    return OpenRequest(purpose, tokens, prices)


async def exchange(
    context: TurnContext, request: ModelRequest, paid: OpenRequest, answer: Answer, emit: Emit
) -> None:
    """Send the request and put what comes into `answer`. Raises a `ModelError` when no answer came.

    A provider that is overloaded in the middle of an answer makes what came of it void, and it is asked again,
    unless that is worth keeping: then the answer ends there.
    """
    request = await masked_apart(context, request)
    await tell(context, emit)
    usage: Usage | None = None
    repetition = Repetition(context.settings.limits.repeat)
    reading = _Reading(emit) if context.state().model.server else None
    if context.state().model.status in ("starting", "failed"):
        await emit(e.PhaseChanged("starting"))
    try:
        async with aclosing(context.model.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case SentChunk():
                        if context.state().turn.phase == "starting":
                            await emit(e.PhaseChanged("planning" if paid.purpose == "plan" else "asking"))
                    case ProgressChunk(read, of, waits):
                        if reading is not None:
                            await reading.tell(read, of, waits)
                    case UsageChunk(given, came, cached, cost):
                        usage = Usage(given, came, cached, cost, thinking=chunk.thinking)
                    case LeftOutChunk(words):
                        if all(words != notice.text for notice in context.state().notices.items):
                            await emit(e.NoticeGiven("info", words))
                    case RetryChunk(attempt, seconds, why):
                        if answer.letters:
                            if await asyncio.to_thread(answer.is_worth_keeping):
                                answer.end = EndChunk("cut", why=why)
                                break
                            await _begin_again(context, paid, answer, why, emit)
                        await emit(e.RetryCounted(round(seconds), attempt, why))
                    case _:
                        if reading is not None:
                            reading.end()
                        async for piece in _in_pieces(chunk):
                            for event in answer.take(piece):
                                await emit(event)
                if repetition.feed(_text_of(chunk)):
                    answer.end = EndChunk("cut", why=REPEATED)
                    break
                if answer.letters > MOST_LETTERS:
                    break
    except (ModelError, LimitReached) as error:
        processed = answer.letters or isinstance(error, TimedOut)
        await emit(e.UsageCounted(paid.estimate(answer.letters) if processed else Usage(), paid.purpose))
        raise
    finally:
        if reading is not None:
            reading.end()
    await emit(e.UsageCounted(usage or paid.estimate(answer.letters), paid.purpose))


class _Reading:
    """Says each second how long a server has been reading a request, or is waited for, until it says its first word."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._since = asyncio.get_running_loop().time()
        self._read = self._of = 0
        self._waits = ""
        self._ticking: asyncio.Task[None] | None = asyncio.create_task(self._tick())

    async def tell(self, read: int, of: int, waits: str) -> None:
        now = asyncio.get_running_loop().time()
        if waits != self._waits:
            self._since = now
        self._read, self._of, self._waits = read, of, waits
        await self._emit(e.PromptRead(max(1, int(now - self._since)), read, of, waits))

    def end(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await self.tell(self._read, self._of, self._waits)


def _text_of(chunk: Chunk) -> str:
    match chunk:
        case TextChunk(text) | ReasoningChunk(text):
            return text
        case CallChunk():
            return chunk.arguments
    return ""


async def _in_pieces(chunk: Chunk) -> AsyncGenerator[Chunk, None]:
    """A chunk as pieces that are read in a moment, and in between everybody else has a turn."""
    match chunk:
        case TextChunk(text) if len(text) > MOST_AT_ONCE:
            for at in range(0, len(text), MOST_AT_ONCE):
                yield TextChunk(text[at : at + MOST_AT_ONCE])
                await asyncio.sleep(0)
        case _:
            yield chunk


async def _begin_again(context: TurnContext, paid: OpenRequest, answer: Answer, why: str, emit: Emit) -> None:
    """What came is void, and was paid for all the same."""
    spent = e.UsageCounted(paid.estimate(answer.letters), paid.purpose)
    answer.forget()
    await emit(spent)
    await emit(e.ReplyGrew(context.turn, "", ""))
    await emit(
        e.NoticeGiven("info", f"{why}: what had come of the answer is dropped, and it is asked for again")
    )


def check_limits(context: TurnContext, tokens: int, priced: bool | None = None) -> None:
    """Raises `LimitReached` where a request of so many tokens would pass a limit of the turn or the session.

    A limit of money that cannot be kept, since nobody knows the price, lets nothing through. `priced` says it of
    another model than the main one. A recording costs nothing.
    """
    if why := context.requests.why:
        raise LimitReached(why, RAISE_REQUESTS, "limits.requests")
    state = context.state()
    limits, usage = context.settings.limits, state.usage
    price = price_of_a_token(usage.session)
    known = bool(state.session.replay) or (state.model.priced if priced is None else priced)
    caps = (
        ("turn", usage.turn, limits.turn_tokens, limits.turn_cost),
        ("session", usage.session, limits.session_tokens, limits.session_cost),
    )
    for what, spent, most_tokens, most_cost in caps:
        if most_cost and not (known and (spent.cost is not None or state.session.replay)):
            raise LimitReached(
                f"What this {what} costs is not known, so limits.{what}_cost (${most_cost:g}) cannot be kept",
                f"set limits.{what}_tokens instead and limits.{what}_cost to 0, or choose a model whose price is known",
                f"limits.{what}_cost",
            )
        sentence = limit_reached(
            what, Spent(spent.input + spent.output, spent.cost), tokens, price, most_tokens, most_cost
        )
        if sentence:
            raise LimitReached(
                sentence,
                f"raise the limit in settings.toml or with --set limits.{what}_…, or go on in a new {what}",
                f"limits.{what}_{'cost' if f'limits.{what}_cost' in sentence else 'tokens'}",
            )


def price_of_a_token(usage: Usage) -> float | None:
    """What a token has cost on average, in dollars; None where that is not known."""
    tokens = usage.input + usage.output
    return usage.cost / tokens if usage.cost is not None and tokens else None


async def known_again(context: TurnContext, emit: Emit) -> int:
    """The room for a request after a server has told its window, or that it takes no schema; 0 where it has not."""
    model = context.state().model
    if not model.server:
        return 0
    event = chosen(context.settings, model.name, await context.model.abilities(model.name))
    if is_chosen(model, event):
        return 0
    await emit(event)
    return window_of(context.state()) if event.window_known else 0


async def next_model(context: TurnContext, tried: Collection[str]) -> e.ModelChosen | None:
    """The first fallback that was not tried in this turn; None where there is none. A recording has no other model."""
    if context.state().session.replay:
        return None
    for name in context.settings.models.fallbacks:
        if name in tried:
            continue
        try:
            return chosen(context.settings, name, await context.model.abilities(name))
        except ModelError:
            continue  # a name that nobody knows does not help
    return None
