"""The conversation as sent to the model, and pending facts for the next request."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class SentMessage(Struct, frozen=True):
    """A message as sent; the blob store holds its JSON under `blob`.

    `files` and `instructions` are the shares of `tokens` for file contents and instruction files.
    """

    role: str
    blob: str
    tokens: int = 0
    files: int = 0
    instructions: int = 0
    #: `summary` marks the summary of older messages.
    kind: Literal["", "summary"] = ""


class ConversationSlice(Struct, frozen=True):
    """The sent messages, system prompt first, with model and dialect.

    `files` maps paths to hashes of contained texts, `rows` to the last table row, `blocks` editor block
    names to digests, `contexts` instruction and base files to hashes ("": reported as removed).
    `open_calls` are function calls without a result. `last` is the newest request. `restarts`: the next
    request begins a new conversation, because of `why`. `refusable` is the conversation before the current
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
    #: Known results of open calls, by id.
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
    #: The reported state of each sub-task, by id.
    tasks: dict[str, str] = field(default_factory=dict)
    #: Files modified by an apply since the last request, to be bundled with the next.
    unbundled: tuple[str, ...] = ()
    #: Whether the last message said that the mode is `ask`.
    asks: bool = False
