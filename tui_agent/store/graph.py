"""The graph of sub-tasks: validation, readiness and state transitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import FileStep

SubTaskState = Literal["pending", "ready", "running", "completed", "failed", "skipped", "cancelled"]
Cause = Literal["", "limit", "error"]
DONE_STATES: frozenset[SubTaskState] = frozenset({"completed", "skipped"})
_WAITING: frozenset[SubTaskState] = frozenset({"pending", "ready"})
#: A graph without unfinished tasks is complete.
OPEN_STATES: frozenset[SubTaskState] = frozenset({"pending", "ready", "running"})
#: Allowed transitions. `pending` and `ready` follow from dependencies.
MOVES: Mapping[SubTaskState, frozenset[SubTaskState]] = MappingProxyType(
    {
        "pending": frozenset({"ready", "skipped", "cancelled"}),
        "ready": frozenset({"pending", "running", "skipped", "cancelled"}),
        "running": frozenset({"completed", "failed", "cancelled"}),
        "completed": frozenset({"pending"}),
        "failed": frozenset({"pending", "skipped"}),
        "skipped": frozenset({"pending"}),
        "cancelled": frozenset({"pending", "skipped"}),
    }
)


Edges = tuple[tuple[str, tuple[str, ...]], ...]


class SubTask(Struct, frozen=True):
    """`files` is its scope. `auto_execute` marks it for the next batch, or for an automatic start. `wanted`:
    starts as soon as possible. `runs` counts its starts, `earlier` those of the same id in earlier
    graphs. `changed` are files of the last run; `tokens`, `cost` (dollars, None if unknown) and `seconds`
    are totals. `cause` is the category of `reason`. `on_top` are additional prerequisites of the next
    run, `note` its extra instructions.
    """

    id: str
    goal: str
    files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    auto_execute: bool = False
    state: SubTaskState = "pending"
    summary: str = ""
    wanted: bool = False
    runs: int = 0
    changed: tuple[FileStep, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    reason: str = ""
    on_top: tuple[str, ...] = ()
    note: str = ""
    earlier: int = 0
    cause: Cause = ""
    #: The agent whose prompt, model and tools it has, or the outside agent that does it; "" for its parent's.
    agent: str = ""
    #: Group of attempts at one goal, whose results wait until one is taken; "" for others.
    attempt: str = ""
    model: str = ""

    @property
    def run(self) -> int:
        return self.earlier + self.runs

    @property
    def outside(self) -> tuple[str, ...]:
        """Changed files outside the scope; empty without one."""
        return tuple(step.path for step in self.changed if self.files and step.path not in self.files)


def may_become(task: SubTask, state: SubTaskState) -> bool:
    return state in MOVES[task.state]


def faults(tasks: Sequence[SubTask]) -> list[str]:
    """Names all duplicate ids, unknown dependencies and cycles."""
    found = []
    ids = Counter(task.id for task in tasks)
    doubled = sorted(name for name, count in ids.items() if count > 1)
    if doubled:
        found.append(f"sub-task ids occur twice: {', '.join(doubled)}")
    unknown = sorted({name for task in tasks for name in task.dependencies if name not in ids})
    if unknown:
        found.append(f"sub-tasks depend on unknown ids: {', '.join(unknown)}")
    waits = {task.id: set(task.dependencies) for task in tasks}
    while free := {name for name, needs in waits.items() if not needs & waits.keys()}:
        waits = {name: needs for name, needs in waits.items() if name not in free}
    if waits:
        found.append(f"sub-tasks depend on each other in a circle: {', '.join(sorted(waits))}")
    return found


def with_ready(tasks: Iterable[SubTask]) -> tuple[SubTask, ...]:
    """Keeps an unchanged task's object: readers compare by identity."""
    tasks = tuple(tasks)
    done = _done(tasks)
    return tuple(_readied(task, done) if task.state in _WAITING else task for task in tasks)


def _done(tasks: Sequence[SubTask]) -> set[str]:
    return {task.id for task in tasks if task.state in DONE_STATES}


def _readied(task: SubTask, done: Collection[str]) -> SubTask:
    state = "ready" if all(name in done for name in task.dependencies) else "pending"
    return task if task.state == state else replace(task, state=state)


def with_task(tasks: Sequence[SubTask], made: SubTask) -> tuple[SubTask, ...]:
    at = next((n for n, task in enumerate(tasks) if task.id == made.id), None)
    if at is None:
        return tuple(tasks)
    if made.state in _WAITING:
        made = _readied(made, _done(tasks) - {made.id})
    changed = (*tasks[:at], made, *tasks[at + 1 :])
    if (tasks[at].state in DONE_STATES) == (made.state in DONE_STATES):
        return changed
    dependents = {task.id for task in changed if task.dependencies and made.id in task.dependencies}
    if not dependents:
        return changed
    done = _done(changed)
    return tuple(
        _readied(task, done) if task.id in dependents and task.state in _WAITING else task for task in changed
    )


def together(before: Sequence[SubTask], added: Sequence[SubTask]) -> tuple[SubTask, ...]:
    if not any(task.state in OPEN_STATES for task in before):
        return tuple(added)
    return (*before, *added)


def priorities(tasks: Sequence[SubTask]) -> Mapping[str, int]:
    """Counts the longest path of dependents, including the task."""
    return _priorities(_edges(tasks))


@lru_cache(maxsize=8)
def _priorities(edges: Edges) -> Mapping[str, int]:
    behind: dict[str, list[str]] = {name: [] for name, _ in edges}
    for name, needs in edges:
        for needed in needs:
            behind.get(needed, []).append(name)
    found: dict[str, int] = {}
    for layer in reversed(_columns(edges)):
        for name in layer:
            found[name] = 1 + max((found.get(other, 0) for other in behind[name]), default=0)
    return MappingProxyType(found)


def startable(tasks: Sequence[SubTask]) -> list[SubTask]:
    waiting = [task for task in tasks if task.state == "ready" and task.wanted]
    if len(waiting) < 2 or not any(task.dependencies for task in tasks):
        return waiting
    rank = priorities(tasks)
    return sorted(waiting, key=lambda task: -rank[task.id])


def needed_by(task: SubTask, tasks: Sequence[SubTask]) -> list[SubTask]:
    """Includes indirect ones, in topological order."""
    if not (task.dependencies or task.on_top):
        return []
    by_id = {other.id: other for other in tasks}
    wanted: set[str] = set()
    open_ids = [*task.dependencies, *task.on_top]
    while open_ids:
        name = open_ids.pop()
        if name in by_id and name not in wanted and name != task.id:
            wanted.add(name)
            open_ids += by_id[name].dependencies
    return [other for layer in layers(tasks) for other in layer if other.id in wanted]


def layers(tasks: Sequence[SubTask]) -> list[list[SubTask]]:
    by_id = {task.id: task for task in tasks}
    return [[by_id[name] for name in column] for column in _columns(_edges(tasks))]


def _edges(tasks: Sequence[SubTask]) -> Edges:
    return tuple((task.id, task.dependencies) for task in tasks)


@lru_cache(maxsize=8)
def _columns(edges: Edges) -> Sequence[Sequence[str]]:
    known = {name for name, _ in edges}
    behind: dict[str, list[str]] = {name: [] for name in known}
    waits = {name: known.intersection(needs) for name, needs in edges}
    for name, needs in waits.items():
        for needed in needs:
            behind[needed].append(name)
    left = {name: len(needs) for name, needs in waits.items()}
    depth: dict[str, int] = {}
    layer, number = [name for name in left if not left[name]], 0
    while layer:
        depth |= dict.fromkeys(layer, number)
        number += 1
        reached = [later for name in layer for later in behind[name]]
        for later in reached:
            left[later] -= 1
        layer = [later for later in dict.fromkeys(reached) if not left[later]]
    depth |= dict.fromkeys(known - depth.keys(), number)  # A cycle, which validation excludes: same layer.
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, _ in edges:
        columns[depth[name]].append(name)
    return columns
