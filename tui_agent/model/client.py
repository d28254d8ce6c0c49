"""Interface of a language model: a request in, a stream of chunks out. Closing the stream cancels the
request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from tui_agent.model.parts import Message, Origin, Part
from tui_agent.processes.serve import Send
from tui_agent.settings.schema import Effort

Pass = Literal["plan", "main", "condense", "subtask", "draft"]
#: `cut`: the stream ended early. `length`: the output limit was reached.
EndReason = Literal["stop", "tool_calls", "length", "refused", "cut"]


class ModelRequest(Struct, frozen=True):
    """`messages` have the form described in `parts`; `tools` that of the OpenAI chat API.

    `images` beside a message's content ({`media_type`, `data` in base64}) become parts if the model
    accepts images. `schema` is a JSON schema for the reply, for providers that enforce one. `timeout` is
    in seconds since the last sign of activity.
    """

    model: str
    messages: tuple[Message, ...]
    purpose: Pass = "main"
    tools: tuple[dict[str, Any], ...] = ()
    schema: dict[str, Any] | None = None
    timeout: float = 120.0
    #: Ids of uploaded files, sent with the user message that names them (`"fileId": "…"`).
    files: tuple[str, ...] = ()
    #: For a local server: additional parameters, output limit (0: none) and method of schema enforcement.
    #: With a method, a rejected schema raises `SchemaRefused`.
    options: dict[str, Any] = {}
    most: int = 0
    schema_form: str = ""
    effort: Effort = "auto"
    temperature: float | None = None
    #: Cache key of requests with a common prefix.
    session: str = ""
    cache: Literal["short", "long"] = "short"
    #: Optional parts rejected by the server; see `completion.OPTIONAL`.
    without: frozenset[str] = frozenset()


class TextChunk(Struct, frozen=True, tag="text"):
    text: str


class ReasoningChunk(Struct, frozen=True, tag="reasoning"):
    text: str


class CallChunk(Struct, frozen=True, tag="call"):
    """A fragment of a function call: `id` and `name` are in the first; `arguments` are concatenated."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class UsageChunk(Struct, frozen=True, tag="usage"):
    """Token counts. `cost` is in dollars, `None` if the price is unknown.

    `cached` and `written` are the parts of `input` read from and written to a cache; `written_long` is
    the part of `written` kept for an hour. `thinking` is the hidden part of `output`.
    """

    input: int
    output: int
    cached: int = 0
    cost: float | None = None
    written: int = 0
    written_long: int = 0
    thinking: int = 0


class ProgressChunk(Struct, frozen=True, tag="progress"):
    """Prompt tokens that a local server has processed, 0 if unknown. `waits` is the reason for a delay
    before that.
    """

    read: int = 0
    of: int = 0
    waits: str = ""


class RetryChunk(Struct, frozen=True, tag="retry"):
    """Attempt `attempt` follows in `seconds`, as the provider requested. Voids the partial reply; to keep
    it, close the stream.
    """

    attempt: int
    seconds: float
    why: str


class SentChunk(Struct, frozen=True, tag="sent"):
    """The request is being sent."""


class LeftOutChunk(Struct, frozen=True, tag="left out"):
    """The request was repeated without a configured value that the provider rejected. `words` has no full
    stop.
    """

    words: str


class EndChunk(Struct, frozen=True, tag="end"):
    """`parts` is the whole reply in order, with items to be returned to the provider; if empty, the reply is
    the streamed text and calls. `why` is the reason of a premature end, without a full stop.
    """

    reason: EndReason
    why: str = ""
    parts: tuple[Part, ...] = ()
    origin: Origin | None = None


Chunk = (
    SentChunk
    | TextChunk
    | ReasoningChunk
    | CallChunk
    | UsageChunk
    | ProgressChunk
    | RetryChunk
    | LeftOutChunk
    | EndChunk
)


class Abilities(Struct, frozen=True):
    """`window` is in tokens, 0 if unknown. `known`: litellm has an entry for the model. `plans`: it can
    answer planning requests; a recording can if it contains one.
    """

    model: str
    window: int = 0
    tools: bool = False
    schema: bool = False
    cache_marks: bool = False
    known: bool = False
    plans: bool = True
    sees: bool = False
    #: Kind of a local server: "local" if unidentified, "gateway" if also used with a key. Its parallel
    #: requests, 0 if unknown.
    server: str = ""
    slots: int = 0
    #: Dollars per input and per output token; None if unknown.
    prices: tuple[float, float] | None = None


class TokenCount(Struct, frozen=True):
    """`exact` is False for estimates and for another model's vocabulary."""

    counts: tuple[int, ...]
    exact: bool


@runtime_checkable
class CanReach(Protocol):
    """Configured by environment variables, which can be added later."""

    async def reach(self, environment: Mapping[str, str]) -> None:
        """Raises a `ModelError`."""
        ...


@runtime_checkable
class CanWarm(Protocol):
    async def warm(self, model: str) -> None:
        """Opens a connection or queries a local server's properties. Never raises."""
        ...


class Model(Protocol):
    async def start(self) -> None:
        """Starts in the background. Requests can be sent immediately."""

    async def abilities(self, model: str) -> Abilities: ...

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        """Estimates if counting would block, unless `wait`."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The last chunk is an `EndChunk`. Raises a `ModelError`."""
        ...

    async def close(self) -> None: ...


JOINED_SECONDS = 0.02
_GROWING = (TextChunk, ReasoningChunk, CallChunk)


class JoinedChunks:
    """Sends the first chunk immediately and merges the others."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: Chunk | None = None
        self._sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def add(self, chunk: Chunk) -> None:
        if self._held is not None:
            one = joined_chunks(self._held, chunk)
            if one is not None:
                self._held = one
                return
            await self.flush()
        loop = asyncio.get_running_loop()
        wait = self._sent + JOINED_SECONDS - loop.time()
        if not isinstance(chunk, _GROWING) or wait <= 0:
            await self._send(chunk)
            self._sent = loop.time()
            return
        self._held = chunk
        self._timer = loop.call_later(wait, self._in_time)

    async def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        held, self._held = self._held, None
        if held is not None:
            await self._send(held)
            self._sent = asyncio.get_running_loop().time()

    def _in_time(self) -> None:
        self._sending = asyncio.create_task(self.flush())


def joined_chunks(held: Chunk, chunk: Chunk) -> Chunk | None:
    match held, chunk:
        case (TextChunk(one), TextChunk(other)):
            return TextChunk(one + other)
        case (ReasoningChunk(one), ReasoningChunk(other)):
            return ReasoningChunk(one + other)
        case (CallChunk(), CallChunk(index, "", "", more)) if index == held.index:
            return CallChunk(index, held.id, held.name, held.arguments + more)
    return None


def merged_chunks(chunks: Iterable[Chunk]) -> list[Chunk]:
    made: list[Chunk] = []
    for chunk in chunks:
        one = joined_chunks(made[-1], chunk) if made else None
        if one is None:
            made.append(chunk)
        else:
            made[-1] = one
    return made


Vocabulary = Literal["o200k_base", "cl100k_base"]
#: Typical of English and code; other scripts have fewer bytes per token.
BYTES_PER_TOKEN = 4

_O200K = ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "o1", "o3", "o4", "chatgpt-", "codex-")
_CL100K = ("gpt-4", "gpt-3.5", "text-embedding-3")


def estimate(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def reply_room(window: int) -> int:
    return min(4096, window // 4)


def vocabulary(model: str) -> tuple[Vocabulary, bool]:
    """Returns the nearest vocabulary, and whether it is exact."""
    name = model.rpartition("/")[2]
    if name.startswith(_O200K):
        return "o200k_base", True
    if name.startswith(_CL100K):
        return "cl100k_base", True
    return "o200k_base", False
