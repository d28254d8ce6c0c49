"""One run of a sub-task: a copy of the folder, a session in it, turns until it is done, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, FileStep, Pick
from tui_agent.errors import PathRefused
from tui_agent.files.gate import Gate
from tui_agent.files.names import plain
from tui_agent.log.cleanup import FOLDER
from tui_agent.session import grounds, work_copies
from tui_agent.session.subtask_progress import ProgressTeller
from tui_agent.store.state import State, Todo
from tui_agent.subtasks import handover
from tui_agent.subtasks.graph import Cause, SubTask, needed_by
from tui_agent.turn.memory import last_request
from tui_agent.workspace.copies import WorkCopy

if TYPE_CHECKING:
    from tui_agent.session.child_session import ChildSession
    from tui_agent.session.session import Session
    from tui_agent.session.slots import Slots

#: Turns that a sub-task may take where `limits.turns` sets none.
MOST_TURNS = 10
GO_ON = "continue"


class Outcome(Struct, frozen=True):
    """What came of a run. `changes` are the child's own, for what they say of each path."""

    state: Literal["completed", "failed", "cancelled"] = "completed"
    summary: str = ""
    reason: str = ""
    cause: Cause = ""
    changed: tuple[FileStep, ...] = ()
    changes: tuple[Change, ...] = ()
    todos: tuple[Todo, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0


def folder_of(parent: Path, task: SubTask) -> Path:
    """Where the newest run of a sub-task is kept, below its parent's folder."""
    return parent / FOLDER / f"{plain(task.id)}.{task.run}"


class SubTaskRun:
    """Runs one sub-task of `parent` once. `child` is its session while it runs."""

    def __init__(self, parent: Session, task: SubTask, slots: Slots) -> None:
        self.child: ChildSession | None = None
        self._parent = parent
        self._task = task
        self._slots = slots

        name = f"{task.id}.{task.run}"
        self._brought: set[str] = set()
        self._folder = work_copies.folder_of_run(parent.folders.data, parent.kept.folder, name)

    async def __call__(self, snapshot: Awaitable[str]) -> Outcome:
        """Do the work. Raises what kept it from beginning. However it ends, the copy is there until `remove`."""
        copy = await self._parent.workspace.copies.make(self._folder, await snapshot)
        missing, paths = await self._prepare(copy)
        return await self._work(copy, missing, paths)

    async def remove(self) -> None:
        """Leave nothing of the copy. Raises `FileError` or `ChildFailed`."""
        await self._parent.workspace.copies.remove(self._folder)

    async def _prepare(self, copy: WorkCopy) -> tuple[tuple[str, ...], list[str]]:
        """Make the copy what the sub-task is to see: what of its files is not in it, and every path that is."""
        parent, task = self._parent, self._task
        there = await asyncio.to_thread(_there, parent.workspace.gate, task.files)
        missing = await parent.workspace.copies.bring(copy, there)
        self._brought = set(there) - set(missing)
        paths = await asyncio.to_thread(self._lay_over, copy)
        return (*copy.missing, *missing), paths

    def _lay_over(self, copy: WorkCopy) -> list[str]:
        parent = self._parent
        gate = Gate(Path(copy.root))
        grounds.take_bytes(gate, parent.workspace.gate, self._task.files)
        texts = grounds.overlay(parent.state, self._task, parent.kept.blobs)
        grounds.lay_over(gate, texts)
        gone = {path for path, text in texts.items() if text is None}
        return sorted({*parent.workspace.index.paths, *self._brought, *texts} - gone)

    async def _work(self, copy: WorkCopy, missing: tuple[str, ...], paths: list[str]) -> Outcome:
        from tui_agent.session.child_session import open_child

        parent = self._parent
        part = handover.text(self._hand_over(missing))
        child = await open_child(parent, self._task, copy, part, parent.paced_model(), self._slots)
        self.child = child
        telling = ProgressTeller(parent.journal, self._task.id, child.journal.store)
        try:
            child.workspace.start(paths)
            reason, cause = await self._drive_in_time(child)
            return outcome(child.state, reason, cause)
        finally:
            await _to_the_end(self._end(child, telling))

    async def _end(self, child: ChildSession, telling: ProgressTeller) -> None:
        await child.close()
        await telling.close()

    async def _drive_in_time(self, child: ChildSession) -> tuple[str, Cause]:
        most = self._parent.loaded.settings.subtasks.max_seconds
        try:
            async with asyncio.timeout(most or None):
                return await self._drive(child)
        except TimeoutError:
            return f"It took longer than {most} s: raise subtasks.max_seconds, or make it smaller", "limit"

    async def _drive(self, child: ChildSession) -> tuple[str, Cause]:
        """Turns until nothing is left to do; why it failed, if it did, and for what kind of reason.

        What could not be taken of an answer (a change without a place, say) is told with the next turn.
        """
        most = child.loaded.settings.limits.turns or MOST_TURNS
        there = set(child.paths())
        await child.submit(self._task.goal, [path for path in self._task.files if path in there])
        for number in range(1, most + 1):
            await child.finished()
            turn = child.state.turn
            if not turn.ok:
                # as its own settings are called
                reason = turn.error.replace("limits.session_", "subtasks.max_")
                return reason, "limit" if turn.kind == "LimitReached" else "error"
            told_all = not child.state.conversation.untold
            await self._take_in(child)
            if told_all and not goes_on(child.state):
                return "", ""
            if number < most:
                await child.submit(GO_ON)
        return f"It was not done after {most} turns: raise limits.turns, or make it smaller", "limit"

    async def _take_in(self, child: ChildSession) -> None:
        """Write what was proposed into the copy, and let sub-tasks of its own come to their end."""
        picks = [Pick(change.id) for change in child.state.review.open]
        if picks:
            await child.apply(picks)
        if child.state.subtasks.tasks:
            async with self._slots.lent():
                await child.subtasks_settled()
            picks = [Pick(change.id) for change in child.state.review.open]
            if picks:
                await child.apply(picks)

    def _hand_over(self, missing: tuple[str, ...]) -> handover.HandOver:
        state = self._parent.state
        said = (m.summary for m in reversed(state.chat.messages) if m.kind == "agent" and m.summary)
        return handover.HandOver(
            self._task,
            request=last_request(state),
            summary=next(said, ""),
            before=tuple(t for t in needed_by(self._task, state.subtasks.tasks) if t.state == "completed"),
            missing=missing,
            splits=self._parent.loaded.settings.subtasks.max_depth > 1,
        )


async def _to_the_end(work: Coroutine[None, None, None]) -> None:
    """Wait for what must not be left half done; a stop comes after it."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _there(gate: Gate, paths: Sequence[str]) -> list[str]:
    """Those of the paths that are there and may be copied: what git ignores too, but nothing that looks secret."""
    found = []
    for path in paths:
        with suppress(PathRefused):
            place = gate.place(path, "read")
            if place.exists and not place.secret:
                found.append(path)
    return found


def goes_on(state: State) -> bool:
    """Whether a sub-task has more to do: a todo is open, and its last turn did something about it."""
    turn = state.turn.number
    did_something = any(change.turn == turn for change in state.review.changes)
    return did_something and any(not todo.done for todo in state.todos)


def outcome(state: State, reason: str = "", cause: Cause = "") -> Outcome:
    """What a child session has come to; with a `reason` it failed, and nothing of its work is taken."""
    used = state.usage.session
    summaries = [m.summary for m in state.chat.messages if m.kind == "agent" and m.summary]
    return Outcome(
        state="failed" if reason else "completed",
        summary=summaries[-1] if summaries else "",
        reason=reason,
        cause=cause,
        changed=() if reason else _steps(state),
        changes=state.review.changes,
        todos=() if reason else state.todos,
        tokens=used.input + used.output,
        cost=used.cost,
    )


def _steps(state: State) -> tuple[FileStep, ...]:
    """Each file that ended otherwise than it began, as it was before the first apply and is after the last."""
    found: dict[str, FileStep] = {}
    for point in state.review.checkpoints:
        for step in point.files:
            first = found.get(step.path, step)
            found[step.path] = replace(first, after=step.after)
    return tuple(step for step in found.values() if step.before != step.after)
