"""Bringing to the front what has just become worth a look, without taking the focus from anyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tui_agent.store.state import State


class Attention:
    """Shown the state like a pane. `bring` puts a pane in front of those it shares a place with.

    The plan comes when a turn begins, the review when the first change waits, the sub-tasks when there are others.
    """

    SLICES: ClassVar[tuple[str, ...]] = ("turn", "review", "subtasks")

    def __init__(self, bring: Callable[[str], None]) -> None:
        self._bring = bring
        self._turn: int | None = None
        self._pending = 0
        self._tasks: tuple[str, ...] = ()

    def show(self, state: State) -> None:
        turn, pending = state.turn.number, len(state.review.open)
        tasks = tuple(task.id for task in state.subtasks.tasks)
        if self._turn is None:
            self._turn, self._pending, self._tasks = turn, pending, tasks
            return
        if turn != self._turn:
            self._bring("plan")
        if pending and not self._pending:
            self._bring("review")
        if set(tasks) - set(self._tasks):
            self._bring("subtasks")
        self._turn, self._pending, self._tasks = turn, pending, tasks
