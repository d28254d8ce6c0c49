"""Review position: displayed changes, current hunk and navigation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tui_agent.edits.change import Change, ChangeState, HunkState, Pick
from tui_agent.store.state import ReviewSlice

#: States that prevent applying; such a change is retried or skipped as a whole.
BROKEN: frozenset[ChangeState] = frozenset({"conflict", "failed"})


class ReviewPosition(NamedTuple):
    """A zero-based hunk index in a change; 0 for changes without hunks, such as renames."""

    change: str
    hunk: int = 0

    def saved(self) -> dict[str, Any]:
        return {"change": self.change, "hunk": self.hunk}


def shown_changes(review: ReviewSlice) -> tuple[Change, ...]:
    if not review.changes:
        return ()
    turns = {change.turn for change in review.changes if change.is_open or change.state == "conflict"}
    turns.add(review.changes[-1].turn)
    shown = [change for change in review.changes if change.turn in turns]
    newest = {change.path: change.id for change in shown}
    return tuple(c for c in shown if c.state != "skipped" or newest[c.path] == c.id)


def change_at(changes: Sequence[Change], position: ReviewPosition | None) -> Change | None:
    """The change at a position, or `None` if it no longer exists."""
    return next((change for change in changes if position and change.id == position.change), None)


def places_of(changes: Sequence[Change]) -> list[ReviewPosition]:
    return [
        ReviewPosition(change.id, hunk) for change in changes for hunk in range(max(len(change.hunks), 1))
    ]


def waiting(changes: Sequence[Change]) -> list[ReviewPosition]:
    hunks = [
        ReviewPosition(change.id, hunk)
        for change in changes
        if change.is_open
        for hunk, state in enumerate(change.hunks or ("pending",))
        if state == "pending"
    ]
    return [*hunks, *(ReviewPosition(change.id) for change in changes if change.state in BROKEN)]


def restored_position(changes: Sequence[Change], saved: object) -> ReviewPosition | None:
    """The saved position if still valid, or else the first pending one, or else the first. `None` without
    changes."""
    wanted = _read(saved)
    there = places_of(changes)
    if wanted in there:
        return wanted
    return next(iter([*waiting(changes), *there]), None)


def next_waiting(changes: Sequence[Change], place: ReviewPosition | None) -> ReviewPosition | None:
    """The next pending position, wrapping around; `place` itself if none is pending."""
    order = places_of(changes)
    due = set(waiting(changes))
    start = order.index(place) + 1 if place in order else 0
    return next((other for other in order[start:] + order[:start] if other in due), place)


def step_hunk(
    changes: Sequence[Change], place: ReviewPosition | None, step: int, *, by_change: bool = False
) -> ReviewPosition | None:
    """The next or previous hunk across files, clamped at both ends.

    `by_change` skips the remaining hunks of the current change.
    """
    order = places_of(changes)
    if place not in order:
        return next(iter(order), None)
    if by_change:
        order = [other for other in order if other == place or other.change != place.change]
    return order[max(0, min(order.index(place) + step, len(order) - 1))]


def step_file(changes: Sequence[Change], place: ReviewPosition | None, step: int) -> ReviewPosition | None:
    """The first pending (or else the first) hunk of the next or previous file, wrapping around."""
    if not changes:
        return None
    ids = [change.id for change in changes]
    at = ids.index(place.change) if place and place.change in ids else 0
    return entry(changes[(at + step) % len(changes)])


def of_todo(changes: Sequence[Change], change: Change | None) -> list[Change]:
    """The changes of the same todo; only `change` itself if it has none."""
    if change is None:
        return []
    return [
        other for other in changes if other.id == change.id or (change.todo and other.todo == change.todo)
    ]


def entry(change: Change) -> ReviewPosition:
    return next(iter([*waiting([change]), ReviewPosition(change.id)]))


def pick(change: Change, place: ReviewPosition) -> Pick:
    return Pick(change.id, place.hunk if change.hunks and change.is_open else None, change.version)


def whole(change: Change) -> Pick:
    return Pick(change.id, None, change.version)


def hunk_states(change: Change, count: int) -> tuple[HunkState, ...]:
    whole: HunkState = "pending"
    if not change.is_open and change.state not in BROKEN:
        whole = "applied" if change.state == "applied" else "skipped"
    return tuple(_states(change, count, whole))


def _states(change: Change, count: int, whole: HunkState) -> Iterator[HunkState]:
    for index in range(count):
        state = change.hunks[index] if index < len(change.hunks) else whole
        yield whole if state == "pending" else state


def _read(saved: object) -> ReviewPosition | None:
    if not isinstance(saved, dict):
        return None
    change, hunk = saved.get("change"), saved.get("hunk", 0)
    return ReviewPosition(change, hunk) if isinstance(change, str) and isinstance(hunk, int) else None
