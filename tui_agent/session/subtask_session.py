"""A sub-task's session: a regular session in a copy of the folder, with its parent's model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from tui_agent.edits.change import Pick
from tui_agent.errors import SessionError
from tui_agent.extensions.agents import AgentPrompt
from tui_agent.files.private import make_private
from tui_agent.log import directory
from tui_agent.log.core import Core
from tui_agent.log.journal import Journal
from tui_agent.log.log import Log
from tui_agent.log.storage import Storage
from tui_agent.outside_agents.profiles import profile_names
from tui_agent.session.session import Session
from tui_agent.settings.schema import Settings
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State
from tui_agent.store.store import Listener, Store
from tui_agent.subtasks.parent import Capacity, SubTaskPart
from tui_agent.subtasks.placed import Assignment, PlacedSession, shared_settings
from tui_agent.subtasks.run import folder_of
from tui_agent.workspace.copies import WorkCopy
from tui_agent.workspace.workspace import Workspace


class ChildSession:
    """Shares the parent's model, blobs and workspace child and leaves them open."""

    def __init__(self, session: Session, outside: str = "", part: str = "") -> None:
        """outside: the agent of another maker that does the turns. part: the hand-over for it."""
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
    """`part` is the hand-over. Raises `SessionError`."""
    folder = folder_of(parent.storage.folder, task)
    log = await asyncio.to_thread(_log, folder) if parent.storage.log is not None else None
    journal = Journal(Store(State()), log)
    agent = await _agent_of(parent, task)
    aliases = await asyncio.to_thread(parent.workspace.gate.linked_secrets)
    settings = settings_of(parent.loaded.settings, task, agent)
    checks = tuple(
        await asyncio.to_thread(parent.checks.chosen)
    )  # Approvals of this folder do not apply to its copy.
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
        model_name=task.model or (agent.model if agent else "") or parent.models.name,
        interactive=False,
        part=SubTaskPart(
            f"{agent.prompt}\n\n{part}" if agent else part,
            parent.workspace.root,
            capacity,
            parent.models.requests,
            (*parent.only, agent.tools) if agent and agent.tools is not None else parent.only,
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
    part: str,
    contents: Mapping[str, bytes | None],
    more: Sequence[str],
) -> PlacedSession | None:
    """In the place of the settings; None for an agent of another maker, which runs here. For `contents` and `more` see
    `SessionPlaces.open_worker`. Raises `SessionError` and `PlaceLost`."""
    from tui_agent.places.dask_place import packed

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
    log = await asyncio.to_thread(_log, folder) if parent.storage.log is not None else None
    channel, brought, is_there = await places.open_worker(name, contents, more)
    model = task.model or (agent.model if agent else "") or parent.models.name
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
        (*parent.only, agent.tools) if agent and agent.tools is not None else parent.only,
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
    """The user's own."""
    found = {}
    for name in names:
        with suppress(OSError, ValueError):
            found[name] = (config / name).read_text(encoding="utf-8")
    return found


async def _agent_of(parent: Session, task: SubTask) -> AgentPrompt | None:
    """Raises `SessionError` if it is gone."""
    if not task.agent:
        return None
    await parent.extensions.read()
    found = parent.extensions.agents.get(task.agent)
    if found is None and task.agent not in await asyncio.to_thread(profile_names, parent.folders):
        raise SessionError(f"There is no agent {task.agent} any more", "/agents lists them")
    return found


def settings_of(settings: Settings, task: SubTask, agent: AgentPrompt | None = None) -> Settings:
    """Returns settings with the limits of sub-tasks and without questions."""
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


def _log(folder: Path) -> Log:
    make_private(folder)
    return Log.create(folder / directory.LOG)
