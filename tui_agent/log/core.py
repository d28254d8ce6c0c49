"""Dependencies shared by the parts of a session, and calls of a front end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

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

    def declared(method: Call) -> Call:
        method.changes = changes  # ty: ignore[missing-attribute]
        return method

    return declared


class Core(NamedTuple):
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
