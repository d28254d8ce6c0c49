"""Diff dialogs, for viewing or confirmation."""

from __future__ import annotations

from textual.content import Content
from textual.screen import ScreenResultType

from tui_agent.edits.change import Diff
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.safe_text import label


class DiffPreview(Dialog[ScreenResultType]):
    """A diff with hunk navigation; `told` is the content of the hint line."""

    #: (action ids, label) pairs of the hint line.
    told: tuple[tuple[str, str], ...] = ()
    DEFAULT_CSS = """
    DiffPreview {
        & > Vertical { height: 90%; }
        & DiffView { height: 1fr; }
    }
    """

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        #: The diff, or a message instead, and the current hunk.
        self.diff: Diff | str = ""
        self._hunk = 0

    def hint(self) -> Content | None:
        return label(self.keys_for(*self.told)) if self.told else None

    @property
    def view(self) -> DiffView:
        return self.query_one(DiffView)

    async def show_diff(self, diff: Diff | str) -> None:
        self.diff, self._hunk = diff, 0
        if isinstance(diff, Diff):
            await self.view.get_ready(diff)
        self.draw()

    def draw(self) -> None:
        if isinstance(self.diff, str):
            self.view.show_words(self.diff)
        else:
            self.view.show_undecided(self.diff, self._hunk)

    def action_hunk(self, step: int) -> None:
        if isinstance(self.diff, Diff) and self.diff.hunks:
            self._hunk = max(0, min(self._hunk + step, len(self.diff.hunks) - 1))
            self.draw()
