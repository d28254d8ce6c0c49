"""Folding todos: added, reworded, ticked, moved, removed. What is not there (any more) is passed over."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store.state import State


def _all(state: State, event: e.TodosChanged) -> State:
    return replace(state, todos=event.todos)


def _added(state: State, event: e.TodosAdded) -> State:
    return replace(state, todos=(*state.todos, *event.todos))


def _changed(state: State, event: e.TodoChanged) -> State:
    todos = tuple(
        replace(todo, text=event.text, done=event.done) if todo.id == event.id else todo
        for todo in state.todos
    )
    return replace(state, todos=todos)


def _removed(state: State, event: e.TodoRemoved) -> State:
    return replace(state, todos=tuple(todo for todo in state.todos if todo.id != event.id))


def _moved(state: State, event: e.TodoMoved) -> State:
    found = tuple(todo for todo in state.todos if todo.id == event.id)
    others = tuple(todo for todo in state.todos if todo.id != event.id)
    return replace(state, todos=(*others[: event.place], *found, *others[event.place :]))


FOLDS = {
    e.TodosChanged: _all,
    e.TodosAdded: _added,
    e.TodoChanged: _changed,
    e.TodoRemoved: _removed,
    e.TodoMoved: _moved,
}
