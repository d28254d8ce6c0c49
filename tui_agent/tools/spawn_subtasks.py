"""Sub-tasks that a reply proposes: a graph that can be one joins the work, another is refused with every id named."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.answers.values import SubTaskRequest
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask, faults, together
from tui_agent.tools.context import Emit, ToolContext

TOO_DEEP = "sub-tasks may not be split further here (subtasks.max_depth): do the work itself"


async def propose_sub_tasks(context: ToolContext, requests: Sequence[SubTaskRequest], emit: Emit) -> None:
    """The proposal as events; what is more than a turn may have is refused by name.

    With autonomy `auto` what is marked for it is wanted at once, and all of it in a sub-task, which nobody can be
    asked about.
    """
    graph, settings = context.state().subtasks.tasks, context.settings.subtasks
    known = {(task.id, task.goal) for task in graph}
    tasks = tuple(
        SubTask(task.id, task.goal, task.files, tuple(dict.fromkeys(task.dependencies)), task.auto_execute)
        for task in requests
        if (task.id, task.goal) not in known  # said again, as some models do with all that is open
    )
    if not tasks:
        return
    wrong = faults(together(graph, tasks)) if settings.max_depth else [TOO_DEEP]
    for fault in wrong:
        await emit(e.NoticeGiven("warning", f"The sub-tasks were refused: {fault}"))
        await emit(e.ModelOwesNews(f"Your sub-tasks were refused: {fault}"))
    if wrong:
        return
    tasks, refused = _as_many_as_may(tasks, settings.max_per_turn - context.progress.sub_tasks)
    context.progress.sub_tasks += len(tasks)
    if refused:
        names = ", ".join(task.id for task in refused)
        most = settings.max_per_turn
        why = f"a turn may have {most} sub-tasks (subtasks.max_per_turn), these were refused: {names}"
        await emit(e.NoticeGiven("warning", f"Not all sub-tasks were taken: {why}"))
        await emit(
            e.ModelOwesNews(
                f"Not all of your sub-tasks were taken: {why}. Do not propose them again in this turn."
            )
        )
    if not tasks:
        return
    await emit(e.SubTasksProposed(tasks))
    if context.settings.autonomy == "auto":
        wanted = tuple(task.id for task in tasks if task.auto_execute or context.part)
        if wanted:
            await emit(e.SubTasksWanted(wanted))


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
