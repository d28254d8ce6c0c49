"""Tool that proposes sub-tasks. Refuses an invalid graph, and names its ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tui_agent.answers.values import SubTaskRequest
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask, faults, together
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted

TOO_DEEP = "sub-tasks may not be split further here (subtasks.max_depth): do the work itself"


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    before = {task.id for task in context.core.state.subtasks.tasks}
    refused = await propose_sub_tasks(context, call.entries, emit)
    if not call.is_wire:
        for sentence in refused:
            await emit(e.ModelOwesNews(sentence))
    taken = [task.id for task in context.core.state.subtasks.tasks if task.id not in before]
    told = [f"Proposed to the person: {', '.join(taken)}."] if taken else []
    return ToolResult(
        "\n".join([*told, *refused]) or "These sub-tasks are proposed already.",
        ok=not refused,
        amount=counted(len(taken), "sub-task"),
    )


async def propose_sub_tasks(
    context: ToolContext, requests: Sequence[SubTaskRequest], emit: Emit
) -> tuple[str, ...]:
    """Returns sentences about refused tasks. With `subtasks.begin` auto, marked tasks start; inside a
    sub-task all do, because the user cannot be asked.
    """
    graph, settings = context.core.state.subtasks.tasks, context.core.settings.subtasks
    known = {(task.id, task.goal) for task in graph}
    tasks = tuple(
        SubTask(
            task.id,
            task.goal,
            task.files,
            tuple(dict.fromkeys(task.dependencies)),
            task.auto_execute,
            agent=task.agent,
        )
        for task in requests
        if (task.id, task.goal) not in known  # Some models repeat all open tasks.
    )
    if not tasks:
        return ()
    agents = [name for name, _ in context.core.state.agents]
    wrong = faults(together(graph, tasks)) if settings.max_depth else [TOO_DEEP]
    if missing := sorted({task.agent for task in tasks} - {"", *agents}):
        names = ", ".join(agents) or "none, so leave `agent` out"
        wrong.append(f"there is no agent {', '.join(missing)[:200]} (the agents are: {names})")
    for fault in wrong:
        await emit(e.NoticeGiven("warning", f"The sub-tasks were refused: {fault}", in_chat=True))
    if wrong:
        return tuple(f"Your sub-tasks were refused: {fault}" for fault in wrong)
    told: tuple[str, ...] = ()
    room = max(0, settings.max_per_turn - context.progress.sub_tasks)
    refused = {task.id for task in tasks[room:]}
    while more := {
        task.id for task in tasks if task.id not in refused and refused.intersection(task.dependencies)
    }:
        refused |= more
    names = ", ".join(task.id for task in tasks if task.id in refused)
    tasks = tuple(task for task in tasks if task.id not in refused)
    context.progress.sub_tasks += len(tasks)
    if refused:
        most = settings.max_per_turn
        why = f"a turn can have at most {most} sub-tasks (subtasks.max_per_turn); refused: {names}"
        await emit(e.NoticeGiven("warning", f"Not all sub-tasks were taken: {why}", in_chat=True))
        told = (f"Not all of your sub-tasks were taken: {why}. Do not propose them again in this turn.",)
    if not tasks:
        return told
    await emit(e.SubTasksProposed(tasks))
    if settings.begin == "auto":
        wanted = tuple(task.id for task in tasks if task.auto_execute or context.part)
        if wanted:
            await emit(e.SubTasksWanted(wanted))
    return told


def with_agents(tool: Tool) -> Tool:
    field = {"type": "string", "description": "An agent of the list; leave it out to use none."}
    properties = {**tool.entry["properties"], "agent": field}
    return replace(tool, entry={**tool.entry, "properties": properties})


TOOL = Tool(
    name="spawn_subtasks",
    key="subTasks",
    parameter="subTasks",
    words="Large work split into independent parts.",
    entry={
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "goal": {"type": "string", "minLength": 1},
            "files": {"type": "array", "items": {"type": "string"}},
            "dependencies": {
                "type": "array",
                "description": "Ids that must be done first.",
                "items": {"type": "string"},
            },
            "autoExecute": {"type": "boolean"},
        },
        "required": ["id", "goal"],
    },
    example={"id": "api", "goal": "…", "files": [], "dependencies": [], "autoExecute": False},
    section=(
        "# Sub-tasks\nOnly for large work whose parts can be done apart: each has an id, a goal that can be understood "
        "alone, its files, and the ids it depends on. No circles. Set `autoExecute` only where nothing can go wrong "
        "without review."
    ),
    place=60,
    run=run,
    proposes=True,
    answers=False,
    parallel=False,
    targets=lambda call: tuple(task.id for task in call.entries),
)
