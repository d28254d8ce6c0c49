"""What a tool is: what the model is told of it, what it may do, and the function that does it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from tui_agent.answers.schema import Function, Schema
from tui_agent.answers.values import ToolCall
from tui_agent.context.folders import DirectoryListing
from tui_agent.edits.change import Change
from tui_agent.tools.context import Emit, ToolContext
from tui_agent.tools.files import LoadedFiles

#: What the person's rules, or a tool by itself, say of a call.
Verdict = Literal["allow", "ask", "deny"]


class Invocation(Struct, frozen=True):
    """One call of a tool by the model. `entries` are its arguments, read and checked.

    `id` is what the provider knows it by; in a reply that has no calls (the structured dialect, changes in prose) it is
    one of ours, and `is_wire` is false. `todos` are the texts of the list that the same reply sets.
    """

    id: str
    name: str
    entries: tuple[Any, ...] = ()
    arguments: str = ""
    fault: str = ""
    faults: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    is_wire: bool = True


class ToolResult(Struct, frozen=True):
    """What came of a call: what the model reads of it, and how much it was, in words for the chat.

    `text` is told beside the files and listings; `resend` are changes that the model may be asked for again. `details`
    are lines for the person, who opens the call, where they are others than the text.
    """

    text: str = ""
    loaded: LoadedFiles = LoadedFiles()
    listings: tuple[DirectoryListing, ...] = ()
    ok: bool = True
    amount: str = ""
    details: str = ""
    resend: tuple[Change, ...] = ()
    #: A rule, or the person, did not allow it.
    denied: bool = False


def error(sentence: str) -> ToolResult:
    return ToolResult(f"Error: {sentence}", ok=False, amount="failed")


class Circumstances(Struct, frozen=True):
    """Where a call would be done, as far as permission depends on it.

    verdict: what is done where no rule says it, None for what the tool says. words: shown above what would happen.
    covers: what an approval is for, beside the call. remembered: a yes is for "exactly" this, for any call in the same
    circumstances in this "session", or for this once ("never"); only the first can be had from a rule.
    """

    verdict: Verdict | None = None
    words: str = ""
    covers: str = ""
    remembered: Literal["exactly", "session", "never"] = "exactly"


def _no_targets(call: Invocation) -> tuple[str, ...]:
    return ()


def _allowed(call: Invocation, context: ToolContext) -> Verdict:
    return "allow"


def _shown(call: Invocation) -> str:
    return ""


def exactly(call: Invocation) -> str:
    """What a call would do: its arguments as they were written."""
    return f"{call.name} {call.arguments}"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool. Its file is found by the registry, which both dialects, the prompt and the settings read."""

    name: str
    #: The property of a structured reply that lists its calls, and the list in the arguments of a function call;
    #: without that, the arguments are one entry.
    key: str
    parameter: str = ""
    #: What the model reads beside its name, and the JSON schema of one entry.
    words: str
    entry: Schema
    #: Of the list, such as how many entries it may have.
    limits: dict[str, Any] = field(default_factory=dict)
    #: An entry as the prompt shows it to a model without function calls.
    example: Any
    #: A section of the system prompt, where a few words are not enough.
    section: str = ""
    #: Its place among the others, in the prompt and in the schema.
    place: int
    #: Does it: (call, context, emit) → result.
    run: Callable[[Invocation, ToolContext, Emit], Awaitable[ToolResult]]
    #: Whether the model waits for the result; else the call is for the person, and ends the turn.
    answers: bool = True
    #: Whether it can run beside others; else the calls of a reply are done one after the other, before all others.
    parallel: bool = True
    #: Seconds after which it is stopped; 0 where it may wait for the person.
    seconds: float = 0.0
    #: Whether it writes or runs something.
    acts: bool = False
    #: What the patterns of rules are held against: paths, patterns or commands.
    targets: Callable[[Invocation], tuple[str, ...]] = _no_targets
    #: What is done where no rule says it.
    verdict: Callable[[Invocation, ToolContext], Verdict] = _allowed
    #: Where it would be done; None where that makes no difference.
    circumstances: Callable[[ToolContext], Awaitable[Circumstances]] | None = None
    #: Whether a rule that allows is for exactly one target, not for a pattern.
    exact: bool = False
    #: Exactly what would happen, as it is shown to the person who is asked; an approval is for these characters.
    preview: Callable[[Invocation], str] = exactly
    #: What a call is about, in a few words on one line of the chat.
    shown: Callable[[Invocation], str] = _shown

    @property
    def function(self) -> Function:
        return Function(self.name, self.key, self.parameter)

    @property
    def schema(self) -> Schema:
        """The list of entries, as a property of a structured reply."""
        return {"type": "array", "description": self.words, "items": self.entry, **self.limits}

    def digest(self, call: Invocation) -> str:
        """What an approval is for: exactly this, by its SHA-256."""
        return hashlib.sha256(f"{self.name}\0{self.preview(call)}".encode(errors="surrogatepass")).hexdigest()


def call_of(found: ToolCall, todos: tuple[str, ...]) -> Invocation:
    return Invocation(found.id, found.name, found.entries, found.arguments, found.fault, found.faults, todos)


def in_json(entries: tuple[Any, ...]) -> str:
    """Arguments that were read from a structured reply, as text."""
    import msgspec

    return json.dumps(msgspec.to_builtins(entries), ensure_ascii=False, default=str)
