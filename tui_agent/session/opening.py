"""Opens a new or stored session, or a sub-task's session in a copy of the folder."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tui_agent import __version__
from tui_agent.edits.change import Pick
from tui_agent.errors import NotKept, SessionError
from tui_agent.files.git_folder import git_folder_elsewhere
from tui_agent.files.names import display_path
from tui_agent.files.private import make_private
from tui_agent.log import directory, storage
from tui_agent.log.core import Core
from tui_agent.log.journal import Journal
from tui_agent.log.log import Log
from tui_agent.log.storage import Storage
from tui_agent.session.models import make_model
from tui_agent.session.session import Session
from tui_agent.settings import loading, trust
from tui_agent.settings.folders import Folders, close_to_others, user_folders, why_not_writable
from tui_agent.settings.loading import LoadedSettings, read_prompts
from tui_agent.settings.schema import Settings
from tui_agent.store import events as e
from tui_agent.store.events import Listener, Store
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State
from tui_agent.subtasks.parent import Capacity, SubTaskPart
from tui_agent.workspace.copies import WorkCopy
from tui_agent.workspace.early_start import EarlyChild
from tui_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.extensions.markdown_files import AgentPrompt
    from tui_agent.processes.child import ChildProcess
    from tui_agent.subtasks.placed import PlacedSession


class ChildSession:
    """Leaves its parent's model, blobs and workspace child open."""

    def __init__(self, session: Session, outside: str = "", part: str = "") -> None:
        """`outside`: the other agent that does the turns. `part`: its hand-over."""
        self.session = session
        self._outside, self._part = outside, part

    @property
    def state(self) -> State:
        return self.session.state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self.session.subscribe(listener)

    def start(self, paths: list[str]) -> None:
        self.session.workspace.start(paths)

    async def run_turn(self, text: str, attachments: Sequence[str] = ()) -> None:
        if not self._outside:
            await self.session.chat.submit(text, attachments)
            await self.session.chat.finished()
            return
        await self.session.delegate(self._outside, f"{self._part}\n\n{text}".strip())
        self._part = ""
        await self.session.chat.finished()
        if self.state.review.open:
            await self.session.checks.run()

    async def apply(self, picks: Sequence[Pick]) -> None:
        await self.session.review.apply(picks)

    async def subtasks_settled(self) -> None:
        await self.session.subtasks.settled()

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]:
        return await self.session.chat.earlier(before, count)

    async def close(self) -> None:
        await self.session.close()


async def open_child(
    parent: Session, task: SubTask, copy: WorkCopy, part: str, capacity: Capacity
) -> ChildSession:
    from tui_agent.subtasks.run import folder_of  # it imports the turn

    folder = folder_of(parent.storage.folder, task)
    log = await _log_in(folder, parent)
    journal = Journal(Store(State()), log)
    agent = await _agent_of(parent, task)
    aliases = await asyncio.to_thread(parent.workspace.gate.linked_secrets)
    settings = settings_of(parent.loaded.settings, task, agent)
    checks = tuple(await asyncio.to_thread(parent.checks.chosen))  # approvals do not apply to a copy
    core = Core(
        journal,
        Workspace(Path(copy.root), child=parent.workspace.child, watched=False, aliases=aliases),
        Storage(log, None, parent.storage.blobs, folder),
        replace(parent.loaded, settings=replace(settings, checks=replace(settings.checks, commands=checks))),
        parent.folders,
    )
    child = Session(
        core,
        start_folder=parent.start_folder,
        model=parent.models.paced(),
        model_name=_model_of(parent, task, agent),
        interactive=False,
        part=SubTaskPart(
            f"{agent.prompt}\n\n{part}" if agent else part,
            parent.workspace.root,
            capacity,
            parent.models.requests,
            _only(parent, agent),
        ),
        open_child=open_child,
        open_placed=open_placed,
        prompts=parent.prompts,
    )
    await journal.record(e.SessionStarted(folder.name, copy.root))
    for digest, choice in parent.state.secrets.items():
        await journal.record(e.SecretDecided("", digest, choice))
    for name, effort in parent.state.model.efforts.items():
        await journal.record(e.EffortChosen(name, effort))
    await child.mcp.share(parent.mcp)
    child.hooks.share(parent.hooks, task.agent)
    journal.publish(e.SessionOpened(parent.state.session.trusted))
    return ChildSession(child, task.agent if task.agent and agent is None else "", part)


async def open_placed(
    parent: Session,
    task: SubTask,
    contents: Mapping[str, bytes | None],
    more: Sequence[str],
    part: str,
) -> PlacedSession | None:
    """`None` for another agent, which runs here. For `contents` and `more` see `SessionPlaces.open_worker`.
    Raises `SessionError` and `PlaceLost`.
    """
    from tui_agent.places.dask_place import packed
    from tui_agent.subtasks.placed import Assignment, PlacedSession, shared_settings
    from tui_agent.subtasks.run import folder_of

    agent = await _agent_of(parent, task)
    if task.agent and agent is None:
        return None
    settings, places = settings_of(parent.loaded.settings, task, agent), parent.commands.places
    name = settings.subtasks.place
    commands = places.settings_of(name).model
    checks = tuple(
        replace(check, place="")
        for check in await asyncio.to_thread(parent.checks.chosen)
        if check.place in ("", name)
    )
    folder = folder_of(parent.storage.folder, task)
    log = await _log_in(folder, parent)
    if log is not None:
        log.sync_at_end()  # If this machine fails, the sub-task starts again, because the parent's log has no result.
    channel, brought, is_there = await places.open_worker(name, contents, more)
    model = _model_of(parent, task, agent)
    child = PlacedSession(
        channel,
        Journal(Store(State()), log),
        parent.storage.blobs,
        parent.models.paced(),
        {model, settings.planner_model, *settings.models.fallbacks} - {"", "none"},
    )
    assignment = Assignment(
        task,
        f"{agent.prompt}\n\n{part}" if agent else part,
        model,
        shared_settings(replace(settings, checks=replace(settings.checks, commands=checks))),
        parent.prompts.words,
        sorted(brought.items),
        name,
        commands,
        parent.start_folder,
        parent.state.session.trusted,
        _only(parent, agent),
        dict(parent.state.model.efforts),
        await asyncio.to_thread(_instructions, parent.folders.config, settings.instructions.names),
    )
    try:
        await child.begin(assignment, None if is_there else packed(brought))
    except BaseException:
        await child.close()
        raise
    return child


def _instructions(config: Path, names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        with suppress(OSError, ValueError):
            found[name] = (config / name).read_text(encoding="utf-8")
    return found


async def _agent_of(parent: Session, task: SubTask) -> AgentPrompt | None:
    """Raises `SessionError` if it no longer exists."""
    if not task.agent:
        return None
    from tui_agent.outside_agents.profiles import profile_names  # it imports the proxy

    await parent.extensions.read()
    found = parent.extensions.agents.get(task.agent)
    if found is None and task.agent not in await asyncio.to_thread(profile_names, parent.folders):
        raise SessionError(f"There is no agent {task.agent} any more", "/agents lists them")
    return found


def _model_of(parent: Session, task: SubTask, agent: AgentPrompt | None) -> str:
    return task.model or (agent.model if agent else "") or parent.models.name


def _only(parent: Session, agent: AgentPrompt | None) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    return (*parent.only, agent.tools) if agent and agent.tools is not None else parent.only


async def _log_in(folder: Path, parent: Session) -> Log | None:
    """`None` if the parent's session has none either."""
    if parent.storage.log is None:
        return None

    def make() -> Log:
        make_private(folder)
        return Log.create(folder / directory.LOG)

    return await asyncio.to_thread(make)


def settings_of(settings: Settings, task: SubTask, agent: AgentPrompt | None = None) -> Settings:
    off = (*settings.tools.off, *(agent.off if agent else ()))
    own = settings.subtasks
    return replace(
        settings,
        mode="edit",
        planner_model="none" if task.files else settings.planner_model,
        files_api="off",
        tools=replace(settings.tools, off=off),
        subtasks=replace(own, begin="auto", max_depth=max(0, own.max_depth - 1)),
        limits=replace(settings.limits, session_tokens=own.max_tokens, session_cost=own.max_cost),
    )


class Opening(Struct, frozen=True):
    """`session` is "" for a new one, `last`, or an id. `interactive`: the user can be asked."""

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
    """Children started ahead are adopted, or closed if unsuitable. Raises `SessionError`."""
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
        open_child=open_child,
        open_placed=open_placed,
    )
    if opening.interactive:
        session.workspace.launch()  # parallel to the creation of the panes
    await _begin(session, opening, replay, found)
    return session


_NOT_IN_FORCE: dict[trust.Standing, str] = {
    "not trusted": "This folder has its own settings, which are ignored: “Trust this workspace” shows them",
    "changed": "The settings of this folder have changed since you trusted them and are ignored: "
    "“Trust this workspace” shows them",
}


class _Found(Struct, frozen=True):
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
    asked = (folders.data, opening.session, opening.workspace)
    close_to_others(folders)
    not_kept = why_not_writable(folders.data)
    if not not_kept:
        try:
            kept, state = storage.open_session_log(*asked) if opening.session else storage.begin(folders.data)
        except NotKept as error:
            not_kept = str(error)
    if not_kept:
        kept, state = storage.in_memory(*asked)
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
