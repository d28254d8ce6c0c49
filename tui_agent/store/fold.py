"""event + state → state: pure, so that the same events always give the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tui_agent.store import (
    fold_batches,
    fold_commands,
    fold_conversation,
    fold_files,
    fold_review,
    fold_session,
    fold_tasks,
    fold_turn,
)
from tui_agent.store.events import Event
from tui_agent.store.state import State

Fold = Callable[[State, Any], State]

FOLDS: dict[type[Event], Fold] = {
    **fold_session.FOLDS,
    **fold_turn.FOLDS,
    **fold_conversation.FOLDS,
    **fold_review.FOLDS,
    **fold_tasks.FOLDS,
    **fold_files.FOLDS,
    **fold_commands.FOLDS,
}
FOLLOWS: dict[type[Event], Fold] = {**fold_batches.FOLLOWS}


def fold(state: State, event: Event) -> State:
    """The state after `event`; slices that it does not touch stay the same objects."""
    state = FOLDS[type(event)](state, event)
    follow = FOLLOWS.get(type(event))
    return state if follow is None else follow(state, event)


def fold_all(events: Iterable[Event], state: State | None = None) -> State:
    """The state that a sequence of events leads to."""
    state = state or State()
    for event in events:
        state = fold(state, event)
    return state
