"""What a turn works with, and what it has gathered so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_agent.answers.values import Reply
from tui_agent.context.editor import OpenFile
from tui_agent.context.folders import Listing
from tui_agent.context.instructions import ContextFile
from tui_agent.context.known import KnownFile
from tui_agent.context.loaded import LoadedFile
from tui_agent.files.blobs import Blobs
from tui_agent.model.client import Model
from tui_agent.model.pacing import Allowance
from tui_agent.model.provider_files import ProviderFiles
from tui_agent.settings.schema import Settings
from tui_agent.store.events import RequestSent
from tui_agent.store.state import Decision, State
from tui_agent.turn.sent import Sent
from tui_agent.turn.texts import Texts
from tui_agent.workspace.workspace import Workspace

#: Asks the person which file an action means: (action's name, what is offered) → a decision, maybe on another one.
Ask = Callable[[str, Sequence[str]], Awaitable[Decision]]


@dataclass(frozen=True)
class Desk:
    """The collaborators of a turn. `ask` is None where nobody can be asked (headless); `decided` hands out,
    once, what the person has decided unasked.

    `look` finds out what became of the known files; `texts` are instruction files by what the disk last said of
    them, `sent` the messages that went out; `user_folder` is where the person's own instructions lie.
    """

    state: Callable[[], State]
    settings: Settings
    workspace: Workspace
    model: Model
    blobs: Blobs
    prompt_words: dict[str, Any]
    reply_schema: dict[str, Any]
    start_folder: str
    ask: Ask | None = None
    #: What the prompt that this turn belongs to may still ask for.
    requests: Allowance = field(default_factory=Allowance)
    decided: Callable[[], Sequence[Decision]] = tuple
    look: Callable[[], Awaitable[None]] | None = None
    texts: Texts = field(default_factory=Texts)
    sent: Sent = field(default_factory=Sent)
    user_folder: Path | None = None
    #: The planner's words and the shape of its answer; without words the built-in planner plans.
    planning_words: dict[str, Any] = field(default_factory=dict)
    planning_schema: dict[str, Any] = field(default_factory=dict)
    #: The hand-over of a sub-task; empty for a session that a person talks to.
    part: str = ""
    #: Where files are uploaded; None where they go out as text.
    provider_files: ProviderFiles | None = None


@dataclass
class Gathered:
    """What the next request will carry, and the reply that came; one turn owns one of these."""

    query: str
    turn: int
    files: list[LoadedFile] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    reply: Reply = field(default_factory=Reply)
    #: Files that are read again, as the registry had them before.
    again: dict[str, KnownFile] = field(default_factory=dict)
    bundled: list[LoadedFile] = field(default_factory=list)
    #: What the editor shows, as far as it may be sent.
    opened: list[OpenFile] = field(default_factory=list)
    memory: str = ""
    #: The person asked to go on with what was being done.
    goes_on: bool = False
    #: The instruction and base files in force now.
    contexts: list[ContextFile] = field(default_factory=list)
    #: What the person has decided about actions of the plan and nobody has done yet.
    decisions: list[Decision] = field(default_factory=list)
    #: How many sub-tasks were taken in this turn.
    split: int = 0
    #: How many folders were listed in this turn.
    listed: int = 0
    #: Names of actions that the person has decided already.
    settled: set[str] = field(default_factory=set)
    #: How long the chains of this plan have searched, in seconds.
    searched: float = 0.0
    #: What files cost in the request, in tokens, by path and hash.
    costs: dict[tuple[str, str], int] = field(default_factory=dict)
    #: Open files are sent as excerpts, for want of room.
    excerpts: bool = False
    #: The model was asked for a summary in this turn, and gave none.
    no_summary: bool = False
    #: How the registry had each file of this turn before it was loaded.
    before: dict[str, KnownFile | None] = field(default_factory=dict)
    #: What earlier requests of this turn carried: the paths of files, and the blobs of the messages.
    shown: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)

    def handed_over(self, sent: RequestSent) -> None:
        """The request is on its way: nothing of this is sent twice."""
        self.shown.update(sent.files)
        self.own.update(message.blob for message in sent.messages)
        self.query = ""
        self.files, self.listings, self.found, self.facts = [], [], [], []
        self.again, self.bundled, self.memory = {}, [], ""
