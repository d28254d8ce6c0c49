"""Definition of a tool: description, permissions and implementation."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tui_agent.answers.schema import Function, Schema
from tui_agent.answers.values import ToolCall
from tui_agent.context.prompt import DirectoryListing
from tui_agent.edits.change import Change
from tui_agent.tools.context import Emit, ToolContext
from tui_agent.tools.load_files import LoadedFiles

#: Decision of a rule or a tool about a call.
Verdict = Literal["allow", "ask", "deny"]


class Invocation(Struct, frozen=True):
    """`entries` are validated. `id` is generated for replies without calls (`is_wire` False). `todos` are
    texts of the same reply's list."""

    id: str
    name: str
    entries: tuple[Any, ...] = ()
    arguments: str = ""
    fault: str = ""
    faults: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    is_wire: bool = True


class ToolResult(Struct, frozen=True):
    """`amount` is for the chat; `resend` are changes the model may send again; `details` are lines for the
    user, if different."""

    text: str = ""
    loaded: LoadedFiles = LoadedFiles()
    listings: tuple[DirectoryListing, ...] = ()
    ok: bool = True
    amount: str = ""
    details: str = ""
    resend: tuple[Change, ...] = ()
    #: Denied by a rule or the user.
    denied: bool = False
    #: Files with pictures for a model that sees.
    pictures: tuple[str, ...] = ()


def error(sentence: str) -> ToolResult:
    return ToolResult(f"Error: {sentence}", ok=False, amount="failed")


class CallContext(Struct, frozen=True):
    """verdict: default without a matching rule; None for the tool's own. words: shown above the preview.
    covers: scope of an approval besides the call. remembered: "exactly" this call, any call of the "session"
    under the same circumstances, or only once ("never"). Rules can only grant the first."""

    verdict: Verdict | None = None
    words: str = ""
    covers: str = ""
    remembered: Literal["exactly", "session", "never"] = "exactly"


def _no_targets(call: Invocation) -> tuple[str, ...]:
    return ()


def _allowed(call: Invocation, context: ToolContext) -> Verdict:
    return "allow"


def _offered(context: ToolContext) -> bool:
    return True


def _shown(call: Invocation) -> str:
    return ""


def exactly(call: Invocation) -> str:
    return f"{call.name} {call.arguments}"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Discovered by the registry."""

    name: str
    #: Property of a structured reply, and of function arguments, that lists its entries; "" if the arguments
    #: are one entry.
    key: str
    parameter: str = ""
    #: The description, and the JSON schema of one entry.
    words: str
    entry: Schema
    #: Limits of the list, such as its maximum length.
    limits: dict[str, Any] = field(default_factory=dict)
    #: Example entry for a model without function calls.
    example: Any
    #: Optional section of the system prompt.
    section: str = ""
    #: Position in the prompt and the schema.
    place: int
    #: (call, context, emit) -> result.
    run: Callable[[Invocation, ToolContext, Emit], Awaitable[ToolResult]]
    #: Whether the model waits for the result; otherwise the call ends the turn.
    answers: bool = True
    #: Whether it may run concurrently; sequential tools run before all others.
    parallel: bool = True
    #: Timeout in seconds; 0 for none, if it may wait for the user.
    seconds: float = 0.0
    #: Whether it is part of the session's requests; the same for all of them.
    offered: Callable[[ToolContext], bool] = _offered
    #: Whether it writes or executes something.
    acts: bool = False
    #: Whether it proposes changes or sub-tasks.
    proposes: bool = False
    #: Paths, patterns or commands matched by rules.
    targets: Callable[[Invocation], tuple[str, ...]] = _no_targets
    #: Verdict without a matching rule.
    verdict: Callable[[Invocation, ToolContext], Verdict] = _allowed
    #: Permission-relevant environment; None if irrelevant.
    circumstances: Callable[[Invocation, ToolContext], Awaitable[CallContext]] | None = None
    #: Whether `allow` rules match one exact target instead of a pattern.
    exact: bool = False
    #: The exact effect, displayed for approval; an approval covers these characters.
    preview: Callable[[Invocation], str] = exactly
    #: The part that an approval covers, if it is less than the preview, which then names it.
    approves: Callable[[Invocation], str] | None = None
    #: Short description for one line of the chat.
    shown: Callable[[Invocation], str] = _shown

    @property
    def function(self) -> Function:
        return Function(self.name, self.key, self.parameter)

    @property
    def schema(self) -> Schema:
        return {"type": "array", "description": self.words, "items": self.entry, **self.limits}


def call_of(found: ToolCall, todos: tuple[str, ...]) -> Invocation:
    return Invocation(found.id, found.name, found.entries, found.arguments, found.fault, found.faults, todos)


def in_json(entries: tuple[Any, ...]) -> str:
    return json.dumps(msgspec.to_builtins(entries), ensure_ascii=False, default=str)
