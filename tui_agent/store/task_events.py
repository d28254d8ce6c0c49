"""Events of changes, todos and sub-tasks, and batches of files processed over several turns.

Each function of batches expects plan, registry and review as they are after the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import field
from msgspec.structs import replace

from tui_agent.answers.values import NextStep
from tui_agent.context.known_files import KnownFile
from tui_agent.context.memory import GO_ON, asks_to_go_on
from tui_agent.edits.change import Change, ChangeState, Checkpoint, FileStep, HunkState
from tui_agent.store.event import Lasting, Passing
from tui_agent.store.graph import Cause, SubTask, SubTaskState, together, with_ready, with_task
from tui_agent.store.state import ActionSlice, Batch, ChatMessage, State, SubTaskProgress, Todo


def postpone_files(state: State, paths: tuple[str, ...], *, for_room: bool) -> State:
    """Files without room wait; unreadable files leave the batch."""
    gone = set(paths)
    if not for_room:
        for batch in state.batches:
            if gone & set(batch.left):
                left = tuple(path for path in batch.left if path not in gone)
                state = _with(
                    state, replace(batch, left=left, total=batch.total - len(batch.left) + len(left))
                )
        return state
    for slot in state.plan.actions:
        if slot.action.all and gone & set(slot.left_out):
            state = _with(state, _waiting(state, slot, paths))
    return state


def _waiting(state: State, slot: ActionSlice, paths: tuple[str, ...]) -> Batch:
    batch = next((one for one in state.batches if _is_of(one, slot, state.turn.number)), None)
    if batch is None:
        hit = next((one.pattern for one in reversed(slot.attempts) if one.outcome == "hit"), slot.action.name)
        turn = state.turn
        if not asks_to_go_on(turn.request, turn.number):
            request = turn.request
        else:
            real = [text for text in state.input.history if not asks_to_go_on(text, turn.number)]
            request = real[-1] if real else turn.request
        return Batch(
            id=f"batch{state.turn.number}.{sum(one.turn == state.turn.number for one in state.batches) + 1}",
            name=slot.action.name,
            pattern=hit,
            request=request,
            turn=state.turn.number,
            total=len(slot.loaded) + len(slot.left_out),
            left=slot.left_out,
            now=slot.loaded,
        )
    new = tuple(path for path in paths if path not in batch.left)
    return replace(
        batch, left=(*new, *batch.left), now=tuple(path for path in batch.now if path not in set(paths))
    )


def _is_of(batch: Batch, slot: ActionSlice, turn: int) -> bool:
    return batch.id == slot.action.batch or (batch.turn, batch.name) == (turn, slot.action.name)


def loaded(state: State, file: KnownFile, action: str) -> State:
    if not action or file.loaded_by == "bundle":
        return state
    for batch in state.batches:
        if file.path in batch.left and any(
            slot.action.name == action and _is_of(batch, slot, state.turn.number)
            for slot in state.plan.actions
        ):
            left = tuple(path for path in batch.left if path != file.path)
            state = _with(state, replace(batch, left=left, now=(*batch.now, file.path)))
    return state


def turn_ended(state: State, turn: int, *, whole: bool) -> State:
    """Takes all files of a turn that ended well (`whole`), otherwise only changed ones."""
    changes = [change for change in state.review.changes if change.turn == turn]
    changed = {change.path for change in changes if change.state != "failed"}
    failed = {change.path for change in changes} - changed
    last = next((one for one in reversed(state.chat.messages) if one.kind == "agent"), None)
    whole = whole and not (last is not None and last.turn == turn and last.cut)
    for batch in state.batches:
        if not batch.now and batch.turn != turn:
            continue
        again = [path for path in batch.now if path in failed or not (whole or path in changed)]
        left = tuple(path for path in (*again, *batch.left) if path not in changed)
        done = batch.total - len(left)
        state = _with(state, replace(batch, left=left, now=(), last=done - batch.done))
    if not state.batches:
        return state
    first = state.batches[0]
    step = NextStep(f"Continue {first.name}: {first.done} of {first.total} files are done", GO_ON[0])
    others = tuple(one for one in state.chat.next_steps if one.input_text != step.input_text)
    return replace(state, chat=replace(state.chat, next_steps=(step, *others)))


def _with(state: State, batch: Batch) -> State:
    known = any(one.id == batch.id for one in state.batches)
    batches = (batch if one.id == batch.id else one for one in (*state.batches, *(() if known else (batch,))))
    text = f"{batch.name}: {batch.done} of {batch.total:,} files"
    todo = Todo(batch.id, text, batch.request[:500], not (batch.left or batch.now), batch.turn)
    todos = tuple(
        replace(one, text=text, done=todo.done) if one.id == batch.id else one for one in state.todos
    )
    if not known:
        todos = (*todos, todo)
    return replace(state, batches=tuple(one for one in batches if one.left or one.now), todos=todos)


def cancel_batch(state: State, name: str) -> State:
    if all(batch.id != name for batch in state.batches):
        return state
    return replace(state, batches=tuple(batch for batch in state.batches if batch.id != name))


#: Characters of a sub-task's line; its own chat is complete.
LONGEST_LINE = 300


class TodosChanged(Lasting, frozen=True):
    """Only in logs of the first version."""

    todos: tuple[Todo, ...]

    def apply(self, state: State) -> State:
        return replace(state, todos=self.todos)


class TodosAdded(Lasting, frozen=True):
    todos: tuple[Todo, ...]

    def apply(self, state: State) -> State:
        return replace(state, todos=(*state.todos, *self.todos))


class TodoChanged(Lasting, frozen=True):
    id: str
    text: str
    done: bool

    def apply(self, state: State) -> State:
        todos = tuple(
            replace(todo, text=self.text, done=self.done) if todo.id == self.id else todo
            for todo in state.todos
        )
        state = replace(state, todos=todos)
        return cancel_batch(state, self.id) if self.done else state


class TodoRemoved(Lasting, frozen=True):
    id: str

    def apply(self, state: State) -> State:
        state = replace(state, todos=tuple(todo for todo in state.todos if todo.id != self.id))
        return cancel_batch(state, self.id)


class TodoMoved(Lasting, frozen=True):
    id: str
    place: int

    def apply(self, state: State) -> State:
        found = tuple(todo for todo in state.todos if todo.id == self.id)
        others = tuple(todo for todo in state.todos if todo.id != self.id)
        return replace(state, todos=(*others[: self.place], *found, *others[self.place :]))


class SubTasksProposed(Lasting, frozen=True):
    tasks: tuple[SubTask, ...]

    def apply(self, state: State) -> State:
        names = {task.id for task in self.tasks}
        before = [task for task in state.subtasks.tasks if task.id not in names]
        return _with_tasks(state, together(before, [_new(state, task) for task in self.tasks]))


class SubTaskMoved(Lasting, frozen=True):
    id: str
    state: SubTaskState
    summary: str = ""
    reason: str = ""

    def apply(self, state: State) -> State:
        def moved(task: SubTask) -> SubTask:
            summary = self.summary or task.summary
            task = replace(task, state=self.state, summary=summary, reason=self.reason, cause="")
            match self.state:
                case "running":
                    return replace(task, runs=task.runs + 1, changed=())
                case "pending":
                    return replace(task, changed=(), summary="")
                case "skipped" | "cancelled":
                    return replace(task, wanted=False)
                case _:
                    return task

        state = _without_progress(_each(state, self.id, moved), self.id)
        begun = state.subtasks.get(self.id)
        if begun is None or self.state != "running":
            return state
        all_begun = {**state.subtasks.begun, begun.id: begun.run}
        return replace(state, subtasks=replace(state.subtasks, begun=all_begun))


class SubTaskChanged(Lasting, frozen=True):
    task: SubTask

    def apply(self, state: State) -> State:
        new = self.task
        if state.subtasks.get(new.id) is None:
            return _with_tasks(state, (*state.subtasks.tasks, _new(state, new)))
        words = {"goal": new.goal, "files": new.files, "dependencies": new.dependencies}
        return _each(state, new.id, lambda task: replace(task, **words, auto_execute=new.auto_execute))


class SubTaskRemoved(Lasting, frozen=True):
    id: str

    def apply(self, state: State) -> State:
        left = (task for task in state.subtasks.tasks if task.id != self.id)
        return _with_tasks(
            state,
            (
                replace(t, dependencies=tuple(name for name in t.dependencies if name != self.id))
                for t in left
            ),
        )


class SubTasksWanted(Lasting, frozen=True):
    ids: tuple[str, ...]
    wanted: bool = True

    def apply(self, state: State) -> State:
        ids = frozenset(self.ids)
        tasks = [replace(t, wanted=self.wanted) if t.id in ids else t for t in state.subtasks.tasks]
        return replace(state, subtasks=replace(state.subtasks, tasks=tuple(tasks)))


class SubTaskGivenBack(Lasting, frozen=True):
    """Repeated on top of conflicting sub-tasks."""

    id: str
    on_top: tuple[str, ...]
    note: str

    def apply(self, state: State) -> State:
        return _each(
            state,
            self.id,
            lambda task: replace(
                task, state="pending", wanted=True, on_top=self.on_top, note=self.note, changed=()
            ),
        )


class SubTaskProgressed(Passing, frozen=True):
    id: str
    progress: SubTaskProgress

    def apply(self, state: State) -> State:
        running = {**state.subtasks.running, self.id: self.progress}
        return replace(state, subtasks=replace(state.subtasks, running=running))


class SubTaskEnded(Lasting, frozen=True):
    id: str
    state: Literal["completed", "failed", "cancelled"]
    summary: str = ""
    changed: tuple[FileStep, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    reason: str = ""
    cause: Cause = ""

    def apply(self, state: State) -> State:
        def ended(task: SubTask) -> SubTask:
            known = task.cost is not None and self.cost is not None
            return replace(
                task,
                state=self.state,
                summary=self.summary,
                reason=self.reason,
                cause=self.cause or ("error" if self.state == "failed" else ""),
                changed=self.changed,
                wanted=False,
                tokens=task.tokens + self.tokens,
                cost=task.cost + self.cost if known else None,  # type: ignore[operator]
                seconds=task.seconds + self.seconds,
            )

        state = _without_progress(_each(state, self.id, ended), self.id)
        if self.state == "cancelled":
            return state
        words = " ".join((self.summary if self.state == "completed" else self.reason).split())
        words = words if len(words) <= LONGEST_LINE else f"{words[: LONGEST_LINE - 1]}…"
        level = "info" if self.state == "completed" else "warning"
        text = f"Sub-task {self.id} {self.state}" + (f": {words}" if words else "")
        return state.with_message(ChatMessage(0, "note", state.turn.number, text, level=level))


def _new(state: State, task: SubTask) -> SubTask:
    return replace(task, earlier=state.subtasks.begun.get(task.id, 0))


def _each(state: State, name: str, made: Callable[[SubTask], SubTask]) -> State:
    task = state.subtasks.get(name)
    if task is None:
        return state
    tasks = with_task(state.subtasks.tasks, made(task))
    return replace(state, subtasks=replace(state.subtasks, tasks=tasks))


def _with_tasks(state: State, tasks: Iterable[SubTask]) -> State:
    return replace(state, subtasks=replace(state.subtasks, tasks=with_ready(tasks)))


def _without_progress(state: State, name: str) -> State:
    running = {key: progress for key, progress in state.subtasks.running.items() if key != name}
    return replace(state, subtasks=replace(state.subtasks, running=running))


#: A todo is done if all its changes have these states and one is applied.
DECIDED: frozenset[ChangeState] = frozenset({"applied", "skipped"})


class ChangeProposed(Lasting, frozen=True):
    """It replaces an open change of the same path."""

    change: Change

    def apply(self, state: State) -> State:
        new = self.change
        before = [change for change in state.review.changes if change.id != new.id]
        # Conflicts with an open change that the new one replaces are now conflicts with the new one.
        given_way = {one.id for one in before if one.path == new.path and one.is_open and not new.rival}
        changes = []
        for change in before:
            if change.rival in given_way and change.state == "conflict":
                change = replace(change, rival=new.id)
            changes.append(_replaced_by(change, new) if change.path == new.path else change)
        state = replace(state, review=replace(state.review, changes=(*changes, new)))
        if new.todo:
            todos = tuple(
                replace(todo, changes=(*todo.changes, new.id), done=False)
                if todo.id == new.todo and new.id not in todo.changes
                else todo
                for todo in state.todos
            )
            state = replace(state, todos=todos)
        if (at := state.chat.last_of(new.turn)) >= 0:
            message = state.chat.messages[at]
            state = state.with_message_at(at, replace(message, changes=(*message.changes, new.id)))
        return _tick(state, new.id)


class ChangeMoved(Lasting, frozen=True):
    id: str
    state: Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
    hunks: tuple[HunkState, ...] = ()
    reason: str = ""
    written: str = ""

    def apply(self, state: State) -> State:
        changes = state.review.changes
        at = next((number for number, change in enumerate(changes) if change.id == self.id), None)
        if at is None:
            return state
        moved = replace(
            changes[at],
            state=self.state,
            hunks=self.hunks or changes[at].hunks,
            reason=self.reason,
            written=self.written or changes[at].written,
        )
        changes = (*changes[:at], moved, *changes[at + 1 :])
        if self.state in ("skipped", "undone"):
            # The first change in conflict with it is open now, and the others conflict with that one.
            against = [one for one in changes if one.rival == self.id and one.state == "conflict"]
            free = {one.id: replace(one, rival=against[0].id) for one in against[1:]}
            free |= {one.id: replace(one, state="pending", rival="", reason="") for one in against[:1]}
            changes = tuple(free.get(one.id, one) for one in changes)
        return _tick(replace(state, review=replace(state.review, changes=changes)), self.id)


class ChangeReworked(Lasting, frozen=True):
    change: Change

    def apply(self, state: State) -> State:
        new = self.change
        changes = tuple(new if change.id == new.id else change for change in state.review.changes)
        return _tick(replace(state, review=replace(state.review, changes=changes)), new.id)


class CheckpointMade(Lasting, frozen=True):
    checkpoint: Checkpoint

    def apply(self, state: State) -> State:
        checkpoints = (*state.review.checkpoints, self.checkpoint)
        return replace(state, review=replace(state.review, checkpoints=checkpoints))


class CheckpointCommitted(Lasting, frozen=True):
    id: str
    commit: str

    def apply(self, state: State) -> State:
        checkpoints = tuple(
            replace(point, commit=self.commit) if point.id == self.id else point
            for point in state.review.checkpoints
        )
        return replace(state, review=replace(state.review, checkpoints=checkpoints))


class CheckpointUndone(Lasting, frozen=True):
    """Or redone, if `undone` is False. `folders` were created for its files; `modes` are the earlier
    permission bits.
    """

    id: str
    undone: bool
    written: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    modes: dict[str, int] = field(default_factory=dict)

    def apply(self, state: State) -> State:
        checkpoints = tuple(
            replace(
                point,
                undone=self.undone,
                folders=self.folders or point.folders,
                files=tuple(self._with_mode(step) for step in point.files),
            )
            if point.id == self.id
            else point
            for point in state.review.checkpoints
        )
        return replace(state, review=replace(state.review, checkpoints=checkpoints))

    def _with_mode(self, step: FileStep) -> FileStep:
        if (mode := self.modes.get(step.path)) is None:
            return step
        return replace(step, mode_after=mode) if self.undone else replace(step, mode=mode)


def _replaced_by(change: Change, new: Change) -> Change:
    waits = change.is_open or change.state in ("failed", "conflict")
    if not waits or change.id == new.rival or change.rival == new.id:
        return change
    if change.is_open and new.state == "failed":
        return change  # An unplaceable change replaces nothing.
    if not change.is_open and (change.tasks or not new.turn):
        return change  # The new change does not contain it; both remain open.
    hunks = tuple("skipped" if hunk == "pending" else hunk for hunk in change.hunks)
    state = "applied" if "applied" in hunks else "skipped"
    return replace(change, state=state, hunks=hunks, reason=f"replaced by {new.id}")


def _tick(state: State, change_id: str) -> State:
    todos = []
    for todo in state.todos:
        if change_id in todo.changes:
            states = [change.state for change in state.review.changes if change.id in todo.changes]
            todo = replace(todo, done="applied" in states and DECIDED.issuperset(states))
        todos.append(todo)
    return state if tuple(todos) == state.todos else replace(state, todos=tuple(todos))
