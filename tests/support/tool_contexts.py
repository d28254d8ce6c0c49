"""A tool's context without a session: a state that the tool's own events change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tui_agent.log.core import Core
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.model.client import Model
from tui_agent.settings.folders import Folders
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import Settings
from tui_agent.store.event import Event
from tui_agent.store.events import Store, fold
from tui_agent.store.state import Decision, State
from tui_agent.tools.tool import SessionCalls, ToolContext
from tui_agent.workspace.workspace import Workspace


@dataclass
class Bench:
    """`answers` are the paths that the person chooses, in order; without them nobody can be asked."""

    before: Sequence[Event] = ()
    calls: SessionCalls = field(default_factory=SessionCalls)
    settings: Settings = field(default_factory=Settings)
    answers: list[str | tuple[str, str]] | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = list[Event]()
        self._store = Store(fold(self.before))
        core = Core(
            journal=cast(Journal, SimpleNamespace(store=self._store)),
            workspace=cast(Workspace, self.fields.pop("workspace", None)),
            storage=cast(Storage, None),
            loaded=LoadedSettings(self.settings),
            folders=cast(Folders, SimpleNamespace(config=Path(os.devnull))),
        )
        self.context = ToolContext(
            core=core,
            model=cast(Model, None),
            calls=self.calls,
            ask=self._ask if self.answers is not None else None,
            **self.fields,
        )

    async def emit(self, event: Event) -> None:
        self.events.append(event)
        self._store.emit(event)

    @property
    def state(self) -> State:
        return self._store.state

    async def _ask(self, action: str, offered: Sequence[str]) -> Decision:
        assert self.answers, f"nothing answers {action}"
        answer = self.answers.pop(0)
        path, text = answer if isinstance(answer, tuple) else (answer, "")
        return Decision(action, path=path, patterns=(text,) if text else ())
