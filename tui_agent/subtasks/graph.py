"""Sub-tasks and what they wait for: no circles, no strangers, and which are ready."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

SubTaskState = Literal["pending", "ready", "running", "completed", "failed", "skipped", "cancelled"]
#: States that let the tasks behind them begin.
DONE_STATES: frozenset[SubTaskState] = frozenset({"completed", "skipped"})


class SubTask(Struct, frozen=True):
    """One part of the work. `dependencies` are ids of tasks that must be done first."""

    id: str
    goal: str
    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    auto_execute: bool = False
    state: SubTaskState = "pending"
    summary: str = ""


def faults(tasks: Sequence[SubTask]) -> list[str]:
    """Why these tasks cannot be a graph: doubled ids, unknown dependencies, circles; every id is named."""
    found = []
    ids = [task.id for task in tasks]
    doubled = sorted({name for name in ids if ids.count(name) > 1})
    if doubled:
        found.append(f"sub-task ids stand twice: {', '.join(doubled)}")
    unknown = sorted({name for task in tasks for name in task.dependencies if name not in ids})
    if unknown:
        found.append(f"sub-tasks wait for ids that do not exist: {', '.join(unknown)}")
    circle = _left_in_circles(tasks)
    if circle:
        found.append(f"sub-tasks wait for each other in a circle: {', '.join(circle)}")
    return found


def with_ready(tasks: Iterable[SubTask]) -> tuple[SubTask, ...]:
    """The tasks with `pending` and `ready` set by what they wait for; other states stay."""
    tasks = tuple(tasks)
    done = {task.id for task in tasks if task.state in DONE_STATES}
    return tuple(
        replace(task, state="ready" if done.issuperset(task.dependencies) else "pending")
        if task.state in ("pending", "ready")
        else task
        for task in tasks
    )


def layers(tasks: Sequence[SubTask]) -> list[list[SubTask]]:
    """The tasks from left to right: each stands one layer behind the furthest that it waits for."""
    depth: dict[str, int] = {}
    waiting = list(tasks)
    known = {task.id for task in tasks}
    while waiting:
        placed = [t for t in waiting if all(d in depth or d not in known for d in t.dependencies)]
        if not placed:
            placed = waiting  # a circle: refused before it gets here, shown side by side if it does
        for task in placed:
            depth[task.id] = 1 + max((depth.get(d, -1) for d in task.dependencies), default=-1)
        waiting = [task for task in waiting if task not in placed]
    columns: list[list[SubTask]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for task in tasks:
        columns[depth[task.id]].append(task)
    return columns


def _left_in_circles(tasks: Sequence[SubTask]) -> list[str]:
    waits = {task.id: set(task.dependencies) for task in tasks}
    while True:
        free = {name for name, needs in waits.items() if not needs & waits.keys()}
        if not free:
            return sorted(waits)
        waits = {name: needs for name, needs in waits.items() if name not in free}
