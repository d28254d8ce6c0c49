"""What a front end can ask of a session about todos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.session.todo_list import TodoList


class TodoCalls:
    """The part of a session that is about what is to be done; each method on todos raises `SessionError` for an
    id that is not there."""

    _todos: TodoList

    @property
    def state(self) -> State:
        raise NotImplementedError

    async def add_todo(self, text: str) -> None:
        await self._todos.add(text)

    async def edit_todo(self, todo: str, text: str) -> None:
        await self._todos.edit(todo, text)

    async def toggle_todo(self, todo: str) -> None:
        await self._todos.toggle(todo)

    async def remove_todo(self, todo: str) -> None:
        await self._todos.remove(todo)

    async def move_todo(self, todo: str, step: int) -> None:
        await self._todos.move(todo, step)
