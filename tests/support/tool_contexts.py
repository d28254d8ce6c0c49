"""A tool's context without a session: a state that the tool's own events change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tui_agent.files.blobs import Blobs
from tui_agent.model.client import Model
from tui_agent.settings.schema import Settings
from tui_agent.store.event import Event
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
        self.state, self.events = State(), list[Event]()
        for event in self.before:
            self.state = event.apply(self.state)
        self.context = ToolContext(
            state=lambda: self.state,
            settings=self.settings,
            workspace=cast(Workspace, self.fields.pop("workspace", None)),
            model=cast(Model, None),
            blobs=cast(Blobs, None),
            calls=self.calls,
            ask=self._ask if self.answers is not None else None,
            **self.fields,
        )

    async def emit(self, event: Event) -> None:
        self.events.append(event)
        self.state = event.apply(self.state)

    async def _ask(self, action: str, offered: Sequence[str]) -> Decision:
        assert self.answers, f"nothing answers {action}"
        answer = self.answers.pop(0)
        path, text = answer if isinstance(answer, tuple) else (answer, "")
        return Decision(action, path=path, patterns=(text,) if text else ())
