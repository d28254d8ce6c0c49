"""How the person looks at the sub-tasks, and which of them are seen then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.store.graph import DONE_STATES, SubTask


class Look(Struct, frozen=True):
    """The task under the cursor; whether done ones are hidden; the words that those seen must hold; whether the
    cursor keeps to what runs."""

    cursor: str = ""
    folded: bool = False
    words: str = ""
    follows: bool = False

    def saved(self) -> dict[str, object]:
        return msgspec.structs.asdict(self)


def read_look(saved: object) -> Look:
    """What was saved; the default where that is none."""
    try:
        return msgspec.convert(saved, Look)
    except msgspec.ValidationError:
        return Look()


def seen(tasks: Sequence[SubTask], look: Look) -> tuple[SubTask, ...]:
    """The tasks that are seen. One that waits for a hidden one is behind what that one waits for."""
    wanted = look.words.lower().split()
    left = [task for task in tasks if _is_seen(task, look, wanted)]
    if len(left) == len(tasks):
        return tuple(tasks)
    by_id = {task.id: task for task in tasks}
    names = {task.id for task in left}
    reached: dict[str, tuple[str, ...]] = {}
    return tuple(replace(task, dependencies=_seen_before(task, by_id, names, reached)) for task in left)


def moved_to(look: Look, tasks: Sequence[SubTask]) -> Look:
    """The look with its cursor on one of these tasks, and on one that runs where it follows."""
    running = [task.id for task in tasks if task.state == "running"]
    if look.follows and running and look.cursor not in running:
        return replace(look, cursor=running[0])
    if any(task.id == look.cursor for task in tasks):
        return look
    return replace(look, cursor=_first(tasks))


def _first(tasks: Sequence[SubTask]) -> str:
    """The task that most wants to be looked at: one that runs, is ready, or is the first."""
    for state in ("running", "ready"):
        for task in tasks:
            if task.state == state:
                return task.id
    return tasks[0].id if tasks else ""


def _is_seen(task: SubTask, look: Look, wanted: Sequence[str]) -> bool:
    if look.folded and task.state in DONE_STATES:
        return False
    words = f"{task.id} {task.goal} {task.state}".lower() if wanted else ""
    return all(word in words for word in wanted)


def _seen_before(
    task: SubTask, by_id: Mapping[str, SubTask], names: set[str], reached: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """What a task is behind, once for all that wait for it."""
    if task.id not in reached:
        reached[task.id] = ()  # were there a circle, it would end here
        found: dict[str, None] = {}
        for name in task.dependencies:
            if name in names:
                found[name] = None
            elif name in by_id:
                found |= dict.fromkeys(_seen_before(by_id[name], by_id, names, reached))
        reached[task.id] = tuple(found)
    return reached[task.id]
