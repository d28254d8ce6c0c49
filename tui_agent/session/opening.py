"""Opens a new or stored session."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tui_agent import __version__
from tui_agent.errors import NotKept
from tui_agent.files.git_folder import git_folder_elsewhere
from tui_agent.files.names import display_path
from tui_agent.log import directory, storage
from tui_agent.log.core import Core
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.session.models import make_model
from tui_agent.session.session import Session
from tui_agent.settings import loading, trust
from tui_agent.settings.folders import Folders, close_to_others, user_folders, why_not_writable
from tui_agent.settings.loading import LoadedSettings, read_prompts
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.store.store import Store
from tui_agent.workspace.early_start import EarlyChild
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.processes.child import ChildProcess
    from tui_agent.subtasks.parent import RunSession


class Opening(Struct, frozen=True):
    """`session` is "" for a new one (default), `last`, or an id. `started_from` is the initial working directory.
    `interactive`: the user can be asked."""

    workspace: Path
    session: str = ""
    overrides: tuple[str, ...] = ()
    trust: bool = False
    replay: Path | None = None
    record: Path | None = None
    rehearsal: bool = False
    started_from: Path | None = None
    interactive: bool = False
    draft: str = ""


async def open_session(
    opening: Opening,
    folders: Folders | None = None,
    ahead: EarlyChild | None = None,
    model_ahead: ChildProcess | None = None,
) -> Session:
    """Opens a session in its last state. Raises `SessionError`. A workspace child started `ahead` is adopted,
    or closed if unsuitable; likewise the model's child, which a replay does not need."""
    folders = folders or user_folders()
    found = await asyncio.to_thread(_find, opening, folders)
    state, kept, loaded, workspace = found.state, found.storage, found.loaded, found.workspace
    running = ahead.process if ahead and ahead.fits(workspace, found.filters) else None
    if ahead and not running:
        await ahead.process.close()
    replay = opening.replay or (Path(state.session.replay) if state.session.rehearsal else None)
    store = Store(state)
    journal = Journal(store, kept.log, kept.number)
    model, name = make_model(loaded.settings, replay, opening.record, store, model_ahead)
    own = (folders.data, folders.config, folders.cache)
    work = Workspace(workspace, own=own, ahead=running, filters=found.filters)
    try:
        start_folder = (opening.started_from or workspace).resolve().relative_to(workspace).as_posix()
    except ValueError:
        start_folder = "."
    session = Session(
        Core(journal, work, kept, loaded, folders),
        start_folder=start_folder,
        model=model,
        model_name=name,
        interactive=opening.interactive,
        prompts=read_prompts(folders.config, work.root if found.trusted else None),
        open_child=_open_child,
        open_placed=_open_placed,
    )
    if opening.interactive:
        session.workspace.launch()  # Starts in parallel with the creation of the panes.
    await _begin(session, opening, replay, found)
    return session


async def _open_child(*arguments: Any, **named: Any) -> RunSession:
    from tui_agent.session.subtask_session import open_child

    return await open_child(*arguments, **named)


async def _open_placed(*arguments: Any) -> RunSession | None:
    from tui_agent.session.subtask_session import open_placed

    return await open_placed(*arguments)


_NOT_IN_FORCE: dict[trust.Standing, str] = {
    "not trusted": "This folder has its own settings, which are ignored: “Trust this workspace” shows them",
    "changed": "The settings of this folder have changed since you trusted them and are ignored: "
    "“Trust this workspace” shows them",
}


class _Found(Struct, frozen=True):
    """`not_kept` is the reason the session cannot be stored; for `filters` see `Workspace`."""

    storage: Storage
    state: State
    not_kept: str
    workspace: Path
    trusted: bool
    filters: str
    loaded: LoadedSettings
    not_in_force: str
    elsewhere: str = ""


def _find(opening: Opening, folders: Folders) -> _Found:
    """Runs in one thread call; each separate call would wait for the screen."""
    kept, state, not_kept = _take(opening, folders)
    workspace = Path(state.session.workspace) if state.session.id else opening.workspace
    standing = trust.trust_status(workspace, folders)
    trusted = opening.trust or standing == "trusted"
    filters = trust.fingerprint(workspace) if opening.trust else trust.trusted_filters(workspace, folders)
    loaded = loading.load(folders, workspace, trusted, opening.overrides)
    withheld = opening.interactive and not trusted and trust.files_of(workspace)
    not_in_force = _NOT_IN_FORCE[standing] if withheld else ""
    named = git_folder_elsewhere(str(workspace))
    elsewhere = named and (
        f"The repository that .git points to does not name this folder as its work tree, and is not used: if it is "
        f"yours, set core.worktree in {display_path(os.path.join(named, 'config'))}"
    )
    return _Found(kept, state, not_kept, workspace, trusted, filters, loaded, not_in_force, elsewhere)


def _take(opening: Opening, folders: Folders) -> tuple[Storage, State, str]:
    """The third value is the reason the session cannot be stored, or ""."""
    data = folders.data
    asked = (data, opening.session, opening.workspace)
    close_to_others(folders)
    unwritable = why_not_writable(data)
    if unwritable:
        return *storage.in_memory(*asked), unwritable
    try:
        return *(storage.open_session_log(*asked) if opening.session else storage.begin(data)), ""
    except NotKept as error:
        return *storage.in_memory(*asked), str(error)


async def _begin(session: Session, opening: Opening, replay: Path | None, found: _Found) -> None:
    journal = session.journal
    state = journal.store.state
    if not state.session.id:
        new_id = (
            session.storage.lock.folder.name
            if session.storage.lock
            else directory.new_id(session.folders.data)
        )
        started = e.SessionStarted(
            new_id, str(opening.workspace), str(replay or ""), opening.rehearsal, __version__
        )
        await journal.record_soon(started)
        await session.settle_others()
    else:
        await session.resume()
    chosen = found.loaded.sources.get("mode") in ("--set", "the environment")
    if chosen and found.loaded.settings.mode != (journal.store.state.session.mode or "edit"):
        await journal.record(e.ModeChosen(found.loaded.settings.mode))
    if opening.draft:
        journal.grow(e.DraftChanged(opening.draft))
    session.warn_about_unwritten()
    journal.publish(e.SessionOpened(found.trusted, found.not_kept))
    _describe(session, opening.started_from)
    said = (
        *found.storage.lost,
        *map(str, found.loaded.faults),
        *map(str, session.prompts.faults),
        found.not_kept,
        found.not_in_force,
        found.elsewhere,
    )
    session.start_warnings([*filter(None, said)])


def _describe(session: Session, started_from: Path | None) -> None:
    log = session.storage.log
    if log is None:
        return
    log.set_meta(workspace=str(session.workspace.root), started_from=str(started_from or ""))

    def note(event: e.Event, state: State) -> None:
        match event:
            case e.TurnStarted(turn, request):
                first = {"first_request": request[:200]} if turn == 1 else {}
                log.set_meta(turns=turn, updated=time.time(), **first)
            case e.TurnEnded():
                log.set_meta(updated=time.time())
            case e.SessionRenamed(name):
                log.set_meta(name=name)

    session.subscribe(note)
