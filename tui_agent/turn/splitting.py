"""Sub-tasks that a reply proposes: a graph that can be one joins the work, another is refused with every id named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_agent.answers.values import Reply
from tui_agent.store import events as e
from tui_agent.subtasks.graph import SubTask, faults, together
from tui_agent.turn.desk import Desk, Gathered

TOO_DEEP = "sub-tasks may not be split further here (subtasks.max_depth): do the work itself"


def split(desk: Desk, gathered: Gathered, reply: Reply) -> Iterator[e.Event]:
    """The proposal as events; what is more than a turn may have is refused by name.

    With autonomy `auto` what is marked for it is wanted at once, and all of it in a sub-task, which nobody can be
    asked about.
    """
    if not reply.sub_tasks:
        return
    known = {(task.id, task.goal) for task in desk.state().subtasks.tasks}
    tasks = tuple(
        SubTask(task.id, task.goal, task.files, tuple(dict.fromkeys(task.dependencies)), task.auto_execute)
        for task in reply.sub_tasks
        if (task.id, task.goal) not in known  # said again, as some models do with all that is open
    )
    if not tasks:
        return
    wrong = faults(together(desk.state().subtasks.tasks, tasks))
    if not desk.settings.subtasks.max_depth:
        wrong = [TOO_DEEP]
    for fault in wrong:
        yield e.NoticeGiven("warning", f"The sub-tasks were refused: {fault}")
        yield e.ModelOwesNews(f"Your sub-tasks were refused: {fault}")
    if wrong:
        return
    tasks, refused = _as_many_as_may(tasks, desk.settings.subtasks.max_per_turn - gathered.split)
    gathered.split += len(tasks)
    if refused:
        names = ", ".join(task.id for task in refused)
        most = desk.settings.subtasks.max_per_turn
        why = f"a turn may have {most} sub-tasks (subtasks.max_per_turn), these were refused: {names}"
        yield e.NoticeGiven("warning", f"Not all sub-tasks were taken: {why}")
        yield e.ModelOwesNews(
            f"Not all of your sub-tasks were taken: {why}. Do not propose them again in this turn."
        )
    if not tasks:
        return
    yield e.SubTasksProposed(tasks)
    if desk.settings.autonomy == "auto":
        wanted = tuple(task.id for task in tasks if task.auto_execute or desk.part)
        if wanted:
            yield e.SubTasksWanted(wanted)


def _as_many_as_may(tasks: Sequence[SubTask], room: int) -> tuple[tuple[SubTask, ...], tuple[SubTask, ...]]:
    """The first that there is room for, and those that are refused, with all that would wait for one of these."""
    refused = {task.id for task in tasks[max(0, room) :]}
    while more := {
        task.id for task in tasks if task.id not in refused and refused.intersection(task.dependencies)
    }:
        refused |= more
    return (
        tuple(task for task in tasks if task.id not in refused),
        tuple(task for task in tasks if task.id in refused),
    )
