"""Manual edits of todos: add, edit, toggle, move, remove."""

from __future__ import annotations

from tui_agent.errors import SessionError
from tui_agent.log.core import call
from tui_agent.log.journal import Journal
from tui_agent.store import events as e
from tui_agent.store.state import State, Todo


class Todos:
    """Methods raise `SessionError` for an unknown id."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def add(self, text: str) -> None:
        turn = self.state.turn.number
        taken = {todo.id for todo in self.state.todos}
        number = next(n for n in range(1, len(taken) + 2) if f"m{n}" not in taken)
        await self._journal.record(e.TodosAdded((Todo(f"m{number}", text.strip(), turn=turn),)))

    @call(changes=True)
    async def edit(self, todo: str, text: str) -> None:
        found = self._named(todo)
        await self._journal.record(e.TodoChanged(todo, text.strip(), found.done))

    @call(changes=True)
    async def toggle(self, todo: str) -> None:
        found = self._named(todo)
        await self._journal.record(e.TodoChanged(todo, found.text, not found.done))

    @call(changes=True)
    async def remove(self, todo: str) -> None:
        self._named(todo)
        await self._journal.record(e.TodoRemoved(todo))

    @call(changes=True)
    async def move(self, todo: str, step: int) -> None:
        """Moves up if negative, within the list."""
        at = self.state.todos.index(self._named(todo))
        place = max(0, min(len(self.state.todos) - 1, at + step))
        if place != at:
            await self._journal.record(e.TodoMoved(todo, place))

    def _named(self, todo: str) -> Todo:
        found = next((item for item in self.state.todos if item.id == todo), None)
        if found is None:
            raise SessionError(f"There is no todo {todo}", "choose one from the list")
        return found
