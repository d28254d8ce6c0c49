"""The conversation as sent to the model, its tool calls and decisions, pending facts, tokens and cost."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field


class Usage(Struct, frozen=True):
    """Tokens and dollars. `cost` is None if any part is unknown; `estimated` marks local counts. `thinking`
    is part of `output`.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = 0.0
    estimated: bool = False
    thinking: int = 0

    def plus(self, other: Usage) -> Usage:
        known = self.cost is not None and other.cost is not None
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cost=self.cost + other.cost if known else None,  # type: ignore[operator]
            estimated=self.estimated or other.estimated,
            thinking=self.thinking + other.thinking,
        )


def used_since(before: Usage, now: Usage) -> Usage:
    known = before.cost is not None and now.cost is not None
    return Usage(
        input=now.input - before.input,
        output=now.output - before.output,
        cached=now.cached - before.cached,
        cost=round(now.cost - before.cost, 9) if known else None,  # type: ignore[operator]
        estimated=now.estimated,
        thinking=now.thinking - before.thinking,
    )


LETTERS_A_TOKEN = 4


def estimated_tokens(letters: int) -> int:
    return -(-letters // LETTERS_A_TOKEN)


Purpose = Literal["plan", "main", "condense", "subtask", "draft"]


class OpenRequest(Struct, frozen=True):
    """Its own tokens, and dollars per input and output token, if known."""

    purpose: Purpose
    tokens: int
    prices: tuple[float, float] | None = None

    def estimate(self, letters: int) -> Usage:
        output = estimated_tokens(letters)
        cost = None
        if self.prices is not None:
            cost = self.tokens * self.prices[0] + output * self.prices[1]
        return Usage(self.tokens, output, 0, cost, estimated=True)


class UsageSlice(Struct, frozen=True):
    """`context` is the size of the last request in tokens, `parts` the same by part. `scale` is the ratio of
    the provider's count to the estimate `counted`. `last` is the last request to the main model.
    """

    turn: Usage = Usage()
    session: Usage = Usage()
    context: int = 0
    context_estimated: bool = False
    parts: dict[str, int] = field(default_factory=dict)
    counted: int = 0
    scale: float = 1.0
    last: Usage = Usage()
    #: Included in `turn`.
    planning: Usage = Usage()
    open: OpenRequest | None = None
    prefix_share: float = 0.0
    resets: int = 0


class SentMessage(Struct, frozen=True):
    """`blob` is its JSON. `files` and `instructions` are the shares of `tokens` for file contents and
    instruction files.
    """

    role: str
    blob: str
    tokens: int = 0
    files: int = 0
    instructions: int = 0
    kind: Literal["", "summary"] = ""


class ConversationSlice(Struct, frozen=True):
    """The sent messages, system prompt first. `files` maps paths to hashes of contained texts, `rows` to the
    last table row, `blocks` editor block names to digests, `contexts` instruction files to hashes ("":
    removed). `open_calls` have no result. `last` is the newest request. `restarts`: the next request
    begins a new conversation, because of `why`. `refusable` is the conversation before the current
    request, until its response.
    """

    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    messages: tuple[SentMessage, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    #: Facts for the next request: applied, skipped and refused changes.
    untold: tuple[str, ...] = ()
    open_calls: tuple[str, ...] = ()
    answered: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)
    last: tuple[SentMessage, ...] = ()
    restarts: bool = False
    why: str = ""
    #: Hash of the functions or schema sent with every request, and their tokens.
    head: str = ""
    head_tokens: int = 0
    #: Ids of the provider's files in the conversation; invalid if `uploads_ended`.
    uploads: tuple[str, ...] = ()
    uploads_ended: bool = False
    refusable: ConversationSlice | None = None
    #: The reported state of each sub-task.
    tasks: dict[str, str] = field(default_factory=dict)
    #: Files modified by an apply since the last request, to be bundled with the next.
    unbundled: tuple[str, ...] = ()
    #: Whether the last message said that the mode is `ask`.
    asks: bool = False


PermissionAnswer = Literal["once", "session", "always", "no"]


class ToolUse(Struct, frozen=True):
    """As displayed: subject, duration in seconds, amount. `details` is shown when the user expands the call."""

    id: str
    name: str
    shown: str = ""
    ok: bool = True
    seconds: float = 0.0
    amount: str = ""
    details: str = ""


class PermissionDecision(Struct, frozen=True):
    """`digest` identifies the exact call, `what` is its stored part. `reason` is for the model."""

    digest: str
    tool: str
    shown: str = ""
    what: str = ""
    answer: PermissionAnswer = "no"
    by: Literal["rule", "hook", "person", "nobody"] = "person"
    reason: str = ""
    #: Whether it would have written or executed something.
    acts: bool = False


class PermissionQuestion(Struct, frozen=True):
    """Without a tool: whether the turn may continue, because of `shown`. With `answers` (by key), a question
    of its own; with `typed`, typed text is part of the first answer.
    """

    call: str
    tool: str
    shown: str
    preview: str
    answers: tuple[tuple[str, str], ...] = ()
    typed: bool = False

    @property
    def words(self) -> str:
        if self.answers:
            return self.shown
        if not self.tool:
            return f"{self.shown}: continue?"
        return f"{self.tool} {self.shown} asks for permission"


class ListedTool(Struct, frozen=True):
    """`name` is the one in requests, `tool` the server's. `digest` is the fingerprint of description and
    schema.
    """

    name: str
    server: str
    tool: str
    description: str = ""
    schema: dict[str, Any] = {}
    digest: str = ""


class ServerToolsSlice(Struct, frozen=True):
    """Described in full (`inline`), or only named in the prompt. `unknown` are servers that had not listed
    their tools at the first request.
    """

    inline: tuple[ListedTool, ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def by_name(self) -> bool:
        return bool(self.named or self.unknown)
