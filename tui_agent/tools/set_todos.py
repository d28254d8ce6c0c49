"""Todos that a reply sets."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.answers.values import TodoItem
from tui_agent.store import events as e
from tui_agent.store.state import Todo
from tui_agent.tools.context import Emit, ToolContext


async def add_todos(context: ToolContext, items: Sequence[TodoItem], emit: Emit) -> None:
    """Todos with the same text stay what they are, the others are added."""
    before = context.state().todos
    texts = {todo.text for todo in before}
    added = tuple(
        Todo(f"t{context.turn}.{number}", item.text, item.ai_text, item.done, context.turn)
        for number, item in enumerate({item.text: item for item in items}.values(), len(before) + 1)
        if item.text not in texts
    )
    if added:
        await emit(e.TodosAdded(added))
