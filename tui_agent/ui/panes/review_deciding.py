"""Deciding in the review: where the person is, what each decision calls, and what is seen then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.edits.change import Change, Pick
from tui_agent.edits.merge import Side
from tui_agent.session.session import Session
from tui_agent.store.state import ReviewSlice, State
from tui_agent.ui.panes.review_body import ReviewBody
from tui_agent.ui.panes.review_place import (
    ReviewPosition,
    next_waiting,
    of_todo,
    pick,
    shown_changes,
    stand,
    step_hunk,
    waiting,
    whole,
)
from tui_agent.ui.panes.review_rows import change_rows, conflict_hints, hints, title
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.hints import HintLine
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Rows

_EMPTY = "Changes that the model proposes are shown here. Nothing is written before you apply it."
_Call = Callable[[Sequence[Pick]], Awaitable[None]]


class Deciding(Pane):
    """A pane at one hunk of one change that decides about it, its file, its todo or all."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._changes: tuple[Change, ...] = ()
        self._place: ReviewPosition | None = None
        self._drawn: tuple[ReviewSlice, object] | None = None
        self._deciding = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield Rows()
        yield ReviewBody(self.session, self.act)
        yield Input(compact=True, placeholder="what the model should know about it")
        yield HintLine()

    def on_mount(self) -> None:
        self._input.display = False

    @property
    def entry(self) -> Widget:
        return self._body.active

    def show(self, state: State) -> None:
        saved = state.layout.place.get(self.ID)
        drawn = (state.review, saved)
        if self._drawn is not None and self._drawn[0] is state.review and self._drawn[1] == saved:
            return
        self._drawn = drawn
        self._changes = shown_changes(state.review)
        self._place = stand(self._changes, saved)
        self._draw()

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────

    def _act(self, call: Coroutine[Any, Any, object]) -> None:
        """Ask the session for what changes where the person is here, and may change what the editor shows."""
        self.act(call, changes=("buffers",))

    async def _decide(self, call: _Call, seen: Sequence[Change], *, file: bool) -> None:
        """Decide about the current hunk or file, and go on to the next that waits; one decision after another.

        `seen` are the changes as they were shown when the key was pressed.
        """
        async with self._deciding:
            self.show(self.session.state)
            change, place = self._change(), self._place
            then = next((before for before in seen if change and before.id == change.id), None)
            if change is None or place is None or then is None:
                return
            due = waiting([change])
            if place in due or (file and due):
                await call([replace(whole(change) if file else pick(change, place), seen=then.version)])
                self.show(self.session.state)
            self._go(next_waiting(self._changes, place))

    async def _decide_todo(self, call: _Call, seen: Sequence[Change]) -> None:
        async with self._deciding:
            change, place = self._change(), self._place
            due = [other for other in of_todo(seen, change) if waiting([other])]
            if due:
                await call([whole(other) for other in due])
                self.show(self.session.state)
                self._go(next_waiting(self._changes, place))

    async def _decide_all(self, call: _Call) -> None:
        async with self._deciding:
            state = self.session.state
            if waiting(shown_changes(state.review)) or state.turn.running:  # a reply may still propose some
                await call(())
                self.show(self.session.state)

    async def _undo(self) -> None:
        """Take the last apply back, and go to the first hunk that it opens again."""
        async with self._deciding:
            points = [point for point in self.session.state.review.checkpoints if not point.undone]
            await self.session.review.undo()
            self.show(self.session.state)
            if points and points[-1].picks:
                first = points[-1].picks[0]
                self._go(stand(self._changes, ReviewPosition(first.change, first.hunk or 0).saved()))

    def _take_back(self, picks: Sequence[Pick]) -> None:
        if picks:
            self._act(self.session.review.take_back(picks))

    def _go_back_over(self, checkpoint: str | None) -> None:
        points = {point.id: point for point in self.session.state.review.checkpoints}
        if checkpoint in points:
            undone = points[checkpoint].undone
            self._act(
                self.session.review.redo(checkpoint) if undone else self.session.review.undo(checkpoint)
            )

    def _take(self, side: Side) -> None:
        """Choose a side at the current place of the conflict; with the last one it is settled."""
        if choosing := self._body.choosing:
            choosing.take(side)
            self._chosen()

    def _wrote_place(self, text: str | None) -> None:
        choosing = self._body.choosing
        if choosing is not None and text is not None:
            choosing.write(text)
            self._chosen()

    def _chosen(self) -> None:
        choosing, change = self._body.choosing, self._change()
        if choosing is not None and change is not None and choosing.decided:
            self._body.forget_conflict(change)
            self._act(
                self.session.review.settle(change.id, choosing.sides, choosing.by_hand, choosing.view.now)
            )
        self._draw()

    def _step(self, step: int) -> None:
        choosing = self._body.choosing
        if choosing is not None and choosing.step(step):
            self._draw()
        else:
            self._go(step_hunk(self._changes, self._place, step, by_change=choosing is not None))

    def _go(self, place: ReviewPosition | None) -> None:
        if place is None or place == self._place:
            return
        layout = self.session.state.layout
        self.session.set_layout(replace(layout, place={**layout.place, self.ID: place.saved()}))
        self.show(self.session.state)

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────

    def _draw(self) -> None:
        change, place = self._change(), self._place
        self.title_text = label(title(self.TITLE, self._changes, place))
        rows = self.query_one(Rows)
        rows.set_rows(change_rows(self._changes), cursor=change.id if change else "")
        rows.display = len(self._changes) > 1 or bool(change and (change.reason or change.comments))
        if change is None or place is None:
            self._body.show_words(_EMPTY)
        else:
            self._body.show_change(change, place, self._changes)
        in_conflict = change is not None and change.state == "conflict"
        self.query_one(HintLine).set_words(conflict_hints(change) if in_conflict else hints(self._changes))

    @property
    def _body(self) -> ReviewBody:
        return self.query_one(ReviewBody)

    @property
    def _input(self) -> Input:
        return self.query_one(Input)

    def _stop_writing(self) -> None:
        self._input.value = ""
        self._input.display = False
        self.entry.focus()

    def _change(self) -> Change | None:
        if self._place is None:
            return None
        return next((change for change in self._changes if change.id == self._place.change), None)

    def _line(self) -> int:
        """The line of the file, from 1, where the current hunk begins."""
        change, place = self._change(), self._place
        diff = self._body.diff(change) if change else None
        if diff is None or place is None or place.hunk >= len(diff.hunks):
            return 1
        return diff.hunks[place.hunk].start + 1
