"""Bringing to the front what has just become worth a look, without taking the focus from anyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tui_agent.store.state import State


class Attention:
    """Shown the state like a pane. `bring` puts a pane in front of those it shares a place with.

    The plan comes when a turn begins, the review when the first change waits.
    """

    SLICES: ClassVar[tuple[str, ...]] = ("turn", "review")

    def __init__(self, bring: Callable[[str], None]) -> None:
        self._bring = bring
        self._turn: int | None = None
        self._pending = 0

    def show(self, state: State) -> None:
        turn, pending = state.turn.number, len(state.review.open)
        if self._turn is None:
            self._turn, self._pending = turn, pending
            return
        if turn != self._turn and state.turn.running:
            self._bring("plan")
        if pending and not self._pending:
            self._bring("review")
        self._turn, self._pending = turn, pending
