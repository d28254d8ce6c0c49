"""Merges unsaved text with a changed file, with a choice per conflict."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.widget import Widget

from tui_agent.edits.change import diff_of
from tui_agent.edits.merge import ConflictView, Side, merged_with_choices
from tui_agent.ui.dialogs.preview import DiffPreview
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.diff.conflict_view import ConflictLines
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.panes.review_body import ConflictChoices
from tui_agent.ui.safe_text import counted

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class Merge(DiffPreview[ConflictChoices | None]):
    """Returns the complete choices, or `None` if cancelled.

    The diff shows the changes from the unsaved text to the merge, with the disk's side at conflicts;
    conflicts are shown first.
    """

    ID = "merge"
    DEFAULT_CSS = "Merge ConflictLines { height: 1fr; }"

    def __init__(self, view: ConflictView, yours: str, session: Session) -> None:
        self._choices = ConflictChoices(view)
        count = self._choices.count
        about = f"{counted(count, 'conflict')} to resolve" if count else "changes on disk"
        super().__init__(f"{view.path}: {about}")
        self._session = session
        self._yours = yours
        #: Whether the diff is shown instead of the conflicts.
        self._in_diff = not view.conflicts
        step, cancel = "preview.next_hunk preview.previous_hunk", ("dialog.close", "cancel")
        self.told = (("answer.accept", "merge"), (step, "change"), cancel)
        if count:
            sides = (("merge.yours", "yours"), ("merge.theirs", "theirs"), ("merge.both", "both"))
            self.told = (
                *(*sides, ("merge.edit", "by hand"), (step, "conflict")),
                *(("merge.turn", "the difference"), cancel),
            )

    def body(self) -> Iterable[Widget]:
        yield ConflictLines()
        yield DiffView()

    @on(events.Mount)
    def _mounted(self) -> None:
        self.fill(self._show())

    async def _show(self) -> None:
        view = self._choices.view
        merged = merged_with_choices(view.regions, ["theirs"] * self._choices.count)
        await self.show_diff(await asyncio.to_thread(diff_of, view.path, self._yours, merged))
        last = next(reversed(self._session.state.input.typed), "")
        for place in range(self._choices.count):
            if last == f"merge:{view.path}:{place}":  # restores an interrupted edit
                self._choices.place = place
                self.action_edit()

    def draw(self) -> None:
        places = self.query_one(ConflictLines)
        self.view.display, places.display = self._in_diff, not self._in_diff
        (self.view if self._in_diff else places).focus()
        super().draw()
        if not self._in_diff:
            places.show_conflict(self._choices.view, self._choices.chosen, self._choices.place)

    def action_turn(self) -> None:
        if self._choices.count:
            self._in_diff = not self._in_diff
            self.draw()

    def action_hunk(self, step: int) -> None:
        if self._in_diff:
            super().action_hunk(step)
        elif self._choices.step(step):
            self.draw()

    def action_take(self, side: Side) -> None:
        if not self._in_diff:
            self._choices.take(side)
            self._chosen()

    def action_edit(self) -> None:
        if not self._in_diff:
            about = f"{self._choices.view.path}: conflict {self._choices.place + 1} of {self._choices.count}"
            place = f"merge:{self._choices.view.path}:{self._choices.place}"
            wrote = partial(self._wrote, place)
            self.app.push_screen(TextDialog(about, self._choices.draft, kept=(self._session, place)), wrote)

    def _wrote(self, place: str, text: str | None) -> None:
        if text is not None:
            self._choices.write(text)
            self._session.chat.set_typed(place, text)  # kept until the merge is in the editor
            self._chosen()

    def _chosen(self) -> None:
        if self._choices.decided:
            self.dismiss(self._choices)
        else:
            self.draw()

    def action_keep(self) -> None:
        if not self._choices.count:
            self.dismiss(self._choices)

    @on(ConflictLines.SidePressed)
    def _side_pressed(self, event: ConflictLines.SidePressed) -> None:
        event.stop()
        self._choices.place = event.place
        if event.side:
            self.action_take(cast("Side", event.side))
        else:
            self.draw()
