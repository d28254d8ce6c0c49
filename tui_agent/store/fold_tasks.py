"""What is to be done, folded: todos and sub-tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store.fold_turn import say
from tui_agent.store.graph import SubTask, together, with_ready
from tui_agent.store.state import ChatMessage, State, SubTaskProgress

#: More of what a sub-task says of itself is in its own chat; in characters.
LONGEST_LINE = 300


def _todos_replaced(state: State, event: e.TodosChanged) -> State:
    return replace(state, todos=event.todos)


def _todos_added(state: State, event: e.TodosAdded) -> State:
    return replace(state, todos=(*state.todos, *event.todos))


def _todo_changed(state: State, event: e.TodoChanged) -> State:
    todos = tuple(
        replace(todo, text=event.text, done=event.done) if todo.id == event.id else todo
        for todo in state.todos
    )
    return replace(state, todos=todos)


def _todo_removed(state: State, event: e.TodoRemoved) -> State:
    return replace(state, todos=tuple(todo for todo in state.todos if todo.id != event.id))


def _todo_moved(state: State, event: e.TodoMoved) -> State:
    found = tuple(todo for todo in state.todos if todo.id == event.id)
    others = tuple(todo for todo in state.todos if todo.id != event.id)
    return replace(state, todos=(*others[: event.place], *found, *others[event.place :]))


def _proposed(state: State, event: e.SubTasksProposed) -> State:
    names = {task.id for task in event.tasks}
    before = [task for task in state.subtasks.tasks if task.id not in names]
    return _with_tasks(state, together(before, [_new(state, task) for task in event.tasks]))


def _moved(state: State, event: e.SubTaskMoved) -> State:
    def moved(task: SubTask) -> SubTask:
        summary = event.summary or task.summary
        task = replace(task, state=event.state, summary=summary, reason=event.reason, cause="")
        match event.state:
            case "running":
                return replace(task, runs=task.runs + 1, changed=())
            case "pending":
                return replace(task, changed=(), summary="")
            case "skipped" | "cancelled":
                return replace(task, wanted=False)
            case _:
                return task

    state = _without_progress(_each(state, event.id, moved), event.id)
    begun = state.subtasks.get(event.id)
    if begun is None or event.state != "running":
        return state
    all_begun = {**state.subtasks.begun, begun.id: begun.run}
    return replace(state, subtasks=replace(state.subtasks, begun=all_begun))


def _changed(state: State, event: e.SubTaskChanged) -> State:
    new = event.task
    if state.subtasks.get(new.id) is None:
        return _with_tasks(state, (*state.subtasks.tasks, _new(state, new)))
    words = {"goal": new.goal, "files": new.files, "dependencies": new.dependencies}
    return _each(state, new.id, lambda task: replace(task, **words, auto_execute=new.auto_execute))


def _removed(state: State, event: e.SubTaskRemoved) -> State:
    left = (task for task in state.subtasks.tasks if task.id != event.id)
    return _with_tasks(
        state,
        (replace(t, dependencies=tuple(name for name in t.dependencies if name != event.id)) for t in left),
    )


def _wanted(state: State, event: e.SubTasksWanted) -> State:
    return _with_tasks(
        state,
        (replace(t, wanted=event.wanted) if t.id in event.ids else t for t in state.subtasks.tasks),
    )


def _given_back(state: State, event: e.SubTaskGivenBack) -> State:
    return _each(
        state,
        event.id,
        lambda task: replace(
            task, state="pending", wanted=True, on_top=event.on_top, note=event.note, changed=()
        ),
    )


def _progressed(state: State, event: e.SubTaskProgressed) -> State:
    running = {**state.subtasks.running, event.id: event.progress}
    return replace(state, subtasks=replace(state.subtasks, running=running))


def _ended(state: State, event: e.SubTaskEnded) -> State:
    def ended(task: SubTask) -> SubTask:
        known = task.cost is not None and event.cost is not None
        return replace(
            task,
            state=event.state,
            summary=event.summary,
            reason=event.reason,
            cause=event.cause or ("error" if event.state == "failed" else ""),
            changed=event.changed,
            wanted=False,
            tokens=task.tokens + event.tokens,
            cost=task.cost + event.cost if known else None,  # type: ignore[operator]
            seconds=task.seconds + event.seconds,
        )

    return _said(_without_progress(_each(state, event.id, ended), event.id), event)


def _said(state: State, event: e.SubTaskEnded) -> State:
    """A line in the chat of what came of a run; what the person stopped needs none."""
    if event.state == "cancelled":
        return state
    words = " ".join((event.summary if event.state == "completed" else event.reason).split())
    words = words if len(words) <= LONGEST_LINE else f"{words[: LONGEST_LINE - 1]}…"
    level = "info" if event.state == "completed" else "warning"
    text = f"Sub-task {event.id} {event.state}" + (f": {words}" if words else "")
    return say(state, ChatMessage(0, "note", state.turn.number, text, level=level))


def _new(state: State, task: SubTask) -> SubTask:
    """A task that comes into the graph; others may have had its id before."""
    return replace(task, earlier=state.subtasks.begun.get(task.id, 0))


def _each(state: State, name: str, made: Callable[[SubTask], SubTask]) -> State:
    return _with_tasks(state, (made(task) if task.id == name else task for task in state.subtasks.tasks))


def _with_tasks(state: State, tasks: Iterable[SubTask]) -> State:
    return replace(state, subtasks=replace(state.subtasks, tasks=with_ready(tasks)))


def _without_progress(state: State, name: str) -> State:
    running: dict[str, SubTaskProgress] = {
        key: progress for key, progress in state.subtasks.running.items() if key != name
    }
    return replace(state, subtasks=replace(state.subtasks, running=running))


FOLDS = {
    e.TodosChanged: _todos_replaced,
    e.TodosAdded: _todos_added,
    e.TodoChanged: _todo_changed,
    e.TodoRemoved: _todo_removed,
    e.TodoMoved: _todo_moved,
    e.SubTasksProposed: _proposed,
    e.SubTaskMoved: _moved,
    e.SubTaskChanged: _changed,
    e.SubTaskRemoved: _removed,
    e.SubTasksWanted: _wanted,
    e.SubTaskGivenBack: _given_back,
    e.SubTaskProgressed: _progressed,
    e.SubTaskEnded: _ended,
}
