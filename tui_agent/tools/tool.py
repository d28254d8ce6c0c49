"""A tool: description, permissions and implementation; its calls, results and dependencies. All tools, with their
descriptions for both dialects and the prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent import tools
from tui_agent.answers.schema import Function, Schema
from tui_agent.answers.values import ToolCall
from tui_agent.context.file_contents import LoadedFile
from tui_agent.context.known_files import KnownFile
from tui_agent.context.prompt import DirectoryListing
from tui_agent.edits.change import Change
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.log.core import Core
from tui_agent.model.client import Model
from tui_agent.store.commands import CheckResult, CommandResult, Isolated
from tui_agent.store.conversation import ListedTool
from tui_agent.store.event import Event
from tui_agent.store.state import Decision

if TYPE_CHECKING:
    from tui_agent.tools.call_hooks import CallHooks
    from tui_agent.web.pages import Page


class ServerResult(Struct, frozen=True):
    """`kept` is the file of a long result."""

    text: str
    failed: bool = False
    kept: str = ""
    bytes: int = 0
    pictures: tuple[str, ...] = ()


#: Answers a server's question (server, message, schema) with an action and its content.
AskPerson = Callable[[str, str, dict[str, Any]], Awaitable[tuple[str, dict[str, Any]]]]


class ServerCalls(Struct, frozen=True):
    #: Finds a tool by its name in requests, as its server lists it now.
    find: Callable[[str], Awaitable[ListedTool]]
    #: Refuses a tool that is no longer as listed. The last argument answers questions of the server.
    call: Callable[[ListedTool, dict[str, Any], AskPerson], Awaitable[ServerResult]]
    #: Names and descriptions of a server's tools.
    tools_of: Callable[[str], Awaitable[tuple[tuple[str, str], ...]]]
    #: Fingerprint of a server's configuration, which approvals cover.
    covers: Callable[[str], str]


#: Returns after an event is applied and, if lasting, on disk.
Emit = Callable[[Event], Awaitable[None]]
#: Asks which file an action means: (action name, offered paths) -> a decision, possibly about another action.
Ask = Callable[[str, Sequence[str]], Awaitable[Decision]]


@dataclass
class Progress:
    pending: list[Decision] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    #: Accepted sub-tasks; listed folders.
    sub_tasks: int = 0
    listed: int = 0
    #: Line numbers by path.
    hits: dict[str, list[int]] = field(default_factory=dict)
    #: Paths resolved by the user during a repeated request; repeated requests by path.
    settled_paths: frozenset[str] = frozenset()
    asked: Mapping[str, int] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    costs: dict[tuple[str, str], int] = field(default_factory=dict)


async def unheard(said: object) -> None:
    """Discards events of steps that run only for their result, and warnings."""


@dataclass(frozen=True, kw_only=True)
class SessionCalls:
    """None for a part that the session lacks. Each may raise `TuiAgentError`."""

    #: The user's new unprompted decisions; each call returns them once.
    decided: Callable[[], Sequence[Decision]] = tuple
    look: Callable[[], Awaitable[None]] | None = None
    #: Runs a command in a trial view, for at most the given seconds or in the background.
    run_command: Callable[[str, float, bool, str], Awaitable[CommandResult]] | None = None
    isolation: Callable[[], Awaitable[tuple[Isolated, str]]] | None = None
    #: Checks the proposed changes; the argument is the number of earlier repair requests.
    run_checks: Callable[[int], Awaitable[tuple[CheckResult, ...]]] | None = None
    #: Returns the text of a skill, or of a file in its folder, by name and path.
    read_skill: Callable[[str, str], Awaitable[str]] | None = None
    #: Returns a page by its address; True for the kept copy, to read on.
    read_page: Callable[[str, bool], Awaitable[Page]] | None = None
    #: Replaces a custom command by its text. The function raises if one of its commands may not run.
    expand: Callable[[str, Callable[[str], Awaitable[None]]], Awaitable[str]] | None = None
    #: Replaces resources of servers that a message names; returns the message and the text of the resources.
    resources: Callable[[str], Awaitable[tuple[str, str]]] | None = None
    servers: ServerCalls | None = None
    hooks: CallHooks | None = None
    notify: Callable[[str], Awaitable[None]] = unheard


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """`ask` is None in headless mode."""

    core: Core
    model: Model
    calls: SessionCalls
    ask: Ask | None = None
    #: Hand-over of a sub-task; "" for a user's session.
    part: str = ""
    #: Tools of a sub-task's agents, with patterns of their targets (none: any); each has to allow a call.
    only: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    #: Returns why a found file may not be read, or "".
    refusal: Callable[[str], str] = lambda path: ""
    progress: Progress = field(default_factory=Progress)
    #: Never sent to a model.
    secrets: KnownSecrets = field(default_factory=KnownSecrets)

    @property
    def turn(self) -> int:
        return self.core.state.turn.number

    async def answer(self, name: str, offered: Sequence[str]) -> Decision:
        """Asks the user, and keeps decisions about other actions for later."""
        assert self.ask is not None
        while (answer := await self.ask(name, offered)).action != name:
            self.progress.pending.append(answer)
        return answer

    def unsaved_text(self, path: str) -> str | None:
        buffer = self.core.state.buffers.get(path)
        return buffer.text if buffer is not None and buffer.unsaved else None


#: Decision of a rule or a tool about a call.
Verdict = Literal["allow", "ask", "deny"]


class Invocation(Struct, frozen=True):
    """`entries` are validated. `id` is generated for replies without calls (`is_wire` False). `todos` are
    texts of the same reply's list.
    """

    id: str
    name: str
    entries: tuple[Any, ...] = ()
    arguments: str = ""
    fault: str = ""
    faults: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    is_wire: bool = True


class LoadedFiles(Struct, frozen=True):
    """`before` are previous registry entries, `again` those of reloaded outdated files."""

    files: tuple[LoadedFile, ...] = ()
    facts: tuple[str, ...] = ()
    again: dict[str, KnownFile] = {}
    before: dict[str, KnownFile | None] = {}

    def plus(self, more: LoadedFiles) -> LoadedFiles:
        facts = tuple(fact for fact in more.facts if fact not in self.facts)
        return LoadedFiles(
            (*self.files, *more.files),
            (*self.facts, *facts),
            {**self.again, **more.again},
            {**more.before, **self.before},
        )

    @property
    def asked_for(self) -> tuple[LoadedFile, ...]:
        return tuple(file for file in self.files if file.loaded_by != "bundle")

    @property
    def bundled(self) -> tuple[LoadedFile, ...]:
        return tuple(file for file in self.files if file.loaded_by == "bundle")

    def with_part(self, part: LoadedFile) -> LoadedFiles:
        return replace(self, files=tuple(part if file.path == part.path else file for file in self.files))

    def without(self, paths: Iterable[str]) -> LoadedFiles:
        gone = set(paths)
        return replace(self, files=tuple(file for file in self.files if file.path not in gone))


class ToolResult(Struct, frozen=True):
    """`amount` is for the chat; `resend` are changes the model may send again; `details` are lines for the
    user, if different.
    """

    text: str = ""
    loaded: LoadedFiles = LoadedFiles()
    listings: tuple[DirectoryListing, ...] = ()
    ok: bool = True
    amount: str = ""
    details: str = ""
    resend: tuple[Change, ...] = ()
    denied: bool = False
    #: Files for a model that sees.
    pictures: tuple[str, ...] = ()


def error(sentence: str) -> ToolResult:
    return ToolResult(f"Error: {sentence}", ok=False, amount="failed")


def counted(count: int, noun: str, plural: str = "") -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"


class CallContext(Struct, frozen=True):
    """verdict: default without a matching rule; None for the tool's own. words: shown above the preview.
    covers: scope of an approval besides the call. remembered: "exactly" this call, any call of the
    "session" under the same circumstances, or only once ("never"). Rules can only grant the first.
    """

    verdict: Verdict | None = None
    words: str = ""
    covers: str = ""
    remembered: Literal["exactly", "session", "never"] = "exactly"


def exactly(call: Invocation) -> str:
    return f"{call.name} {call.arguments}"


@dataclass(frozen=True, kw_only=True)
class Tool:
    name: str
    #: Property of a structured reply, and of function arguments, that lists its entries; "" if the arguments
    #: are one entry.
    key: str
    parameter: str = ""
    #: The description, and the JSON schema of one entry.
    words: str
    entry: Schema
    limits: dict[str, Any] = field(default_factory=dict)
    example: Any
    section: str = ""
    #: Position in the prompt and the schema.
    place: int
    run: Callable[[Invocation, ToolContext, Emit], Awaitable[ToolResult]]
    #: Whether the model waits for the result; otherwise the call ends the turn.
    answers: bool = True
    #: Sequential tools run before all others.
    parallel: bool = True
    #: Timeout; 0 for none, if it may wait for the user.
    seconds: float = 0.0
    #: Whether all requests of the session include it.
    offered: Callable[[ToolContext], bool] = lambda context: True
    acts: bool = False
    proposes: bool = False
    #: Paths, patterns or commands matched by rules.
    targets: Callable[[Invocation], tuple[str, ...]] = lambda call: ()
    #: Decides a call without a matching rule.
    verdict: Callable[[Invocation, ToolContext], Verdict] = lambda call, context: "allow"
    #: The environment that permission depends on, if any.
    circumstances: Callable[[Invocation, ToolContext], Awaitable[CallContext]] | None = None
    #: Whether `allow` rules match one exact target instead of a pattern.
    exact: bool = False
    #: The exact effect, displayed for approval; an approval covers these characters.
    preview: Callable[[Invocation], str] = exactly
    #: The part that an approval covers, if less than the preview, which then names it.
    approves: Callable[[Invocation], str] | None = None
    #: One line for the chat; the targets if None.
    line: Callable[[Invocation], str] | None = None

    def shown(self, call: Invocation) -> str:
        return self.line(call) if self.line is not None else ", ".join(self.targets(call))

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


Dialect = Literal["tools", "structured"]
#: Tools of a model with a small window.
ESSENTIAL = ("read_files", "propose_changes")
_EXAMPLE = {"summary": "Adds a timeout to both calls.", "message": "Markdown"}


@cache
def all_tools() -> tuple[Tool, ...]:
    modules = (import_module(f"{tools.__name__}.{found.name}") for found in iter_modules(tools.__path__))
    found = [module.TOOL for module in modules if hasattr(module, "TOOL")]
    return tuple(sorted(found, key=lambda tool: (tool.place, tool.name)))


def switched_on(off: Collection[str] = (), *, few: bool = False) -> tuple[Tool, ...]:
    on = [tool for tool in all_tools() if tool.name not in off]
    return tuple(tool for tool in on if tool.name in ESSENTIAL or not few)


def reply_schema(base: Schema, on: Sequence[Tool]) -> Schema:
    """`base` takes precedence."""
    lists = {tool.key: tool.schema for tool in on}
    return {**base, "properties": {**base["properties"], **lists}}


def functions(on: Sequence[Tool]) -> list[Schema]:
    """Uses the format of the OpenAI chat API."""
    found: list[Schema] = []
    for tool in on:
        parameters = tool.entry
        if tool.parameter:
            entries = {key: value for key, value in tool.schema.items() if key != "description"}
            closed = {key: value for key, value in tool.entry.items() if key == "additionalProperties"}
            shapes, needed = {tool.parameter: entries}, [tool.parameter]
            parameters = {"type": "object", "properties": shapes, "required": needed, **closed}
        function = {"name": tool.name, "description": tool.words, "parameters": parameters}
        found.append({"type": "function", "function": function})
    return found


def prompt_sections(on: Sequence[Tool], dialect: Dialect, *, example: bool = True) -> list[str]:
    """A provider that enforces the schema needs no `example`."""
    if not on:
        return []
    if dialect == "tools":
        answering = ", ".join(tool.name for tool in on if tool.answers)
        others = ", ".join(tool.name for tool in on if not tool.answers)
        how = " ".join(
            [
                "# Functions\nEverything but your message is done by functions, and each call gets its own result.",
                f"These show you more, and you go on in the same turn: {answering}." if answering else "",
                f"These are for the person, who decides: {others}." if others else "",
                "Call several in one reply where you can. Never put a change into plain text.",
            ]
        )
    else:
        lines = ["# Keys"]
        if example:
            keys: dict[str, Any] = {**_EXAMPLE, **{tool.key: [tool.example] for tool in on}}
            lines.append(f"All the keys that an answer may have:\n{json.dumps(keys, ensure_ascii=False)}")
        if answering := ", ".join(f"`{tool.key}`" for tool in on if tool.answers):
            lines.append(f"What you ask for by {answering} is answered in the same turn; then go on.")
        how = "\n".join(lines)
    return [how, *(tool.section for tool in on if tool.section)]
