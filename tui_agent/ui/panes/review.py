"""The review: every proposed change as a diff, decided hunk by hunk, by file or all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.edits.change import Change, Diff, Pick
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.store.state import ReviewSlice, State
from tui_agent.ui.panes.review_place import (
    Place,
    entry,
    hunk_states,
    next_waiting,
    pick,
    shown_changes,
    stand,
    step_file,
    step_hunk,
    waiting,
)
from tui_agent.ui.panes.review_rows import change_rows, hints, title, without_diff
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.diff_view import DiffView
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Rows
from tui_agent.ui.widgets.words import Words

_EMPTY = "Changes that the model proposes are shown here. Nothing is written before you apply it."


class ReviewPane(Pane):
    """The list of changes, the diff of the current one, and what can be done with it."""

    ID = "review"
    TITLE = "Review"
    SLICES: ClassVar[tuple[str, ...]] = ("review", "layout")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._changes: tuple[Change, ...] = ()
        self._place: Place | None = None
        self._drawn: tuple[ReviewSlice, object] | None = None
        self._diffs: dict[tuple[str, str, str], Diff | str] = {}
        self._deciding = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield Rows()
        yield DiffView()
        yield Words()

    @property
    def entry(self) -> Widget:
        return self.query_one(DiffView)

    def show(self, state: State) -> None:
        saved = state.layout.place.get(self.ID)
        drawn = (state.review, saved)
        if self._drawn is not None and self._drawn[0] is state.review and self._drawn[1] == saved:
            return
        self._drawn = drawn
        self._changes = shown_changes(state.review)
        self._place = stand(self._changes, saved)
        self._draw()

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

    def action_apply(self) -> None:
        self.ask(self._decide(self.session.apply, whole=False))

    def action_skip(self) -> None:
        self.ask(self._decide(self.session.skip, whole=False))

    def action_apply_file(self) -> None:
        self.ask(self._decide(self.session.apply, whole=True))

    def action_skip_file(self) -> None:
        self.ask(self._decide(self.session.skip, whole=True))

    def action_apply_all(self) -> None:
        self.ask(self._decide_all(self.session.apply))

    def action_skip_all(self) -> None:
        self.ask(self._decide_all(self.session.skip))

    def action_undo(self) -> None:
        self.ask(self._undo())

    def action_redo(self) -> None:
        self.ask(self.session.redo())

    def action_edit(self) -> None:
        change = self._change()
        if change is not None:
            self.ask(self.session.open_file(change.path, self._line()))

    def action_comment(self) -> None:
        """Begin a message about the hunk in the chat's input, after what is typed there already."""
        change = self._change()
        if change is None:
            return
        draft = self.session.state.input.draft
        about = f"About the change to @{change.path}, line {self._line()}: "
        self.session.set_draft(f"{draft.rstrip()}\n{about}" if draft.strip() else about)
        self.run_worker(self.screen.run_action("screen.go('chat')"))

    def action_next_hunk(self) -> None:
        self._go(step_hunk(self._changes, self._place, 1))

    def action_previous_hunk(self) -> None:
        self._go(step_hunk(self._changes, self._place, -1))

    def action_next_file(self) -> None:
        self._go(step_file(self._changes, self._place, 1))

    def action_previous_file(self) -> None:
        self._go(step_file(self._changes, self._place, -1))

    # ── the mouse ────────────────────────────────────────────────────────────────────────────────────────

    async def on_words_pressed(self, event: Words.Pressed) -> None:
        event.stop()
        await self.run_action(event.action.removeprefix("review."))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        change = next((change for change in self._changes if change.id == event.key), None)
        if change is not None and (self._place is None or self._place.change != change.id):
            self._go(entry(change))

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.query_one(DiffView).focus()

    def on_diff_view_hunk_clicked(self, event: DiffView.HunkClicked) -> None:
        event.stop()
        if self._place is not None:
            self._go(Place(self._place.change, event.hunk))

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────

    async def _decide(self, call: Callable[[Sequence[Pick]], Awaitable[None]], *, whole: bool) -> None:
        """Decide about the current hunk or file, and go on to the next that waits; one decision after another."""
        async with self._deciding:
            self.show(self.session.state)
            change, place = self._change(), self._place
            if change is None or place is None:
                return
            due = waiting([change])
            if place in due or (whole and due):
                await call([Pick(change.id) if whole else pick(change, place)])
                self.show(self.session.state)
            self._go(next_waiting(self._changes, place))

    async def _decide_all(self, call: Callable[[Sequence[Pick]], Awaitable[None]]) -> None:
        async with self._deciding:
            if waiting(shown_changes(self.session.state.review)):
                await call(())
                self.show(self.session.state)

    async def _undo(self) -> None:
        """Take the last apply back, and stand on the first hunk that it opens again."""
        async with self._deciding:
            points = [point for point in self.session.state.review.checkpoints if not point.undone]
            await self.session.undo()
            self.show(self.session.state)
            if points and points[-1].picks:
                first = points[-1].picks[0]
                self._go(stand(self._changes, Place(first.change, first.hunk or 0).saved()))

    def _go(self, place: Place | None) -> None:
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
        rows.display = len(self._changes) > 1 or bool(change and change.reason)
        self.query_one(Words).set_words(hints(self._changes))
        if change is None or place is None:
            self.query_one(DiffView).show_words(_EMPTY)
            return
        known = self._diffs.get(_key(change))
        if known is None:
            self.ask(self._fetch(change))
        else:
            self._draw_diff(change, place, known)

    def _draw_diff(self, change: Change, place: Place, diff: Diff | str) -> None:
        view = self.query_one(DiffView)
        if isinstance(diff, str):
            view.show_words(diff)
        elif not diff.hunks:
            view.show_words(without_diff(change))
        else:
            view.show_diff(diff, hunk_states(change, len(diff.hunks)), place.hunk)

    async def _fetch(self, change: Change) -> None:
        """Get a diff and draw it, unless the person has gone on meanwhile; those of other batches are dropped."""
        try:
            diff: Diff | str = await self.session.diff(change.id)
        except TuiAgentError as error:
            diff = str(error)
        shown = {_key(other) for other in self._changes}
        self._diffs = {key: value for key, value in self._diffs.items() if key in shown} | {
            _key(change): diff
        }
        current = self._change()
        if current is not None and self._place is not None and _key(current) == _key(change):
            self._draw_diff(current, self._place, diff)

    def _change(self) -> Change | None:
        if self._place is None:
            return None
        return next((change for change in self._changes if change.id == self._place.change), None)

    def _line(self) -> int:
        """The line of the file, from 1, where the current hunk begins."""
        change = self._change()
        diff = self._diffs.get(_key(change)) if change else None
        if not isinstance(diff, Diff) or self._place is None or self._place.hunk >= len(diff.hunks):
            return 1
        return diff.hunks[self._place.hunk].start + 1


def _key(change: Change) -> tuple[str, str, str]:
    return change.id, change.base, change.new
