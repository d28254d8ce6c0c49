"""What the model is told of its sub-tasks (T5): the section `## SUB-TASKS`, a row for each that is news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui_agent.context.blocks import item
from tui_agent.subtasks.graph import SubTask

TITLE = "## SUB-TASKS"


def rows(tasks: Sequence[SubTask]) -> dict[str, str]:
    """How each sub-task stands, in a line, by its id."""
    return {task.id: _row(task) for task in tasks}


def news(now: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """The rows that differ from what was told last; one that was taken out of the graph says so."""
    gone = {name: f"{name}: taken out by the person" for name in told if name not in now}
    return {name: row for name, row in {**now, **gone}.items() if told.get(name) != row}


def section(new_rows: Mapping[str, str]) -> str:
    """The section, empty where there is no news."""
    return "\n".join([TITLE, *(f"- {item(row)}" for row in new_rows.values())]) if new_rows else ""


def _row(task: SubTask) -> str:
    match task.state:
        case "pending":
            return f"{task.id}: waits for {', '.join(task.dependencies)}"
        case "failed":
            return f"{task.id}: failed, {task.reason}"
        case "completed":
            return f"{task.id}: completed. {task.summary}{_changed(task)}"
        case _:
            return f"{task.id}: {task.state}"


def _changed(task: SubTask) -> str:
    if not task.changed:
        return " It changed no file."
    beyond = f" (beside its files: {', '.join(task.outside)})" if task.outside else ""
    return f" Changed, and shown to the person for review: {', '.join(s.path for s in task.changed)}{beyond}."
