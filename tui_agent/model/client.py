"""A language model, as everyone here sees one: a request in, chunks out, cancelled by closing the stream.

Three things answer to `Model`: the child process that runs litellm (`model.child`), a recording
(`model.recording`), and a recorder that wraps either.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from tui_agent.model.parts import Message, Origin, Part
from tui_agent.model.rules import Effort

__all__ = ["Message"]

Pass = Literal["plan", "main", "condense", "subtask", "draft"]
#: `cut`: the stream ended before the model did; `length`: the model ran out of room.
EndReason = Literal["stop", "tool_calls", "length", "refused", "cut"]


class ModelRequest(Struct, frozen=True):
    """One request. `messages` are as `parts` describes them and `tools` as in the OpenAI chat API; `images` beside a
    message's content ({`media_type`, `data` in base 64}) go out as parts of it if the model can see.

    `schema` is a JSON schema that the reply must follow, for providers that can hold a model to one;
    `timeout` is in seconds from when the request is sent, or from the last sign of life after that.
    """

    model: str
    messages: tuple[Message, ...]
    purpose: Pass = "main"
    tools: tuple[dict[str, Any], ...] = ()
    schema: dict[str, Any] | None = None
    timeout: float = 120.0
    #: Ids of files at the provider; a user message that names one (`"fileId": "…"`) goes out with it.
    files: tuple[str, ...] = ()
    #: For a local server: what it wants to be told besides, the most tokens of the reply (0: no limit), and how it is
    #: held to the schema; where that is said, a refusal of the schema is a `SchemaRefused`.
    options: dict[str, Any] = {}
    most: int = 0
    schema_form: str = ""
    #: How much the model thinks; see the setting.
    effort: Effort = "auto"
    #: None leaves it to the provider.
    temperature: float | None = None
    #: The same for all requests that begin alike: a provider may keep what it has read under this key.
    session: str = ""
    #: How long the provider is asked to keep what it has read.
    cache: Literal["short", "long"] = "short"
    #: Optional parts that the server has refused: see `completion.OPTIONAL`.
    without: frozenset[str] = frozenset()


class TextChunk(Struct, frozen=True, tag="text"):
    text: str


class ReasoningChunk(Struct, frozen=True, tag="reasoning"):
    text: str


class CallChunk(Struct, frozen=True, tag="call"):
    """A piece of a function call: `id` and `name` come with its first piece, `arguments` is appended."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class UsageChunk(Struct, frozen=True, tag="usage"):
    """Tokens as the provider counted them; `cost` in dollars, None if the price is not known.

    Of `input`, `cached` were read from a cache and `written` put into one, `written_long` of these for an hour. Of
    `output`, `thinking` were not shown as text.
    """

    input: int
    output: int
    cached: int = 0
    cost: float | None = None
    written: int = 0
    written_long: int = 0
    thinking: int = 0


class ProgressChunk(Struct, frozen=True, tag="progress"):
    """A local server reads the request: so many of its tokens are read, 0 where it says nothing. `waits` is why it does
    not read it yet."""

    read: int = 0
    of: int = 0
    waits: str = ""


class RetryChunk(Struct, frozen=True, tag="retry"):
    """The provider asked us to wait: `seconds` remain until attempt number `attempt`.

    What came of the answer before it is void: the next attempt begins again. Who would rather keep it closes the
    stream.
    """

    attempt: int
    seconds: float
    why: str


class SentChunk(Struct, frozen=True, tag="sent"):
    """The request goes out now; until then, what answers was getting ready."""


class LeftOutChunk(Struct, frozen=True, tag="left out"):
    """The provider refused a value that the person may have chosen, and the request was sent again without it: `words`
    is a sentence without its full stop."""

    words: str


class EndChunk(Struct, frozen=True, tag="end"):
    """The stream is over. `parts` is the whole reply in its order, with what the provider wants back; without parts
    it is the text and the calls that came.

    `why` says in a sentence without its full stop what ended an answer that the model did not end itself.
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
    """What is known of a model. `window` is in tokens, 0 where nobody knows; `known` is whether litellm does.

    `plans` is whether it can be asked for a plan: a recording only where it holds one.
    """

    model: str
    window: int = 0
    tools: bool = False
    schema: bool = False
    cache_marks: bool = False
    known: bool = False
    plans: bool = True
    #: Whether it takes images.
    sees: bool = False
    #: The kind of a local server: "local" for one that is not known, "gateway" for such a one that is given a key. How
    #: many requests it works on at once, 0 where nobody knows.
    server: str = ""
    slots: int = 0
    #: Dollars for a token of input and one of output; None where nobody knows.
    prices: tuple[float, float] | None = None


class TokenCount(Struct, frozen=True):
    """Tokens of each text. `exact` is false for an estimate made before the tokenizer was ready, and for a count
    with another model's vocabulary."""

    counts: tuple[int, ...]
    exact: bool


@runtime_checkable
class Reaching(Protocol):
    """A model that is reached by variables of the environment, which can be told later."""

    async def reach(self, environment: Mapping[str, str]) -> None:
        """Add these to what it was started with. Raises a `ModelError`."""
        ...


@runtime_checkable
class Warming(Protocol):
    """A model that can get ready for a first request while a person still writes."""

    async def warm(self, model: str) -> None:
        """Open a connection to the server of `model`, or learn about it if it is a local one. Never fails."""
        ...


class Model(Protocol):
    """Where answers come from."""

    async def start(self) -> None:
        """Get ready in the background; returns as soon as requests may be sent (they wait if need be)."""

    async def abilities(self, model: str) -> Abilities: ...

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        """The tokens of each text. Without `wait` an estimate comes at once where a count would take its time."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The answer, piece by piece, `EndChunk` last. Raises a `ModelError`. Closing it cancels the request."""
        ...

    async def close(self) -> None: ...
