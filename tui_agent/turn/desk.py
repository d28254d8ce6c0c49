"""What a turn works with, and what it has gathered so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.answers.values import Reply
from tui_agent.context.listing import Listing
from tui_agent.context.loaded import LoadedFile
from tui_agent.files.blobs import Blobs
from tui_agent.model.client import Model
from tui_agent.settings.schema import Settings
from tui_agent.store.state import State
from tui_agent.workspace.workspace import Workspace

#: Asks the person which file an action means: (action's name, nearest names) → a path, or nothing.
Ask = Callable[[str, Sequence[str]], Awaitable[str]]


@dataclass(frozen=True)
class Desk:
    """The collaborators of a turn. `ask` is None where nobody can be asked (headless)."""

    state: Callable[[], State]
    settings: Settings
    workspace: Workspace
    model: Model
    blobs: Blobs
    prompt_words: dict[str, Any]
    reply_schema: dict[str, Any]
    start_folder: str
    ask: Ask | None = None


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

    def handed_over(self) -> None:
        """The request is on its way: nothing of this is sent twice."""
        self.query = ""
        self.files, self.listings, self.found, self.facts = [], [], [], []
