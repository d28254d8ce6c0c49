"""Todos by hand: each step is kept by itself, and the list is as it was the next time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.errors import SessionError
from tui_agent.log import directory


async def test_added_worded_ticked_moved_and_removed_and_resumed(tmp_path: Path) -> None:
    replies = [reply(todos=[{"text": "second"}]), reply(todos=[{"text": "second"}, {"text": "third"}])]
    async with open_session(tmp_path, replies) as session:
        await session.todos.add("first")
        for _ in replies:
            await session.chat.submit("go")
            await session.chat.finished()
        first, second, third = (todo.id for todo in session.state.todos)
        await session.todos.edit(second, "2nd")
        await session.todos.toggle(third)
        await session.todos.move(third, -9)
        await session.todos.move(third, -1)
        await session.todos.move(first, 1)
        await session.todos.add("fourth")
        await session.todos.remove(first)
        before = session.state.todos
        with pytest.raises(SessionError, match="no todo"):
            await session.todos.toggle(first)
    assert [(todo.text, todo.done) for todo in before] == [("third", True), ("2nd", False), ("fourth", False)]
    async with open_session(tmp_path, services=False, session="last") as session:
        assert session.state.todos == before


async def test_a_record_is_as_long_as_what_changed(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        for number in range(40):
            await session.todos.add(f"todo {number}")
            await session.todos.toggle(session.state.todos[-1].id)
        path = session.storage.folder / directory.LOG
    with closing(sqlite3.connect(path)) as connection:
        sizes = connection.execute("SELECT length(body) FROM records WHERE type LIKE 'Todo%'").fetchall()
    assert len(sizes) == 80 and max(sizes) < (200,)
