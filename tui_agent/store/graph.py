"""Sub-tasks and what they wait for: no circles, no strangers, which are ready, and what may become of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import FileStep

SubTaskState = Literal["pending", "ready", "running", "completed", "failed", "skipped", "cancelled"]
#: What a task failed for: a limit that it reached, or anything else.
Cause = Literal["", "limit", "error"]
#: States that let the tasks behind them begin.
DONE_STATES: frozenset[SubTaskState] = frozenset({"completed", "skipped"})
#: States in which a task is still to be done: a graph that has none of them is at its end.
OPEN_STATES: frozenset[SubTaskState] = frozenset({"pending", "ready", "running"})
#: What may become of a task in each state. `pending` and `ready` follow from what it waits for.
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


class SubTask(Struct, frozen=True):
    """One part of the work. `dependencies` are ids of tasks that must be done first, `files` its scope.

    `auto_execute` marks it for the next batch that is approved (or, with autonomy `auto`, to run by itself);
    `wanted` that it was approved and begins as soon as it can. `runs` counts how often it was begun, `earlier` how
    often others were that had its id before it, in a graph that is over. `changed` are
    the files that its last run left otherwise than it found them, `tokens`, `cost` (in dollars, None where that is
    not known) and `seconds` what all its runs took; `reason` is why it failed, and `cause` what kind of reason that is.
    `on_top` are tasks that the next run
    builds on beside its dependencies, `note` what that run is told of it.
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

    @property
    def run(self) -> int:
        """The number of its newest run among all that the session has begun under its id."""
        return self.earlier + self.runs

    @property
    def outside(self) -> tuple[str, ...]:
        """What it changed beside the files that were named for it; none where none were."""
        return tuple(step.path for step in self.changed if self.files and step.path not in self.files)


def may_become(task: SubTask, state: SubTaskState) -> bool:
    """Whether a task may go to a state from the one it is in."""
    return state in MOVES[task.state]


def faults(tasks: Sequence[SubTask]) -> list[str]:
    """Why these tasks cannot be a graph: doubled ids, unknown dependencies, circles; every id is named."""
    found = []
    ids = [task.id for task in tasks]
    doubled = sorted({name for name in ids if ids.count(name) > 1})
    if doubled:
        found.append(f"sub-task ids occur twice: {', '.join(doubled)}")
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


def together(before: Sequence[SubTask], added: Sequence[SubTask]) -> tuple[SubTask, ...]:
    """The graph after a proposal: what is proposed joins work that is not done yet, else it begins a new graph."""
    if not any(task.state in OPEN_STATES for task in before):
        return tuple(added)
    return (*before, *added)


def priorities(tasks: Sequence[SubTask]) -> dict[str, int]:
    """By id, how many tasks in a row, itself included, cannot end before it has: the longest path behind it."""
    behind: dict[str, list[str]] = {task.id: [] for task in tasks}
    for task in tasks:
        for name in task.dependencies:
            behind.get(name, []).append(task.id)
    found: dict[str, int] = {}
    for layer in reversed(layers(tasks)):
        for task in layer:
            found[task.id] = 1 + max((found.get(name, 0) for name in behind[task.id]), default=0)
    return found


def startable(tasks: Sequence[SubTask]) -> list[SubTask]:
    """The tasks that are ready and wanted, the one with the longest path behind it first."""
    rank = priorities(tasks)
    waiting = [task for task in tasks if task.state == "ready" and task.wanted]
    return sorted(waiting, key=lambda task: -rank[task.id])


def needed_by(task: SubTask, tasks: Sequence[SubTask]) -> list[SubTask]:
    """All that a task builds on, directly or not, in an order in which each is behind what it needs."""
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
    """The tasks from left to right: each is one layer behind the furthest that it waits for."""
    known = {task.id for task in tasks}
    behind: dict[str, list[str]] = {name: [] for name in known}
    waits = {task.id: known.intersection(task.dependencies) for task in tasks}
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
    depth |= dict.fromkeys(
        known - depth.keys(), number
    )  # a circle, refused before it gets here: side by side
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
