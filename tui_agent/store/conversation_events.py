"""Events of the conversation with the model: what was sent, what came back, what it cost."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from tui_agent.answers.values import NextStep, SubTaskRequest, TodoItem
from tui_agent.store.conversation import SentMessage
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.state import InstructionFile
from tui_agent.store.usage import OpenRequest, Purpose, Usage


class UploadsEnded(Lasting, frozen=True):
    """What was uploaded is deleted, or was another process's: the next request begins again with text."""


class ConversationBegun(Lasting, frozen=True):
    """The conversation as sent begins again with `messages`: what the next request appends to.

    `files`, `contexts` and `head` are as in `ConversationSlice`; `open_calls` are carried over.
    """

    turn: int
    why: Literal["first", "model", "files", "condensed", "edited"]
    messages: tuple[SentMessage, ...]
    files: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)
    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    head: str = ""
    head_tokens: int = 0
    open_calls: tuple[str, ...] = ()


class SummaryMade(Lasting, frozen=True):
    """Older messages were summarised into this text, or (`kept`) only the most recent were kept, so many of all."""

    turn: int
    text: str
    kept: int = 0
    of: int = 0


class MemoryEdited(Lasting, frozen=True):
    """The person wrote what the next request to go on tells the model of the state of the work."""

    text: str


class MemoryBuilt(Lasting, frozen=True):
    """The person asked to go on: this is what the model is told of the state of the work."""

    turn: int
    text: str


class InstructionsRead(Lasting, frozen=True):
    """Which instruction files are in force, and which were left out, has changed."""

    files: tuple[InstructionFile, ...]


class RequestSent(Lasting, frozen=True):
    """A request went to a model: what it added to the conversation, and how much of it was there before.

    `messages` are those that this request appended to the conversation; `reset` says that this had begun again.
    `rows`, `blocks` and `contexts` are the table rows, the digests of editor blocks and the hashes of instruction
    files as they are in it now. `prefix_share` is the share of the last request's bytes that begin this one.
    """

    turn: int
    purpose: Literal["plan", "main", "condense", "subtask"]
    messages: tuple[SentMessage, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    tokens: int = 0
    estimated: bool = False
    parts: dict[str, int] = field(default_factory=dict)
    prefix_share: float = 0.0
    reset: bool = False
    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    contexts: dict[str, str] = field(default_factory=dict)
    #: Ids of the provider's files that the new messages refer to.
    uploads: tuple[str, ...] = ()
    #: What was told of each sub-task, by its id.
    tasks: dict[str, str] = field(default_factory=dict)
    #: What it is counted as until the provider has counted it; None in logs of older versions.
    paid: OpenRequest | None = None


class RequestWithdrawn(Lasting, frozen=True):
    """The provider refused the last request as too long: the conversation is as it was before it."""

    turn: int


class RetryCounted(Passing, frozen=True):
    """The provider asked us to wait; `seconds` are left before the next attempt."""

    seconds: int
    attempt: int
    why: str


class PromptRead(Passing, frozen=True):
    """A local server reads the request since so many seconds; `read` of `of` tokens, 0 where it says nothing.

    `waits` is why it does not read it yet: then the seconds are those of the wait.
    """

    seconds: int
    read: int = 0
    of: int = 0
    waits: str = ""


class ReplyStreamed(Passing, frozen=True):
    """A piece of the answer came: `text` of the part that is shown, and `letters` in all; `part` is empty where
    nothing of it is shown. `writing` is the file whose change began with it, `files` how many did so far."""

    part: Literal["summary", "message", "reasoning", ""]
    text: str = ""
    letters: int = 0
    writing: str = ""
    files: int = 0


class ReplyGrew(Growing, frozen=True):
    """The answer so far, as a crash would leave it."""

    turn: int
    summary: str
    message: str
    reasoning: str = ""
    letters: int = 0

    @property
    def key(self) -> str:
        return "reply"


class ReplyRead(Lasting, frozen=True):
    """An answer ended and was read. `sent` is the message as the next request will carry it."""

    turn: int
    summary: str
    message: str
    reasoning: str = ""
    sent: SentMessage | None = None
    open_calls: tuple[str, ...] = ()
    #: The ids that its changes get, in order; each is told by a `ChangeProposed` of its own.
    changes: tuple[str, ...] = ()
    todos: tuple[TodoItem, ...] = ()
    sub_tasks: tuple[SubTaskRequest, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    cut: bool = False
    faults: tuple[str, ...] = ()
    #: What cut it, as a sentence without its full stop; "" where the answer does not say.
    why: str = ""


class ReplyLeftOff(Lasting, frozen=True):
    """An answer broke off (stopped, crashed): what had come of it stays in the transcript, as far as it came."""

    turn: int
    summary: str = ""
    message: str = ""
    reasoning: str = ""


class UsageCounted(Lasting, frozen=True):
    """A request was paid for."""

    usage: Usage
    purpose: Purpose = "main"


class ModelOwesNews(Lasting, frozen=True):
    """Something happened that the model is told with the next request, once."""

    fact: str
