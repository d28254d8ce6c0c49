"""Sub-tasks for the interface: edit the graph, run, stop, restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.errors import SessionError
from tui_agent.log.core import Core, call
from tui_agent.processes.background import start_task
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask, SubTaskState, faults, may_become
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.subtasks.merge import ResultMerger, SubTaskRestart
    from tui_agent.subtasks.parent import Parent, RunSession
    from tui_agent.subtasks.scheduler import Scheduler

INTERRUPTED = "Interrupted because tui-agent ended: run it again"


def lost_run_events(state: State) -> list[e.Event]:
    running = [task.id for task in state.subtasks.tasks if task.state == "running"]
    wanted = tuple(task.id for task in state.subtasks.tasks if task.wanted)
    ended: list[e.Event] = [e.SubTaskEnded(name, "failed", reason=INTERRUPTED) for name in running]
    return [*ended, e.SubTasksWanted(wanted, wanted=False)] if wanted else ended


class SubTasks:
    """Methods raise `SessionError` for an unknown id or an invalid transition. `parent` is called on first
    use, `renew` after each user request.
    """

    def __init__(self, core: Core, parent: Callable[[], Parent], renew: Callable[[], None]) -> None:
        self._journal = core.journal
        self._settings = core.settings
        self._make_parent = parent
        self._renew = renew
        self._telling: set[asyncio.Task[None]] = set()
        core.journal.store.subscribe(self._on_event)

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=False)
    def child(self, task: str) -> RunSession | None:
        return self._scheduler.child(task)

    @call(changes=False)
    async def close(self) -> None:
        if "_scheduler" in self.__dict__:
            await self._scheduler.close()
        await asyncio.gather(*self._telling)

    # ── the graph by hand ────────────────────────────────────────────────────────────────────────────────

    @call(changes=True)
    async def add(
        self, task: str, goal: str, files: Sequence[str] = (), dependencies: Sequence[str] = ()
    ) -> None:
        if self.state.subtasks.get(task) is not None:
            raise SessionError(f"A sub-task {task} already exists", "give the new one another id")
        await self._add_or_replace(SubTask(task, goal, tuple(files), tuple(dependencies)))

    @call(changes=True)
    async def edit(self, task: str, goal: str, files: Sequence[str]) -> None:
        found = self._still(task)
        await self._add_or_replace(replace(found, goal=goal, files=tuple(files)))

    @call(changes=True)
    async def connect(self, task: str, dependencies: Sequence[str]) -> None:
        found = self._still(task)
        await self._add_or_replace(replace(found, dependencies=tuple(dict.fromkeys(dependencies))))

    @call(changes=True)
    async def tick(self, task: str) -> None:
        """Toggles the mark for the next batch, or for an automatic start (`subtasks.begin`)."""
        found = self._task(task)
        await self._journal.record(e.SubTaskChanged(replace(found, auto_execute=not found.auto_execute)))

    @call(changes=True)
    async def remove(self, task: str) -> None:
        self._still(task)
        await self._journal.record(e.SubTaskRemoved(task))

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────

    @call(changes=True)
    async def run(self, task: str) -> None:
        """Runs it when its dependencies are done."""
        found = self._task(task)
        if found.state not in ("pending", "ready"):
            raise SessionError(f"The sub-task {task} is {found.state}", "retry it to run it again")
        if found.state == "pending" and self._manual:
            raise SessionError(f"The sub-task {task} waits for others", "run or skip those first")
        self._renew()
        await self._journal.record(e.SubTasksWanted((task,)))

    @call(changes=True)
    async def best(self, names: Sequence[str], goal: str, models: Collection[str] = ()) -> tuple[str, ...]:
        """Adds an attempt for each agent or model ("": the session's model). Returns their ids."""
        from tui_agent.subtasks.merge import attempts

        tasks = attempts(names, goal, self.state.subtasks.tasks, models)
        self._renew()
        found = tuple(task.id for task in tasks)
        await self._journal.record(e.SubTasksProposed(tasks), e.SubTasksWanted(found))
        return found

    @call(changes=True)
    async def take(self, task: str) -> int:
        """Proposes a completed attempt's changes; returns their number. Raises `SessionError`."""
        from tui_agent.subtasks.run import outcome

        found = self._task(task)
        if not found.attempt or found.state != "completed":
            raise SessionError(f"{task} cannot be taken", "choose an attempt of /best that is completed")
        if any(task in change.tasks and change.waits for change in self.state.review.changes):
            raise SessionError(f"The changes of {task} are in the review", "decide about them there")
        ended = await self._scheduler.state_of(found)
        return await self._merger.take(task, outcome(ended))

    @call(changes=True)
    async def take_first(self, tasks: Sequence[str]) -> str:
        """Proposes the changes of the first attempt with changes and without failed checks. Returns its id,
        or "".
        """
        from tui_agent.subtasks.run import outcome

        for task in map(self._task, tasks):
            if task.state == "completed":
                ended = outcome(await self._scheduler.state_of(task))
                if ended.changed and not ended.checks:
                    await self.take(task.id)
                    return task.id
        return ""

    @call(changes=True)
    async def run_ticked(self) -> None:
        if self._manual:
            raise SessionError(
                "With subtasks.begin = manual each sub-task is run alone", "choose one that is ready"
            )
        ticked = [
            task.id
            for task in self.state.subtasks.tasks
            if task.auto_execute and task.state in ("pending", "ready")
        ]
        if not ticked:
            raise SessionError("No ticked sub-task is ready", "tick some first")
        self._renew()
        await self._journal.record(e.SubTasksWanted(tuple(ticked)))

    @call(changes=True)
    async def retry(self, task: str) -> None:
        """Reruns an ended or skipped task; withdraws its undecided proposals."""
        found = self._may(task, "pending")
        if found.state == "ready":
            raise SessionError(f"The sub-task {task} is ready", "run it")
        self._renew()
        done = {other.id for other in self.state.subtasks.tasks if other.state in ("completed", "skipped")}
        begins = not self._manual or done.issuperset(found.dependencies)
        wanted = (e.SubTasksWanted((task,)),) if begins else ()
        with self._scheduler.paused():
            await self._redo.retract(found, f"“{task}” runs again")
            await self._journal.record(e.SubTaskMoved(task, "pending"), *wanted)

    @call(changes=True)
    async def skip(self, task: str) -> None:
        self._may(task, "skipped")
        await self._journal.record(e.SubTaskMoved(task, "skipped"))

    @call(changes=True)
    async def stop(self, task: str) -> None:
        self._task(task)
        await self._stop([task])

    @call(changes=True)
    async def stop_all(self) -> None:
        await self._stop([task.id for task in self.state.subtasks.tasks])

    async def _stop(self, names: Sequence[str]) -> None:
        wanted = tuple(task.id for task in self.state.subtasks.tasks if task.wanted and task.id in names)
        if wanted:
            await self._journal.record(e.SubTasksWanted(wanted, wanted=False))
        await self._scheduler.stop(names)

    @call(changes=False)
    async def settled(self) -> None:
        """Returns when nothing runs, nothing requested can start, and attempts are compared."""
        if self.state.subtasks.tasks:
            await self._scheduler.settled()
            await asyncio.gather(*self._telling)

    @call(changes=True)
    async def redo(self, change: str, task: str) -> None:
        """Reruns `task` on top of the other side of a conflict."""
        self._renew()
        with self._scheduler.paused():
            await self._redo.redo(change, task)

    @call(changes=False)
    async def state_of(self, task: str) -> State:
        """Raises `SessionError` if it never ran."""
        return await self._scheduler.state_of(self._task(task))

    # ── what may be ──────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _parent(self) -> Parent:
        return self._make_parent()

    @cached_property
    def _merger(self) -> ResultMerger:
        from tui_agent.subtasks.merge import ResultMerger

        return ResultMerger(self._journal, self._parent.storage.blobs, self._parent.on_newest)

    @cached_property
    def _redo(self) -> SubTaskRestart:
        from tui_agent.subtasks.merge import SubTaskRestart

        return SubTaskRestart(self._journal, self._parent.storage.blobs, self._merger)

    @cached_property
    def _scheduler(self) -> Scheduler:
        from tui_agent.subtasks.scheduler import Scheduler

        return Scheduler(self._parent, self._merger)

    def _on_event(self, event: e.Event, state: State) -> None:
        match event:
            case e.SubTasksWanted() | e.SubTaskGivenBack():
                self._scheduler.look()
            case e.SubTasksProposed() if not self._manual:
                self._scheduler.get_ready()
            case e.SubTaskEnded(id=name) if (task := state.subtasks.get(name)) and task.attempt:
                from tui_agent.subtasks.merge import comparison

                if said := comparison(task.attempt, state.subtasks.tasks):
                    notice = e.NoticeGiven("info", said, in_chat=True)
                    start_task(self._telling, self._journal.record(notice))

    @property
    def _manual(self) -> bool:
        return self._settings.subtasks.begin == "manual"

    def _task(self, task: str) -> SubTask:
        found = self.state.subtasks.get(task)
        if found is None:
            raise SessionError(f"There is no sub-task {task}", "choose one from the graph")
        return found

    def _may(self, task: str, state: SubTaskState) -> SubTask:
        found = self._still(task) if state == "skipped" else self._task(task)
        if not may_become(found, state):
            raise SessionError(f"The sub-task {task} is {found.state}", "choose another")
        return found

    def _still(self, task: str) -> SubTask:
        found = self._task(task)
        if found.state == "running" or self._scheduler.works(task):
            raise SessionError(f"The sub-task {task} is running", "stop it first")
        return found

    async def _add_or_replace(self, task: SubTask) -> None:
        """Raises `SessionError`, which names all invalid ids."""
        others = [other for other in self.state.subtasks.tasks if other.id != task.id]
        wrong = faults([*others, task])
        if not task.id.strip() or not task.goal.strip():
            wrong = ["a sub-task needs an id and a goal"]
        if wrong:
            raise SessionError("; ".join(wrong), "change the ids or the dependencies")
        await self._journal.record(e.SubTaskChanged(task))
