"""The conversation as the model got it: what was sent, to whom, and what the next request has to tell."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class SentMessage(Struct, frozen=True):
    """One message of the conversation as the model got it: its JSON lies in the blob store under `blob`.

    Of its `tokens`, `files` are those of files' contents and `instructions` those of instruction files.
    """

    role: str
    blob: str
    tokens: int = 0
    files: int = 0
    instructions: int = 0
    #: `summary` is the one that stands for older messages.
    kind: Literal["", "summary"] = ""


class ConversationSlice(Struct, frozen=True):
    """What was sent, in order, the system prompt first, to which model in which dialect.

    `files` maps a path to the hash of the text that is in it, `rows` to the known file's row as it was last
    told, `blocks` an editor block's name to its digest, `contexts` an instruction or base file to its hash (empty:
    told that it is gone). `open_calls` are function calls without a result yet. `last` is the newest request as it
    went out. `restarts` says that the next request begins another conversation, and `why`. `refusable` is the
    conversation before the request that is out now, until its answer has come.
    """

    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    messages: tuple[SentMessage, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    #: Facts that the next request tells the model once: what was applied, skipped, refused.
    untold: tuple[str, ...] = ()
    open_calls: tuple[str, ...] = ()
    #: What is known already of the results of those, by id.
    answered: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)
    last: tuple[SentMessage, ...] = ()
    restarts: bool = False
    why: str = ""
    #: The hash of what goes with every request beside the messages (functions, schema), and its tokens.
    head: str = ""
    head_tokens: int = 0
    #: Ids of the provider's files that are in it; once `uploads_ended` they mean nothing any more.
    uploads: tuple[str, ...] = ()
    uploads_ended: bool = False
    refusable: ConversationSlice | None = None
    #: What was told of each sub-task, by its id.
    tasks: dict[str, str] = field(default_factory=dict)
    #: Files that an applied change touched since the last request: what belongs to them goes with the next.
    unbundled: tuple[str, ...] = ()
