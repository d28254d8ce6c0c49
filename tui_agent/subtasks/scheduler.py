"""Schedules a session's sub-tasks; handles cancellation and end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from tui_agent.context.budget import Spending, limit_reached
from tui_agent.debug_log import fault
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.log import directory
from tui_agent.log.snapshot import read_state
from tui_agent.processes.background import start_task
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask, startable
from tui_agent.store.state import State
from tui_agent.subtasks import copies
from tui_agent.subtasks.merge import ResultMerger
from tui_agent.subtasks.parent import Parent, RunSession
from tui_agent.subtasks.run import RunOutcome, SubTaskRun, folder_of, outcome

STOPPED = "Stopped: its chat is saved"
_FAULT = "An error in tui-agent ended it"
CLOSED = "Interrupted because tui-agent was closed: run it again"

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


class Scheduler:
    def __init__(self, parent: Parent, merger: ResultMerger) -> None:
        self._parent = parent
        self._merger = merger
        self._capacity = parent.capacity
        self._getting_ready: set[asyncio.Task[None]] = set()
        self._refusing: asyncio.Task[None] | None = None
        self._runs: dict[str, SubTaskRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[str] = set()
        self._why = ""
        self._news = asyncio.Event()
        self._held = 0
        self._looking: asyncio.Handle | None = None
        self._unsubscribe = parent.journal.store.subscribe(self._on_event)
        parent.capacity.on_free(self._begin_what_can)

    @property
    def state(self) -> State:
        return self._parent.journal.store.state

    def look(self) -> None:
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_soon(self._begin_what_can)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Blocks new runs during changes of the review."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.look()

    def get_ready(self) -> None:
        """Prepares the first copy, while the user reads the proposal."""
        start_task(self._getting_ready, self._prepare(), "first copy")

    async def _prepare(self) -> None:
        parent = self._parent
        folder = copies.folder_of_run(parent.data, parent.storage.folder, "next").parent
        with suppress(TuiAgentError):
            await parent.workspace.copies.prepare(folder)

    def child(self, task: str) -> RunSession | None:
        run = self._runs.get(task)
        return run.child if run else None

    def works(self, task: str) -> bool:
        """Whether it has started and not finished; the start may not be recorded yet."""
        return task in self._tasks and task not in self._ending

    async def state_of(self, task: SubTask) -> State:
        """Raises `SessionError` if it never ran or was not kept."""
        child = self.child(task.id)
        if child is not None:
            return child.state
        path = folder_of(self._parent.storage.folder, task) / directory.LOG
        if not task.runs:
            raise SessionError(f"The sub-task {task.id} has no chat", "run it first")
        if not path.exists():
            raise SessionError(
                f"The chat of the sub-task {task.id} is not stored here", "open the session that it ran in"
            )
        return (await asyncio.to_thread(read_state, path)).state

    async def stop(self, names: Sequence[str]) -> None:
        """Waits until their copies are removed."""
        tasks = {name: self._tasks[name] for name in names if name in self._tasks}
        self._cancel(tasks)
        if tasks:
            await asyncio.wait(tasks.values())

    async def settled(self) -> None:
        await asyncio.sleep(0)
        while self._tasks or self._held or any(True for _ in self._next()):
            self._news.clear()
            if self._tasks:
                await asyncio.wait(list(self._tasks.values()))
            else:
                await self._news.wait()

    async def close(self) -> None:
        """Cancels all tasks, which can be run again."""
        self._why = CLOSED
        self._news.set()
        self._unsubscribe()
        self._capacity.forget(self._begin_what_can)
        await self.stop(list(self._tasks))
        for task in self._getting_ready:
            task.cancel()
        await asyncio.gather(*self._getting_ready, return_exceptions=True)
        if self._refusing is not None:
            await self._refusing

    def _on_event(self, event: e.Event, state: State) -> None:
        if isinstance(event, e.UsageCounted) and self._tasks:
            over = self._over()
            if over and not self._why:
                self._why = f"{over}: raise it, then run it again"
                self._cancel(self._tasks)
        if isinstance(event, _NEWS):
            self._news.set()
            self.look()

    def _begin_what_can(self) -> None:
        """By priority, from one snapshot of the disk."""
        self._news.set()
        self._looking = None
        most = self.state.model.slots
        over = self._over() or self._parent.requests.why
        if not over and not self._capacity.has_room(most):
            return
        snapshot: asyncio.Task[str] | None = None
        for task in self._next():
            if over:
                if self._refusing is None or self._refusing.done():
                    self._refusing = asyncio.create_task(self._refuse(over))
                return
            if not self._capacity.acquire(most):
                return
            if snapshot is None:
                in_place = self._parent.settings.subtasks.place  # which gets another copy
                taking = asyncio.sleep(0, "") if in_place else self._parent.workspace.copies.snapshot()
                snapshot = asyncio.create_task(taking)
                # Retrieve the exception: all waiting tasks may be cancelled before the snapshot is ready.
                snapshot.add_done_callback(lambda done: done.cancelled() or done.exception())
            work = self._run(task, snapshot)
            self._tasks[task.id] = asyncio.create_task(work, name=f"sub-task {task.id}")

    def _next(self) -> Iterator[SubTask]:
        if self._why or self._held:
            return
        for task in startable(self.state.subtasks.tasks):
            if task.id not in self._tasks and not copies.why_blocked(self.state, task):
                yield task

    def _over(self) -> str:
        limits, used = self._parent.settings.limits, self.state.usage.session
        spent = Spending(used.input + used.output, used.cost)
        return limit_reached("session", spent, 1, None, limits.session_tokens, limits.session_cost)

    async def _refuse(self, why: str) -> None:
        wanted = tuple(task.id for task in self.state.subtasks.tasks if task.wanted)
        self._parent.requests.told = True
        said = f"No sub-task is started. {why}: raise it, then run them again"
        notice = e.NoticeGiven("warning", said, in_chat=True)
        await self._parent.journal.record(notice, e.SubTasksWanted(wanted, wanted=False))

    async def _warn(self, sentence: str) -> None:
        await self._parent.journal.record(e.NoticeGiven("warning", sentence))

    def _cancel(self, tasks: Mapping[str, asyncio.Task[None]]) -> None:
        for name, task in tasks.items():
            asyncio.get_running_loop().call_soon(self._cancel_once, name, task)

    def _cancel_once(self, name: str, task: asyncio.Task[None]) -> None:
        if name not in self._ending and self._tasks.get(name) is task:
            self._ending.add(name)
            task.cancel()

    async def _run(self, task: SubTask, snapshot: asyncio.Task[str]) -> None:
        started = time.monotonic()
        try:
            ended = await self._outcome(task, snapshot)
            requests = self._parent.requests
            if requests.why and not requests.told:
                requests.told = True
                await self._warn(f"{requests.why}: its sub-tasks end here")
            self._ending.add(task.id)
            event = e.SubTaskEnded(
                task.id,
                ended.state,
                ended.summary,
                ended.changed,
                tokens=ended.tokens,
                cost=ended.cost,
                seconds=round(time.monotonic() - started, 3),
                reason=ended.reason,
                cause=ended.cause,
            )
            try:
                await self._merger.end(event, ended)
            except Exception as error:  # outermost handler: the task must end
                told = error if isinstance(error, TuiAgentError) else fault(_FAULT, error)
                reason = f"Its changes were rejected. {told}"
                await self._parent.journal.record(replace(event, state="failed", changed=(), reason=reason))
            await self._parent.after_run()
        finally:
            self._capacity.release()
            run = self._runs.pop(task.id, None)
            try:
                if run is not None:
                    await run.remove()
            except TuiAgentError as error:
                await self._warn(
                    f"The copy of {task.id} could not be removed ({error}); the next start removes it"
                )
            self._ending.discard(task.id)
            self._tasks.pop(task.id, None)
            if not self._tasks and self._why != CLOSED:
                self._why = ""
            self.look()

    async def _outcome(self, task: SubTask, snapshot: asyncio.Task[str]) -> RunOutcome:
        run: SubTaskRun | None = None
        try:
            await self._parent.journal.record(e.SubTaskMoved(task.id, "running"))
            named = self.state.subtasks.get(task.id)
            assert named is not None
            run = SubTaskRun(self._parent, named)
            self._runs[task.id] = run
            return await run(asyncio.shield(snapshot))
        except asyncio.CancelledError:
            so_far = outcome(run.child.state, STOPPED) if run and run.child else RunOutcome("failed")
            if not self._why:
                return replace(so_far, state="cancelled", reason=STOPPED)
            return replace(
                so_far, state="failed", reason=self._why, cause="error" if self._why == CLOSED else "limit"
            )
        except TuiAgentError as error:
            return RunOutcome("failed", reason=str(error))
        except Exception as error:  # outermost handler: other tasks go on
            return RunOutcome("failed", reason=str(fault(_FAULT, error)))
