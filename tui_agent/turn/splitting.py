"""Sub-tasks that a reply proposes: a graph that can be one joins the work, another is refused with every id named."""

from __future__ import annotations

from collections.abc import Iterator

from tui_agent.answers.values import Reply
from tui_agent.store import events as e
from tui_agent.subtasks.graph import SubTask, faults, together
from tui_agent.turn.desk import Desk

TOO_DEEP = "sub-tasks may not be split further here (subtasks.max_depth): do the work itself"


def split(desk: Desk, reply: Reply) -> Iterator[e.Event]:
    """The proposal as events. With autonomy `auto` what is marked for it is wanted at once, and all of it in a
    sub-task, which nobody can be asked about."""
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
    yield e.SubTasksProposed(tasks)
    if desk.settings.autonomy == "auto":
        wanted = tuple(task.id for task in tasks if task.auto_execute or desk.part)
        if wanted:
            yield e.SubTasksWanted(wanted)
