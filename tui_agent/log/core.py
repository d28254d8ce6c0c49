"""Dependencies shared by the parts of a session."""

from __future__ import annotations

from typing import NamedTuple

from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.settings.folders import Folders
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import Mode, Settings
from tui_agent.store.state import State
from tui_agent.workspace.workspace import Workspace


class Core(NamedTuple):
    """A session's log, folder, storage and settings. `folders` are the program's own."""

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
