"""The review pane: proposed changes as diffs, decided by hunk, file, todo or all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar, cast

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.edits.change import Change, Pick
from tui_agent.edits.merge import Side
from tui_agent.errors import TuiAgentError
from tui_agent.session.session import Session
from tui_agent.store.commands import CheckMark, in_short
from tui_agent.store.state import ReviewSlice, State
from tui_agent.ui.availability import why_not
from tui_agent.ui.diff.conflict_view import ConflictLines
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.editor.stored_input import KeptInput
from tui_agent.ui.panes.review_body import ReviewBody
from tui_agent.ui.panes.review_decisions import ReviewDecisions
from tui_agent.ui.panes.review_place import (
    BROKEN,
    ReviewPosition,
    change_at,
    entry,
    pick,
    restored_position,
    shown_changes,
    step_file,
    step_hunk,
)
from tui_agent.ui.panes.review_rows import (
    change_rows,
    conflict_hints,
    decision_counts,
    hints,
    place_of,
    place_rows,
    progress,
    title,
)
from tui_agent.ui.safe_text import check_pieces, parts
from tui_agent.ui.widgets.hints import HintLine
from tui_agent.ui.widgets.line_view import LineView
from tui_agent.ui.widgets.list_pane import ListPane
from tui_agent.ui.widgets.rows import Rows
from tui_agent.ui.widgets.waiting import broken_now

_EMPTY = "Changes that the model proposes. Nothing is written until you apply it."


class ReviewPane(ListPane):
    """The list of changes, and the diff or conflict of the current one."""

    ID = "review"
    SLICES: ClassVar[tuple[str, ...]] = ("review", "layout", "checks", "checked_buffers", "conversation")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.body = ReviewBody(session, self.act)
        self.changes: tuple[Change, ...] = ()
        self.position: ReviewPosition | None = None
        #: Newest turn whose changes were displayed.
        self._turn = 0
        self._drawn: tuple[ReviewSlice, object, list[CheckMark], Sequence[str]] | None = None
        self._decisions = ReviewDecisions(self)
        self.lead = self._lead
        #: Ids of conflicts and failed changes already shown to the user.
        self._looked_at: set[str] = set()
        #: Target of the comment being written.
        self._commented: Pick | None = None

    def compose(self) -> ComposeResult:
        yield Rows()
        yield self.body
        yield KeptInput(compact=True, placeholder="a comment for the model, sent with your next message")
        yield HintLine()

    @on(events.Mount)
    def _mounted(self) -> None:
        self.line.display = False

    @property
    def entry(self) -> Widget:
        return self.body.active

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            **self._decisions.commands,
            "open": self._open,
            "diff": self._compare,
            "comment": self._begin_comment,
            "columns": self._toggle_columns,
            "next_hunk": partial(self._step, 1),
            "previous_hunk": partial(self._step, -1),
            "next_file": lambda: self.go(step_file(self.changes, self.position, 1)),
            "previous_file": lambda: self.go(step_file(self.changes, self.position, -1)),
        }

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────

    def show(self, state: State) -> None:
        saved = state.layout.place.get(self.ID)
        drawn = (state.review, saved, state.check_marks, state.conversation.untold)
        if self._drawn is not None and self._drawn[0] is state.review and self._drawn[1:] == drawn[1:]:
            return
        self._drawn = drawn
        self.changes = shown_changes(state.review)
        self.position = restored_position(self.changes, saved)
        newest = max((change.turn for change in self.changes), default=0)
        if 0 < self._turn < newest and not self.has_focus_within:
            self.position = entry(next(change for change in self.changes if change.turn == newest))
            place = {**state.layout.place, self.ID: self.position.saved()}
            self.session.set_layout(replace(state.layout, place=place))
        self._turn = newest
        self.draw()

    def draw(self) -> None:
        change, position = change_at(self.changes, self.position), self.position
        state = self.session.state
        marks = check_pieces(in_short(state.check_marks))
        place = title("", self.changes, position)
        again = self._decisions.confirm_hint
        self.title_text = parts(
            self.TITLE + decision_counts(self.changes),
            (f" · {again}" if again else "", "$warning"),
            *marks,
            place,
        )
        rows = self.query_one(Rows)
        found = place_rows(state)
        untold = state.conversation.untold
        rows.set_rows([*change_rows(self.changes, untold), *found], cursor=change.id if change else "")
        told = bool(change and (change.reason or change.comments or change.checks or change.tasks))
        told = told or bool(change and progress(change))
        rows.display = len(self.changes) > 1 or told or bool(found)
        if change is None or position is None:
            self.body.show_words(_EMPTY)
        else:
            self.body.show_change(change, position, self.changes)
        in_conflict = change is not None and change.state == "conflict"
        if change is not None and change.state in BROKEN and self.has_focus_within:
            self._looked_at.add(change.id)
        words = conflict_hints(change) if change and in_conflict else hints(self.changes)
        state = self.session.state
        self.query_one(HintLine).set_words(
            [it for it in words if not it.action or not why_not(it.action, state)]
        )

    # ── moving ───────────────────────────────────────────────────────────────────────────────────────────

    def go(self, position: ReviewPosition | None) -> None:
        if position is None or position == self.position:
            return
        layout = self.session.state.layout
        self.session.set_layout(replace(layout, place={**layout.place, self.ID: position.saved()}))
        self.show(self.session.state)

    def _lead(self) -> None:
        named = broken_now(self.session.state)
        new = [it for it in named if it.id not in self._looked_at and change_at(self.changes, entry(it))]
        current = self.position.change if self.position else ""
        if new and not self.has_focus_within:
            first = new[0]
            if all(it.id != current for it in named if it.state == first.state):
                self._looked_at.add(first.id)
                self.go(entry(first))

    def _step(self, step: int) -> None:
        choosing = self.body.choosing
        if choosing is not None and choosing.step(step):
            self.draw()
        else:
            self.go(step_hunk(self.changes, self.position, step, by_change=choosing is not None))

    def _toggle_columns(self) -> None:
        self.body.toggle_columns()
        self.entry.focus()

    def _open(self) -> None:
        if change := change_at(self.changes, self.position):
            diff, hunk = self.body.diff(change), self.position.hunk if self.position else 0
            line = diff.hunks[hunk].start + 1 if diff and hunk < len(diff.hunks) else 1
            self.act(self.session.files.open(change.path, line), changes=("buffers",))

    def _compare(self) -> None:
        from tui_agent.ui.dialogs.preview import FileDiff

        if change := change_at(self.changes, self.position):
            self.app.push_screen(FileDiff(self.session, change.path))

    # ── the mouse ────────────────────────────────────────────────────────────────────────────────────────

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        if place := place_of(event.key):
            self.draw()  # keeps the cursor on the change
            self.act(self.session.files.open(*place), changes=("buffers",))
            return
        change = next((change for change in self.changes if change.id == event.key), None)
        if change is not None and (self.position is None or self.position.change != change.id):
            self.go(entry(change))

    @on(LineView.Chosen)
    def _row_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        self.entry.focus()

    @on(DiffView.HunkClicked)
    def _hunk_clicked(self, event: DiffView.HunkClicked) -> None:
        event.stop()
        if self.position is not None:
            self.go(ReviewPosition(self.position.change, event.hunk))

    @on(ConflictLines.SidePressed)
    def _side_pressed(self, event: ConflictLines.SidePressed) -> None:
        event.stop()
        if choosing := self.body.choosing:
            choosing.place = event.place
            if event.side:
                self._decisions.take(cast("Side", event.side))
            self.body.draw()

    # ── comments ─────────────────────────────────────────────────────────────────────────────────────────

    def _begin_comment(self) -> None:
        change = change_at(self.changes, self.position)
        if change is not None and self.position is not None:
            self._commented = about = pick(change, self.position)
            kept = self.query_one(KeptInput).keep_at(self.session, f"comment:{about.change}:{about.hunk}")
            self.write(self.line.value or kept)

    def take(self, text: str) -> None:
        if self._commented is not None and text.strip():
            self.act(self._comment(self._commented, text), changes=("buffers",))

    async def _comment(self, about: Pick, text: str) -> None:
        try:
            await self.session.review.comment(about, text)
        except TuiAgentError:
            self.line.value = text  # kept for the next comment
            raise
