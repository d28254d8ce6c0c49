"""What a tool works with: the state, the workspace, the model, and whoever can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.files.blobs import Blobs
from tui_agent.files.known_secrets import KnownSecrets
from tui_agent.model.client import Model
from tui_agent.settings.schema import Settings
from tui_agent.store.commands import CommandResult, Isolated
from tui_agent.store.event import Event
from tui_agent.store.state import Decision, State
from tui_agent.workspace.workspace import Workspace

#: Tells an event; when it returns, the event is in the state, and on disk where it lasts.
Emit = Callable[[Event], Awaitable[None]]
#: Asks the person which file an action means: (action's name, what is offered) → a decision, maybe on another one.
Ask = Callable[[str, Sequence[str]], Awaitable[Decision]]


@dataclass
class Progress:
    """What has happened in a turn that its later steps go by."""

    #: What the person has decided about actions of the plan and nobody has followed yet.
    pending: list[Decision] = field(default_factory=list)
    #: Names of actions that the person has decided about.
    settled: set[str] = field(default_factory=set)
    #: Names of actions that are being looked for.
    names: set[str] = field(default_factory=set)
    #: How many sub-tasks were taken, and how many folders listed.
    sub_tasks: int = 0
    listed: int = 0
    #: The lines that searches have found, by path.
    hits: dict[str, list[int]] = field(default_factory=dict)
    #: Paths about which the person has decided while the model was asked again for their changes, and how often it
    #: was asked, by path.
    settled_paths: frozenset[str] = frozenset()
    asked: Mapping[str, int] = field(default_factory=dict)


def _none(path: str) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The collaborators of a tool. `ask` is None where nobody can be asked (headless); `decided` hands out, once,
    what the person has decided unasked; `look` finds out what became of the known files."""

    state: Callable[[], State]
    settings: Settings
    workspace: Workspace
    model: Model
    blobs: Blobs
    ask: Ask | None = None
    decided: Callable[[], Sequence[Decision]] = tuple
    look: Callable[[], Awaitable[None]] | None = None
    #: The hand-over of a sub-task; empty for a session that a person talks to.
    part: str = ""
    #: Where approvals for good are kept; None where there are none.
    approvals: Path | None = None
    #: Held while a question is open: calls that run at once ask one after the other.
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Why a file that was found may not be read; "" for those that may.
    refusal: Callable[[str], str] = _none
    #: Runs a command in a trial view: for at most so many seconds, or in the background. Raises a `TuiAgentError` where
    #: there is none.
    run_command: Callable[[str, float, bool], Awaitable[CommandResult]] | None = None
    #: What commands run in here, and in words what that does not promise.
    isolation: Callable[[], Awaitable[tuple[Isolated, str]]] | None = None
    progress: Progress = field(default_factory=Progress)
    #: The values that no model is sent.
    secrets: KnownSecrets = field(default_factory=KnownSecrets)
    #: What files cost in the request, in tokens, by path and hash.
    costs: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def turn(self) -> int:
        """The number of the turn that runs."""
        return self.state().turn.number


async def unheard(event: Event) -> None:
    """Tells nobody: for a step of which only the result is wanted."""
