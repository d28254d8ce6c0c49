"""The session of a sub-task: one like any other, in a copy of the folder, that talks to the model of its parent."""

from __future__ import annotations

import asyncio
from dataclasses import replace as with_fields
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.files.private import make_private
from tui_agent.log import catalog
from tui_agent.log.journal import Journal
from tui_agent.log.log import Log
from tui_agent.log.storage import Kept
from tui_agent.model.client import Model
from tui_agent.model.pacing import PacedModel
from tui_agent.session.session import Session
from tui_agent.session.subtask_run import folder_of
from tui_agent.settings.schema import Settings
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.store.store import Store
from tui_agent.subtasks.graph import SubTask
from tui_agent.turn.context import TurnContext
from tui_agent.workspace.copies import WorkCopy
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.session.slots import Slots


class ChildSession(Session):
    """Shares the model, the blobs and the workspace child of its parent, and leaves them open."""

    part = ""

    def keep_no_versions(self) -> None:
        """Its repository is the person's, and its applies are nobody's to undo."""
        self._decisions.versions.keep_none()

    def paced_model(self) -> PacedModel:
        return PacedModel(self.model, self._pace)  # what it asks is counted by the model of its parent

    def renew_requests(self) -> None:
        """Nobody but the person renews them, in the session that the person talks to."""

    def _turn_context(self) -> TurnContext:
        return with_fields(super()._turn_context(), part=self.part)


async def open_child(
    parent: Session, task: SubTask, copy: WorkCopy, part: str, model: Model, slots: Slots
) -> ChildSession:
    """A session for one run of a sub-task, in its copy, with the hand-over `part`. Raises SessionError."""
    folder = folder_of(parent.kept.folder, task)
    log = await asyncio.to_thread(_log, folder) if parent.kept.log is not None else None
    journal = Journal(Store(State()), log)
    aliases = await asyncio.to_thread(parent.workspace.gate.linked_secrets)
    child = ChildSession(
        journal=journal,
        kept=Kept(log, None, parent.kept.blobs, folder),
        loaded=replace(parent.loaded, settings=settings_of(parent.loaded.settings, task)),
        folders=parent.folders,
        workspace=Workspace(Path(copy.root), child=parent.workspace.child, watched=False, aliases=aliases),
        start_folder=parent.start_folder,
        model=model,
        model_name=parent.model_name,
        interactive=False,
        slots=slots,
    )
    child.part = part
    child.requests = parent.requests
    child.keep_no_versions()
    await journal.record(e.SessionStarted(folder.name, copy.root))
    for digest, choice in parent.state.secrets.items():
        await journal.record(e.SecretDecided("", digest, choice))
    journal.tell(e.SessionOpened(parent.state.session.trusted))
    return child


def settings_of(settings: Settings, task: SubTask) -> Settings:
    """The parent's settings for a sub-task: nobody is asked, and its limits are those of sub-tasks."""
    own = settings.subtasks
    return replace(
        settings,
        autonomy="auto",
        auto_apply=False,
        planner_model="none" if task.files else settings.planner_model,
        files_api="off",
        subtasks=replace(own, max_depth=max(0, own.max_depth - 1)),
        limits=replace(settings.limits, session_tokens=own.max_tokens, session_cost=own.max_cost),
    )


def _log(folder: Path) -> Log:
    make_private(folder)
    return Log.create(folder / catalog.LOG)
