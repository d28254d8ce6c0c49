"""Dependencies shared by the parts of a session, and calls of a front end.

Each call declares whether it changes state; a read-only session refuses those that do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from tui_agent.errors import OnlyRead
from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.settings.folders import Folders
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import Mode, Settings
from tui_agent.store.state import State
from tui_agent.workspace.workspace import Workspace

Call = TypeVar("Call", bound=Callable[..., Any])


def call(*, changes: bool) -> Callable[[Call], Call]:
    """With `changes`, a method raises `OnlyRead` in a read-only session. Its object must have a `state`."""

    def declared(method: Call) -> Call:
        guarded = _guarded(method) if changes else method
        guarded.changes = changes  # ty: ignore[missing-attribute]
        return cast("Call", guarded)

    return declared


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def refused_later(self: Any, *arguments: Any, **named: Any) -> Any:
            refuse_where_only_read(self.state)
            return await method(self, *arguments, **named)

        return refused_later

    @functools.wraps(method)
    def refused(self: Any, *arguments: Any, **named: Any) -> Any:
        refuse_where_only_read(self.state)
        return method(self, *arguments, **named)

    return refused


def refuse_where_only_read(state: State) -> None:
    if state.session.read_only:
        raise OnlyRead(
            f"The session {state.session.id} is open elsewhere and is read-only here",
            "close it there, or fork it",
        )


class Core(NamedTuple):
    """`folders` are the program's own."""

    journal: Journal
    workspace: Workspace
    storage: Storage
    loaded: LoadedSettings
    folders: Folders

    @property
    def state(self) -> State:
        return self.journal.store.state

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def mode(self) -> Mode:
        return self.state.session.mode or self.settings.mode

    @property
    def blobs(self) -> Blobs:
        return self.storage.blobs
