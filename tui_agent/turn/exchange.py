"""One exchange with a model: masking, limits, request, response stream, endless repetition, token usage.
Sent messages never change, to keep the provider's prefix cache valid: a value that becomes known later is
masked in later messages only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from tui_agent.context.budget import Spending, limit_reached
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
from tui_agent.model.parts import Message
from tui_agent.model.rate_limit import RAISE_REQUESTS
from tui_agent.store import events as e
from tui_agent.store.conversation import OpenRequest, Purpose, Usage
from tui_agent.tools.load_files import window_of
from tui_agent.tools.tool import Emit
from tui_agent.turn.context import TurnContext
from tui_agent.turn.model_choice import chosen_model, is_chosen


async def mask_in_thread(context: TurnContext, messages: Sequence[Message]) -> list[Message]:
    """Model replies are unchanged."""
    return await asyncio.to_thread(mask_messages, context, messages)


def mask_messages(context: TurnContext, messages: Sequence[Message]) -> list[Message]:
    context.secrets.look(context.core.state.secrets)
    masked = []
    for message in messages:
        content = message.get("content")
        if message["role"] != "assistant" and isinstance(content, str):
            clean = context.secrets.masked(content)
            if clean != content:
                message = {**message, "content": clean}
        masked.append(message)
    return masked


async def mask_request(context: TurnContext, request: ModelRequest) -> ModelRequest:
    """Masks only messages that are new to the conversation."""
    if request.purpose in ("main", "subtask"):
        return request
    begun = await asyncio.to_thread(_begun, context, request) if request.purpose == "plan" else 0
    added = await mask_in_thread(context, request.messages[begun:])
    return replace(request, messages=(*request.messages[:begun], *added))


async def notify_masked(context: TurnContext, emit: Emit) -> None:
    if said := context.secrets.pending_notice():
        await emit(e.NoticeGiven("warning", said))


def _begun(context: TurnContext, request: ModelRequest) -> int:
    kept = context.sent.read(context.core.blobs, context.core.state.conversation.messages)
    same = 0
    for one, message in zip(kept, request.messages, strict=False):
        if one.message != message:
            break
        same += 1
    return same


#: Characters of repeated text per permitted repetition.
REPEATED_LETTERS = 200
#: Characters of a repeated block; divisor of the limit for such blocks.
LONGEST_BLOCK, BLOCKS = 4_000, 10
SEARCH_STEP = 512
_PROBE = 48


class Repetition:
    """A text of up to `LONGEST_BLOCK` characters repeated without gaps. `limit` is the maximum number of equal
    lines; 0 disables it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = max(limit * REPEATED_LETTERS, LONGEST_BLOCK * max(2, limit // BLOCKS))
        self._text = ""
        self._new = 0

    def feed(self, piece: str) -> bool:
        if not self._limit or not piece:
            return False
        self._text += piece
        self._new += len(piece)
        if self._new < SEARCH_STEP:
            return False
        self._new = 0
        text = self._text = self._text[-self._kept :]
        before = text.rfind(text[-_PROBE:], 0, len(text) - 1)
        period = len(text) - _PROBE - before
        if before < 0 or period > LONGEST_BLOCK:
            return False
        needed = max(self._limit * REPEATED_LETTERS, period * max(2, self._limit // BLOCKS))
        tail = text[-needed:]
        return len(text) >= needed and tail[period:] == tail[:-period]


#: Characters of a response; the rest is not read.
MOST_LETTERS = 4_000_000
#: Characters processed at once: about 10 ms.
MOST_AT_ONCE = 16_384

REPEATED = "The answer repeated itself (limits.repeat)"


class Answer:
    def __init__(self) -> None:
        self.letters = 0
        self.end: EndChunk | None = None
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def cut(self) -> bool:
        return self.end is None or self.end.reason not in ("stop", "tool_calls")

    @property
    def why(self) -> str:
        """Why the answer was cut, without a full stop; "" if unknown."""
        if self.letters > MOST_LETTERS:
            return "It was too long to be read to its end"
        return self.end.why if self.end else ""

    def take(self, chunk: Chunk) -> list[e.Event]:
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
        self.letters, self.end = 0, None
        self._pieces = []

    def is_worth_keeping(self) -> bool:
        """Slow."""
        return False


def cut_off(why: str) -> str:
    if not why:
        return "The answer was cut off"
    words = why.removesuffix(".")
    return f"The answer was cut off ({'the ' + words[4:] if words.startswith('The ') else words})"


async def open_request(context: TurnContext, model: str, tokens: int, purpose: Purpose) -> OpenRequest:
    """Reserves a request in `limits.requests` first, because sub-tasks share the limit. Raises
    `LimitReached`.
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
    """A retry in the middle of a response discards the partial answer, unless it is worth keeping; then the
    answer ends there. Raises a `ModelError` without a response.
    """
    request = await mask_request(context, request)
    await notify_masked(context, emit)
    usage: Usage | None = None
    repetition = Repetition(context.core.settings.limits.repeat)
    reading = _ReadingProgress(emit) if context.core.state.model.server else None
    if context.core.state.model.status in ("starting", "failed"):
        await emit(e.PhaseChanged("starting"))
    try:
        async with aclosing(context.model.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case SentChunk():
                        if context.core.state.turn.phase == "starting":
                            await emit(e.PhaseChanged("planning" if paid.purpose == "plan" else "asking"))
                    case ProgressChunk(read, of, waits):
                        if reading is not None:
                            await reading.tell(read, of, waits)
                    case UsageChunk(given, came, cached, cost):
                        usage = Usage(given, came, cached, cost, thinking=chunk.thinking)
                    case LeftOutChunk(words):
                        if all(words != notice.text for notice in context.core.state.notices.items):
                            await emit(e.NoticeGiven("info", words))
                    case RetryChunk(attempt, seconds, why):
                        if answer.letters:
                            if await asyncio.to_thread(answer.is_worth_keeping):
                                answer.end = EndChunk("cut", why=why)
                                break
                            spent = e.UsageCounted(paid.estimate(answer.letters), paid.purpose)
                            answer.forget()
                            await emit(spent)
                            await emit(e.ReplyGrew(context.turn, "", ""))
                            await emit(
                                e.NoticeGiven("info", f"{why}: discarded the partial answer; retrying")
                            )
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


class _ReadingProgress:
    """Each second, until the server's first output."""

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
    match chunk:
        case TextChunk(text) if len(text) > MOST_AT_ONCE:
            for at in range(0, len(text), MOST_AT_ONCE):
                yield TextChunk(text[at : at + MOST_AT_ONCE])
                await asyncio.sleep(0)
        case _:
            yield chunk


def check_limits(context: TurnContext, tokens: int, priced: bool | None = None) -> None:
    """Raises `LimitReached` if a request of `tokens` would exceed a limit; a cost limit needs a known price.
    Replayed recordings are free.
    """
    if why := context.requests.why:
        raise LimitReached(why, RAISE_REQUESTS, "limits.requests")
    state = context.core.state
    limits, usage = context.core.settings.limits, state.usage
    price = price_of_a_token(usage.session)
    known = bool(state.session.replay) or (state.model.priced if priced is None else priced)
    caps = (
        ("turn", usage.turn, limits.turn_tokens, limits.turn_cost),
        ("session", usage.session, limits.session_tokens, limits.session_cost),
    )
    for what, spent, most_tokens, most_cost in caps:
        if most_cost and not (known and (spent.cost is not None or state.session.replay)):
            raise LimitReached(
                f"The cost of this {what} is unknown, so limits.{what}_cost (${most_cost:g}) cannot be enforced",
                f"set limits.{what}_tokens instead and limits.{what}_cost to 0, or choose a model whose price is known",
                f"limits.{what}_cost",
            )
        sentence = limit_reached(
            what, Spending(spent.input + spent.output, spent.cost), tokens, price, most_tokens, most_cost
        )
        if sentence:
            raise LimitReached(
                sentence,
                f"raise the limit in settings.toml or with --set limits.{what}_…, or continue in a new {what}",
                f"limits.{what}_{'cost' if f'limits.{what}_cost' in sentence else 'tokens'}",
            )


def price_of_a_token(usage: Usage) -> float | None:
    tokens = usage.input + usage.output
    return usage.cost / tokens if usage.cost is not None and tokens else None


async def known_again(context: TurnContext, emit: Emit) -> int:
    model = context.core.state.model
    if not model.server:
        return 0
    event = chosen_model(context.core.settings, model.name, await context.model.abilities(model.name))
    if is_chosen(model, event):
        return 0
    await emit(event)
    return window_of(context.core.state) if event.window_known else 0


async def next_model(context: TurnContext, tried: Collection[str]) -> e.ModelChosen | None:
    if context.core.state.session.replay:
        return None
    for name in context.core.settings.models.fallbacks:
        if name in tried:
            continue
        try:
            return chosen_model(context.core.settings, name, await context.model.abilities(name))
        except ModelError:
            continue
    return None
