"""Which hunks of which changes a decision is about, and what the decision makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tui_agent.edits.change import Change, ChangeState, HunkState, Pick
from tui_agent.store.events import ChangeMoved
from tui_agent.store.state import ReviewSlice


class Chosen(Struct, frozen=True):
    """A change and the pending hunks of it that are decided now (none for a change that has no hunks)."""

    change: Change
    hunks: frozenset[int]

    @property
    def done(self) -> frozenset[int]:
        """The hunks that were applied before."""
        return frozenset(place for place, state in enumerate(self.change.hunks) if state == "applied")

    @property
    def whole(self) -> bool:
        """Whether this decides all of the change at once."""
        return len(self.hunks) == len(self.change.hunks)


def choose(review: ReviewSlice, picks: Sequence[Pick]) -> list[Chosen]:
    """The open changes that are picked, oldest first; without picks all of them. Decided hunks are left alone."""
    found = []
    for change in review.changes:
        mine = [pick for pick in picks if pick.change == change.id]
        if not (mine if picks else change.is_open):
            continue
        wanted = {pick.hunk for pick in mine}
        pending = {place for place, state in enumerate(change.hunks) if state == "pending"}
        chosen = (
            pending if None in wanted or not mine else pending & {hunk for hunk in wanted if hunk is not None}
        )
        if chosen or not change.hunks:
            found.append(Chosen(change, frozenset(chosen)))
    return found


def after_skip(chosen: Chosen) -> ChangeMoved:
    """The change with the chosen hunks skipped."""
    return moved(chosen, "skipped", "")


def moved(chosen: Chosen, decision: HunkState, reason: str, written: str = "") -> ChangeMoved:
    """The change with the chosen hunks decided: done when none is pending, applied when one hunk was."""
    hunks = tuple(
        decision if place in chosen.hunks else state for place, state in enumerate(chosen.change.hunks)
    )
    return ChangeMoved(chosen.change.id, _state(chosen.change, hunks, decision), hunks, reason, written)


def _state(change: Change, hunks: tuple[HunkState, ...], decision: HunkState) -> ChangeState:
    if "pending" in hunks:
        return change.state if change.state != "conflict" else "pending"
    if decision == "applied" or "applied" in hunks:
        return "applied"
    return "skipped"
