"""The dependencies of a tool: state, workspace, model, user and servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tui_agent.files.blobs import Blobs
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.model.client import Model
from tui_agent.settings.schema import Mode, Settings
from tui_agent.store.commands import CheckResult, CommandResult, Isolated
from tui_agent.store.conversation import ListedTool
from tui_agent.store.event import Event
from tui_agent.store.state import Decision, State
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.tools.call_hooks import CallHooks
    from tui_agent.web.pages import Page


class ServerResult(Struct, frozen=True):
    """`kept` is the file of a long result, `pictures` are files."""

    text: str
    failed: bool = False
    kept: str = ""
    bytes: int = 0
    pictures: tuple[str, ...] = ()


#: Answers a server's question (server, message, schema) with an action and its content.
AskPerson = Callable[[str, str, dict[str, Any]], Awaitable[tuple[str, dict[str, Any]]]]


class ServerCalls(Struct, frozen=True):
    """Each raises `TuiAgentError`."""

    #: A tool by its name in requests, as its server lists it now.
    find: Callable[[str], Awaitable[ListedTool]]
    #: Calls a tool; refuses if it is no longer as listed. The last argument answers questions of the server.
    call: Callable[[ListedTool, dict[str, Any], AskPerson], Awaitable[ServerResult]]
    #: Names and descriptions of a server's tools.
    tools_of: Callable[[str], Awaitable[tuple[tuple[str, str], ...]]]
    #: Fingerprint of a server's configuration, which approvals cover.
    covers: Callable[[str], str]


#: Emits an event; returns after it is applied and, if lasting, on disk.
Emit = Callable[[Event], Awaitable[None]]
#: Asks which file an action means: (action name, offered paths) -> a decision, possibly about another action.
Ask = Callable[[str, Sequence[str]], Awaitable[Decision]]


@dataclass
class Progress:
    #: The user's decisions that are not yet executed.
    pending: list[Decision] = field(default_factory=list)
    #: Names of actions decided by the user.
    settled: set[str] = field(default_factory=set)
    #: Names of actions in progress.
    names: set[str] = field(default_factory=set)
    #: Numbers of accepted sub-tasks and of listed folders.
    sub_tasks: int = 0
    listed: int = 0
    #: Line numbers of search hits, by path.
    hits: dict[str, list[int]] = field(default_factory=dict)
    #: Paths resolved by the user during a repeated request, and the number of repeated requests by path.
    settled_paths: frozenset[str] = frozenset()
    asked: Mapping[str, int] = field(default_factory=dict)
    #: Serialises questions of concurrent calls.
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Tokens of a file in a request, by path and hash.
    costs: dict[tuple[str, str], int] = field(default_factory=dict)


def _none(path: str) -> str:
    return ""


async def _no_warning(text: str) -> None:
    """Shows nothing."""


@dataclass(frozen=True, kw_only=True)
class SessionCalls:
    """None for a part that the session lacks. Each may raise `TuiAgentError`."""

    #: The user's new unprompted decisions, once.
    decided: Callable[[], Sequence[Decision]] = tuple
    #: Updates the known files.
    look: Callable[[], Awaitable[None]] | None = None
    #: Runs a command in a trial view, for at most the given seconds or in the background.
    run_command: Callable[[str, float, bool, str], Awaitable[CommandResult]] | None = None
    #: The isolation of commands, and its limits as a sentence.
    isolation: Callable[[], Awaitable[tuple[Isolated, str]]] | None = None
    #: Runs the checks on the proposed changes; the argument is the number of earlier repair requests.
    run_checks: Callable[[int], Awaitable[tuple[CheckResult, ...]]] | None = None
    #: The text of a skill, or of a file in its folder, by name and path.
    read_skill: Callable[[str, str], Awaitable[str]] | None = None
    #: A page of the web, by its address; True for the kept copy, to read on.
    read_page: Callable[[str, bool], Awaitable[Page]] | None = None
    #: Replaces a custom command by its text.
    expand: Callable[[str], Awaitable[str]] | None = None
    #: Replaces resources of servers that a message names; returns the message and the text of the resources.
    resources: Callable[[str], Awaitable[tuple[str, str]]] | None = None
    servers: ServerCalls | None = None
    hooks: CallHooks | None = None
    #: Shows the user a warning.
    notify: Callable[[str], Awaitable[None]] = _no_warning


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """`ask` is None in headless mode."""

    state: Callable[[], State]
    settings: Settings
    workspace: Workspace
    model: Model
    blobs: Blobs
    calls: SessionCalls
    ask: Ask | None = None
    #: The hand-over of a sub-task; "" for a user's session.
    part: str = ""
    #: Tools of a sub-task's agents, with patterns of their targets (none: any); each of them has to allow a call.
    only: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    #: The user's own instructions and permanent approvals; None if there are none.
    user_folder: Path | None = None
    #: The reason a found file may not be read, or "".
    refusal: Callable[[str], str] = _none
    progress: Progress = field(default_factory=Progress)
    #: Values that are never sent to a model.
    secrets: KnownSecrets = field(default_factory=KnownSecrets)

    @property
    def mode(self) -> Mode:
        return self.state().session.mode or self.settings.mode

    @property
    def turn(self) -> int:
        return self.state().turn.number


async def unheard(event: Event) -> None:
    """Discards events of steps that run only for their result."""
