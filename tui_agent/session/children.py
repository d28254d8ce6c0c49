"""Sub-tasks running: which begin when, how they are stopped, and how each ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_agent.context.budget import Spent, limit_reached
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.session import catalog, grounds, work_copies
from tui_agent.session.reading import read_state
from tui_agent.session.slots import Slots
from tui_agent.session.subtask_run import Outcome, SubTaskRun, folder_of, outcome
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.subtasks.graph import SubTask, startable

if TYPE_CHECKING:
    from tui_agent.session.child_session import ChildSession
    from tui_agent.session.joining import Joining
    from tui_agent.session.session import Session

STOPPED = "Stopped: its chat is kept"
CLOSED = "Interrupted, tui-agent was closed: run it again"

#: What may let a sub-task begin.
_NEWS = (
    e.SubTasksWanted,
    e.SubTaskGivenBack,
    e.SubTaskMoved,
    e.SubTaskEnded,
    e.SubTaskChanged,
    e.SubTaskRemoved,
    e.ChangeMoved,
    e.ChangeReworked,
)


class Children:
    """The running sub-tasks of one session."""

    def __init__(self, parent: Session, joining: Joining, slots: Slots) -> None:
        self._parent = parent
        self._joining = joining
        self._slots = slots
        self._getting_ready: asyncio.Task[None] | None = None
        self._refusing: asyncio.Task[None] | None = None
        self._runs: dict[str, SubTaskRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[str] = set()
        self._why = ""
        self._unsubscribe: Callable[[], None] = parent.subscribe(self._on_event)
        slots.on_free(self._begin_what_can)

    @property
    def state(self) -> State:
        return self._parent.state

    def look(self) -> None:
        """Begin what can begin, as soon as the loop is free."""
        asyncio.get_running_loop().call_soon(self._begin_what_can)

    def get_ready(self) -> None:
        """Begin what the first copy would have to wait for, while the person looks at what is proposed."""
        self._getting_ready = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        parent = self._parent
        folder = work_copies.folder_of_run(parent.folders.data, parent.kept.folder, "next").parent
        with suppress(TuiAgentError):  # the first copy says what is wrong
            await parent.workspace.copies.prepare(folder)

    def child(self, task: str) -> ChildSession | None:
        """The session of a sub-task that runs; None before it has one, and afterwards."""
        run = self._runs.get(task)
        return run.child if run else None

    async def state_of(self, task: SubTask) -> State:
        """The state of a task's newest run. Raises `SessionError` where it never ran, or nothing was kept."""
        child = self.child(task.id)
        if child is not None:
            return child.state
        path = folder_of(self._parent.kept.folder, task) / catalog.LOG
        if not task.runs or not path.exists():
            raise SessionError(f"The sub-task {task.id} has no chat", "run it first")
        return (await asyncio.to_thread(read_state, path)).state

    async def stop(self, names: Sequence[str]) -> None:
        """Stop these, as far as they run; each is cancelled, and nothing of its copy is left, when this returns."""
        tasks = {name: self._tasks[name] for name in names if name in self._tasks}
        self._cancel(tasks)
        if tasks:
            await asyncio.wait(tasks.values())

    async def settled(self) -> None:
        """Wait until nothing runs and nothing can begin."""
        await asyncio.sleep(0)  # what was wanted just now begins first
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Stop all; what ran can be run again."""
        self._why = CLOSED
        self._unsubscribe()
        self._slots.forget(self._begin_what_can)
        await self.stop(list(self._tasks))

    def _on_event(self, event: e.Event, state: State) -> None:
        if isinstance(event, e.UsageCounted) and self._tasks:
            self._keep_limits()
        if isinstance(event, _NEWS) and any(task.wanted for task in state.subtasks.tasks):
            self.look()

    def _begin_what_can(self) -> None:
        """Begin what is ready and wanted while there are places, most urgent first; all on one look at the disk."""
        ready = startable(self.state.subtasks.tasks)
        if self._why or not ready:
            return
        if over := self._over():
            self._refusing = asyncio.create_task(self._refuse(over))
            return
        snapshot: asyncio.Task[str] | None = None
        for task in ready:
            if task.id in self._tasks or grounds.why_blocked(self.state, task):
                continue
            if not self._slots.take():
                return
            snapshot = snapshot or self._snapshot()
            work = self._run(task, snapshot)
            self._tasks[task.id] = asyncio.create_task(work, name=f"sub-task {task.id}")

    def _snapshot(self) -> asyncio.Task[str]:
        taking = asyncio.create_task(self._parent.workspace.copies.snapshot())
        # where all that wait for it are stopped before it comes, nobody hears of its failure
        taking.add_done_callback(lambda done: done.cancelled() or done.exception())
        return taking

    def _keep_limits(self) -> None:
        """All of them together may not pass the session's limits either: then all end."""
        over = self._over()
        if over and not self._why:
            self._why = f"{over}: raise it, then run it again"
            self._cancel(self._tasks)

    def _over(self) -> str:
        """Why nothing more may be spent; empty while it may."""
        limits, used = self._parent.loaded.settings.limits, self.state.usage.session
        spent = Spent(used.input + used.output, used.cost)
        return limit_reached("session", spent, 1, None, limits.session_tokens, limits.session_cost)

    async def _refuse(self, why: str) -> None:
        wanted = tuple(task.id for task in self.state.subtasks.tasks if task.wanted)
        notice = e.NoticeGiven("warning", f"No sub-task begins. {why}: raise it, then run them again")
        await self._parent.journal.record(notice, e.SubTasksWanted(wanted, wanted=False))

    def _cancel(self, tasks: Mapping[str, asyncio.Task[None]]) -> None:
        """Cancel those that are not at their end anyway, which is written down."""
        for name, task in tasks.items():
            if name not in self._ending:
                task.cancel()

    async def _run(self, task: SubTask, snapshot: asyncio.Task[str]) -> None:
        started = time.monotonic()
        try:
            ended = await self._outcome(task, snapshot)
            self._ending.add(task.id)
            await self._end(task.id, ended, round(time.monotonic() - started, 3))
            await self._parent.go_on_unattended()
        finally:
            self._slots.leave()  # the next begins while this copy goes
            await self._remove(task.id)
            self._ending.discard(task.id)
            self._tasks.pop(task.id, None)
            if not self._tasks and self._why != CLOSED:
                self._why = ""
            self.look()

    async def _remove(self, name: str) -> None:
        run = self._runs.pop(name, None)
        try:
            if run is not None:
                await run.remove()
        except TuiAgentError as error:
            await self._parent.notice(
                f"The copy of {name} is not gone ({error}), the next start removes it", "warning"
            )

    async def _outcome(self, task: SubTask, snapshot: asyncio.Task[str]) -> Outcome:
        run: SubTaskRun | None = None
        try:
            await self._parent.journal.record(e.SubTaskMoved(task.id, "running"))
            run = SubTaskRun(self._parent, self._named(task.id), self._slots)
            self._runs[task.id] = run
            return await run(asyncio.shield(snapshot))
        except asyncio.CancelledError:
            return self._broken(run)
        except TuiAgentError as error:
            return Outcome("failed", reason=str(error))
        except Exception as error:  # the outer edge: a fault of ours must not take the others with it
            return Outcome("failed", reason=f"A fault in tui-agent ended it: {error!r}")

    def _broken(self, run: SubTaskRun | None) -> Outcome:
        """A run that the person stopped, or something else did (`_why`), with what it had cost so far."""
        so_far = outcome(run.child.state, STOPPED) if run and run.child else Outcome("failed")
        return replace(so_far, state="failed" if self._why else "cancelled", reason=self._why or STOPPED)

    async def _end(self, name: str, ended: Outcome, seconds: float) -> None:
        """One after the other, so that each is joined with what the others came to."""
        event = e.SubTaskEnded(
            name,
            ended.state,
            ended.summary,
            ended.changed,
            tokens=ended.tokens,
            cost=ended.cost,
            seconds=seconds,
            reason=ended.reason,
        )
        await self._joining.end(event, ended)

    def _named(self, name: str) -> SubTask:
        found = self.state.subtasks.get(name)
        assert found is not None
        return found
