"""View options of the sub-tasks, and the resulting visible tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent.store.graph import DONE_STATES, SubTask
from tui_agent.ui.graph.facts import waits_for_user


class ViewOptions(Struct, frozen=True):
    """Selected task, hiding of finished tasks, filter words, and whether the cursor follows running tasks."""

    cursor: str = ""
    folded: bool = False
    words: str = ""
    follows: bool = False

    def saved(self) -> dict[str, object]:
        return msgspec.structs.asdict(self)


def read_look(saved: object) -> ViewOptions:
    """Decodes saved options; defaults if missing or invalid."""
    try:
        return msgspec.convert(saved, ViewOptions)
    except msgspec.ValidationError:
        return ViewOptions()


def visible_tasks(tasks: Sequence[SubTask], look: ViewOptions) -> tuple[SubTask, ...]:
    wanted = look.words.lower().split()
    left = [task for task in tasks if _is_seen(task, look, wanted)]
    if len(left) == len(tasks):
        return tuple(tasks)
    by_id = {task.id: task for task in tasks}
    names = {task.id for task in left}
    reached: dict[str, tuple[str, ...]] = {}
    return tuple(replace(task, dependencies=_seen_before(task, by_id, names, reached)) for task in left)


def moved_to(look: ViewOptions, tasks: Sequence[SubTask]) -> ViewOptions:
    running = [task.id for task in tasks if task.state == "running"]
    if look.follows and running and look.cursor not in running:
        return replace(look, cursor=running[0])
    if any(task.id == look.cursor for task in tasks):
        return look
    return replace(look, cursor=_first(tasks))


def _first(tasks: Sequence[SubTask]) -> str:
    """Tasks that wait for the user rank before those that run, and these before all others."""
    first = sorted(tasks, key=lambda task: (not waits_for_user(task), task.state != "running"))
    return first[0].id if first else ""


def _is_seen(task: SubTask, look: ViewOptions, wanted: Sequence[str]) -> bool:
    if look.folded and task.state in DONE_STATES:
        return False
    words = f"{task.id} {task.goal} {task.state}".lower() if wanted else ""
    return all(word in words for word in wanted)


def _seen_before(
    task: SubTask, by_id: Mapping[str, SubTask], names: set[str], reached: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Nearest visible ancestors of a task, memoized in `reached`."""
    if task.id not in reached:
        reached[task.id] = ()  # terminates dependency cycles
        found: dict[str, None] = {}
        for name in task.dependencies:
            if name in names:
                found[name] = None
            elif name in by_id:
                found |= dict.fromkeys(_seen_before(by_id[name], by_id, names, reached))
        reached[task.id] = tuple(found)
    return reached[task.id]
