"""Tool that sets todos."""

from __future__ import annotations

from tui_agent.store import events as e
from tui_agent.store.state import Todo
from tui_agent.tools.tool import Emit, Invocation, Tool, ToolContext, ToolResult, counted


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    before = context.core.state.todos
    texts = {todo.text for todo in before}
    added = tuple(
        Todo(f"t{context.turn}.{number}", item.text, item.ai_text, item.done, context.turn)
        for number, item in enumerate({item.text: item for item in call.entries}.values(), len(before) + 1)
        if item.text not in texts
    )
    if added:
        await emit(e.TodosAdded(added))
    todos = context.core.state.todos
    left = sum(not todo.done for todo in todos)
    return ToolResult(
        f"The list has {counted(len(todos), 'todo')}, {left} of them open.",
        amount=counted(len(call.entries), "todo"),
    )


TOOL = Tool(
    name="set_todos",
    key="todos",
    parameter="todos",
    words="The parts of the work. Leave out to keep the list as it is.",
    entry={
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "description": "For the person, a few words."},
            "aiText": {"type": "string", "description": "Details you will want when you come back to it."},
            "done": {"type": "boolean"},
        },
        "required": ["text"],
    },
    example={"text": "Add timeouts", "aiText": "details for later", "done": False},
    place=10,
    run=run,
    answers=False,
    parallel=False,
)
