"""Space requirements of the panes: empty ones fold to their title, those awaiting the user grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tui_agent.store.state import ActionSlice, State

#: Rows or columns of a pane that uses all available space.
ANY = 999


class SpaceNeed(NamedTuple):
    """Rows (0: empty) and columns a pane can fill, and whether it awaits the user."""

    rows: int = ANY
    columns: int = ANY
    waits: bool = False


Needs = Mapping[str, SpaceNeed]
NOTHING = SpaceNeed(0, 0)
#: Needs of a new session.
AT_FIRST: Needs = {"files": SpaceNeed(), "chat": SpaceNeed()}
#: Rows and columns per task in the graph, and rows around the graph (limits, details, actions).
_TASK_ROWS, _TASK_COLUMNS, _AROUND = 3, 24, 10
#: Characters of a todo per line if it shares its row with the sub-tasks.
_TODO_LETTERS = 20
#: Plan rows: files listed per action, alternative files, and a question without its choices.
_FILES, _OTHERS, _QUESTION = 6, 3, 6


def needs_of(state: State) -> Needs:
    """Needs by pane; panes not in the result are empty."""
    found = {
        "plan": _plan(state),
        "known": SpaceNeed(len(state.known.files) + 2) if state.known.files else NOTHING,
        "buffers": SpaceNeed() if state.buffers.open else NOTHING,
        "review": SpaceNeed(waits=bool(state.review.open)) if state.review.changes else NOTHING,
        "todos": _todos(state),
        "subtasks": _subtasks(state),
    }
    return {**AT_FIRST, **{pane: need for pane, need in found.items() if need.rows}}


def _plan(state: State) -> SpaceNeed:
    plan = state.plan
    rows = sum(_action(action) for action in plan.actions)
    rows += len(plan.directories) + len(plan.listed) + len(plan.faults)
    return SpaceNeed(rows, waits=state.turn.phase == "waiting") if rows else NOTHING


def _action(action: ActionSlice) -> int:
    rows = 1 + len(action.earlier) + len(action.action.steps) + min(len(action.loaded), _FILES)
    rows += min(len(action.others), _OTHERS) + (action.state in ("skipped", "create", "failed"))
    return rows + (_QUESTION + min(len(action.nearest), 9) if action.state == "asking" else 0)


def _todos(state: State) -> SpaceNeed:
    longest = max((len(todo.text) for todo in state.todos), default=0)
    rows = sum(1 + len(todo.text) // _TODO_LETTERS for todo in state.todos)
    return SpaceNeed(rows + 1, min(longest, 40) + 12) if state.todos else NOTHING


def _subtasks(state: State) -> SpaceNeed:
    tasks = state.subtasks.tasks
    if not tasks:
        return NOTHING
    from tui_agent.store.graph import layers

    depth = [len(layer) for layer in layers(tasks)]
    return SpaceNeed(max(depth) * _TASK_ROWS + _AROUND, len(depth) * _TASK_COLUMNS)
