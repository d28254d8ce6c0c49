"""The section `## SUB-TASKS` of a request, with a row for each change of a sub-task's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui_agent.context.blocks import item
from tui_agent.edits.change import Change
from tui_agent.store.graph import SubTask

TITLE = "## SUB-TASKS"


def rows(tasks: Sequence[SubTask], changes: Sequence[Change] = ()) -> dict[str, str]:
    disputes = [
        (change, *proposing_tasks(change, changes)) for change in changes if change.state == "conflict"
    ]
    return {
        task.id: _row(task, "".join(_conflict(task.id, *dispute) for dispute in disputes)) for task in tasks
    }


def proposing_tasks(change: Change, changes: Sequence[Change]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rival = next((other for other in changes if other.id == change.rival), None)
    return change.tasks, rival.tasks if rival is not None else ()


def changed_rows(now: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    gone = {name: f"{name}: taken out by the person" for name in told if name not in now}
    return {name: row for name, row in {**now, **gone}.items() if told.get(name) != row}


def section(new_rows: Mapping[str, str]) -> str:
    return "\n".join([TITLE, *(f"- {item(row)}" for row in new_rows.values())]) if new_rows else ""


def _row(task: SubTask, conflicts: str) -> str:
    match task.state:
        case "pending":
            return f"{task.id}: waits for {', '.join(task.dependencies)}"
        case "failed":
            return f"{task.id}: failed, {task.reason}"
        case "completed":
            return f"{task.id}: completed. {task.summary}{_changed(task)}{conflicts}"
        case _:
            return f"{task.id}: {task.state}"


def _changed(task: SubTask) -> str:
    if not task.changed:
        return " It changed no file."
    beyond = f" (beside its files: {', '.join(task.outside)})" if task.outside else ""
    return f" Changed, and shown to the person for review: {', '.join(s.path for s in task.changed)}{beyond}."


def _conflict(task: str, change: Change, mine: Sequence[str], theirs: Sequence[str]) -> str:
    if task not in (*mine, *theirs):
        return ""
    others = theirs if task in mine else mine
    rival = f"that of {' and '.join(others)}" if others else "one of yours or of the person"
    return f" Its change to {change.path} conflicts with {rival}: the person decides between them."
