"""The review: every proposed change as a diff, decided hunk by hunk, by file, by todo or all at once."""

from __future__ import annotations

from typing import ClassVar, cast

from textual import events, work
from textual.widgets import Input

from tui_agent.edits.change import Pick
from tui_agent.edits.merge import Side
from tui_agent.errors import TuiAgentError
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.panes.review_deciding import Deciding
from tui_agent.ui.panes.review_place import ReviewPosition, entry, of_todo, pick, step_file, waiting, whole
from tui_agent.ui.widgets.conflict_view import ConflictLines
from tui_agent.ui.widgets.diff_view import DiffView
from tui_agent.ui.widgets.hints import HintLine
from tui_agent.ui.widgets.lines import Lined
from tui_agent.ui.widgets.session_calls import writes


class ReviewPane(Deciding):
    """The list of changes, the diff or conflict of the current one, and what can be done with it."""

    ID = "review"
    TITLE = "Review"
    SLICES: ClassVar[tuple[str, ...]] = ("review", "layout")

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

    def action_apply(self) -> None:
        self._act(self._decide(self.session.review.apply, self._changes, file=False))

    def action_skip(self) -> None:
        self._act(self._decide(self.session.review.skip, self._changes, file=False))

    def action_apply_file(self) -> None:
        self._act(self._decide(self.session.review.apply, self._changes, file=True))

    def action_skip_file(self) -> None:
        self._act(self._decide(self.session.review.skip, self._changes, file=True))

    def action_apply_todo(self) -> None:
        self._act(self._decide_todo(self.session.review.apply, self._changes))

    def action_skip_todo(self) -> None:
        self._act(self._decide_todo(self.session.review.skip, self._changes))

    def action_apply_all(self) -> None:
        self._act(self._decide_all(self.session.review.apply))

    def action_skip_all(self) -> None:
        self._act(self._decide_all(self.session.review.skip))

    def action_undo(self) -> None:
        self._act(self._undo())

    def action_redo(self) -> None:
        self._act(self.session.review.redo())

    def action_take_back(self) -> None:
        if (change := self._change()) and self._place:
            hunk = self._place.hunk if change.hunks else None
            self._take_back([Pick(change.id, hunk, change.version)])

    def action_take_back_file(self) -> None:
        if change := self._change():
            self._take_back([whole(change)])

    def action_take_back_todo(self) -> None:
        if change := self._change():
            applied = [
                other
                for other in of_todo(self._changes, change)
                if {"applied", "skipped"}.intersection(other.hunks)
            ]
            self._take_back([whole(other) for other in applied])

    def action_history(self) -> None:
        from tui_agent.ui.dialogs.versions import History

        self.app.push_screen(History(self.session), self._go_back_over)

    def action_open(self) -> None:
        if change := self._change():
            self._act(self.session.files.open(change.path, self._line()))

    def action_diff(self) -> None:
        from tui_agent.ui.dialogs.versions import FileDiff

        if change := self._change():
            self.app.push_screen(FileDiff(self.session, change.path))

    @writes
    def action_edit(self) -> None:
        """Write the hunk, or the current place of a conflict, by hand."""
        change = self._change()
        if change is None:
            return
        if choosing := self._body.choosing:
            about = f"{change.path}: place {choosing.place + 1} of {choosing.count}"
            self.app.push_screen(TextDialog(about, choosing.draft), self._wrote_place)
            return
        diff, place = self._body.diff(change), self._place
        if diff is None or place is None or place not in waiting([change]) or place.hunk >= len(diff.hunks):
            return
        text = "".join(diff.hunks[place.hunk].added)
        about, which = f"{change.path}: what hunk {place.hunk + 1} puts there", pick(change, place)

        async def keep(new: str) -> None:
            try:
                await self.session.review.edit_hunk(which, new)
            except TuiAgentError:
                self.app.push_screen(TextDialog(about, new), edited)  # what was written stays there
                raise

        def edited(new: str | None) -> None:
            if new is not None and new != text:
                self._act(keep(new))

        self.app.push_screen(TextDialog(about, text), edited)

    @writes
    def action_comment(self) -> None:
        """Write a word about the hunk to the model; it goes with the next message."""
        change, place = self._change(), self._place
        if change is not None and place is not None:
            self._commented = pick(change, place)
            self._input.display = True
            self._input.focus()

    def action_yours(self) -> None:
        self._take("yours")

    def action_theirs(self) -> None:
        self._take("theirs")

    def action_both(self) -> None:
        self._take("both")

    @writes
    @work(exclusive=True, group="give-back")
    async def action_give_back(self) -> None:
        """Let one of the two sub-tasks of a conflict do its part again."""
        from tui_agent.ui.dialogs.questions import give_back

        if change := self._change():
            await give_back(self.app, self.session, change)

    def action_columns(self) -> None:
        self._body.toggle_columns()
        self.entry.focus()

    def action_next_hunk(self) -> None:
        self._step(1)

    def action_previous_hunk(self) -> None:
        self._step(-1)

    def action_next_file(self) -> None:
        self._go(step_file(self._changes, self._place, 1))

    def action_previous_file(self) -> None:
        self._go(step_file(self._changes, self._place, -1))

    # ── the mouse, and what is written ───────────────────────────────────────────────────────────────────

    async def on_hint_line_pressed(self, event: HintLine.Pressed) -> None:
        event.stop()
        await self.run_action(event.action.removeprefix("review."))

    def on_lined_moved(self, event: Lined.Moved) -> None:
        event.stop()
        change = next((change for change in self._changes if change.id == event.key), None)
        if change is not None and (self._place is None or self._place.change != change.id):
            self._go(entry(change))

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        event.stop()
        self.entry.focus()

    def on_diff_view_hunk_clicked(self, event: DiffView.HunkClicked) -> None:
        event.stop()
        if self._place is not None:
            self._go(ReviewPosition(self._place.change, event.hunk))

    def on_conflict_lines_side_pressed(self, event: ConflictLines.SidePressed) -> None:
        event.stop()
        if choosing := self._body.choosing:
            choosing.place = event.place
            if event.side:
                self._take(cast("Side", event.side))
            self._body.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        about, text = self._commented, event.value
        self._stop_writing()
        if about is not None and text.strip():
            self._act(self._comment(about, text))

    async def _comment(self, about: Pick, text: str) -> None:
        try:
            await self.session.review.comment(about, text)
        except TuiAgentError:
            self._input.value = text  # stays there for the next comment
            raise

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self._input.has_focus:
            event.stop()
            self._stop_writing()
