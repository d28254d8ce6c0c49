"""Unsaved text and a file that changed on disk: what differs, and a side for each place where both were changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.hunks import diff_of
from tui_agent.edits.merge import ConflictView, Side, settled
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.diff.conflict_view import ConflictLines
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.panes.review_body import ConflictChoices
from tui_agent.ui.sink import counted, label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Merge(Dialog[ConflictChoices | None], inherit_bindings=False):
    """Gives what was chosen, once that is all; None where the person leaves it.

    What differs is shown as a diff that turns the person's text into the merge, with the disk's side where there is
    something to choose; these places are shown first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
        Binding("1", "take('yours')", show=False),
        Binding("2", "take('theirs')", show=False),
        Binding("3", "take('both')", show=False),
        Binding("e", "edit", show=False),
        Binding("n", "step(1)", show=False),
        Binding("p", "step(-1)", show=False),
        Binding("v", "turn", show=False),
        Binding("enter", "merge", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Merge {
        align: center top; background: $background 40%;
        & > Vertical { width: 120; max-width: 96%; height: 90%; margin-top: 1; background: $overlay; padding: 1 2; }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: auto; color: $muted; }
        & DiffView, & ConflictLines { height: 1fr; }
    }
    """

    def __init__(self, view: ConflictView, yours: str, session: Session) -> None:
        super().__init__()
        self._session = session
        self._yours = yours
        self._choices = ConflictChoices(view)
        self._hunk = 0
        #: Whether the diff is shown.
        self._diff = not view.conflicts

    def compose(self) -> Iterable[Widget]:
        view, count = self._choices.view, self._choices.count
        about = f"{counted(count, 'conflict')} to settle" if count else "what the disk adds to yours"
        with Vertical():
            yield Static(label(f"{view.path}: {about}"), classes="title", markup=False)
            yield ConflictLines()
            yield DiffView()
            choose = "1 yours   2 theirs   3 both   e by hand   n p conflict   v the difference   Esc cancel"
            hint = choose if count else "Enter merge   n p hunk   Esc cancel"
            yield Static(label(hint), classes="hint", markup=False)

    def on_mount(self) -> None:
        self.fill(self._show())

    async def _show(self) -> None:
        view = self._choices.view
        merged = settled(view.regions, ["theirs"] * self._choices.count)
        diff = await asyncio.to_thread(diff_of, view.path, self._yours, merged)
        shown = self.query_one(DiffView)
        await shown.get_ready(diff)
        shown.show_undecided(diff, 0)
        self._draw()

    def _draw(self) -> None:
        diff, places = self.query_one(DiffView), self.query_one(ConflictLines)
        diff.display, places.display = self._diff, not self._diff
        (diff if self._diff else places).focus()
        if not self._diff:
            places.show_conflict(self._choices.view, self._choices.chosen, self._choices.place)

    def action_turn(self) -> None:
        if self._choices.count:
            self._diff = not self._diff
            self._draw()

    def action_step(self, step: int) -> None:
        diff = self.query_one(DiffView)
        if not self._diff and self._choices.step(step):
            self._draw()
        elif self._diff and diff.shown is not None and diff.shown.diff.hunks:
            self._hunk = max(0, min(self._hunk + step, len(diff.shown.diff.hunks) - 1))
            diff.show_diff(diff.shown.diff, (), self._hunk)

    def action_take(self, side: Side) -> None:
        if not self._diff:
            self._choices.take(side)
            self._chosen()

    def action_edit(self) -> None:
        if not self._diff:
            about = f"{self._choices.view.path}: conflict {self._choices.place + 1} of {self._choices.count}"
            kept = (self._session, f"merge:{self._choices.view.path}:{self._choices.place}")
            self.app.push_screen(TextDialog(about, self._choices.draft, kept=kept), self._wrote)

    def _wrote(self, text: str | None) -> None:
        if text is not None:
            self._choices.write(text)
            self._chosen()

    def _chosen(self) -> None:
        if self._choices.decided:
            self.dismiss(self._choices)
        else:
            self._draw()

    def action_merge(self) -> None:
        if not self._choices.count:
            self.dismiss(self._choices)

    def on_conflict_lines_side_pressed(self, event: ConflictLines.SidePressed) -> None:
        event.stop()
        self._choices.place = event.place
        if event.side:
            self.action_take(cast("Side", event.side))
        else:
            self._draw()
