"""What replacing all that was found would make of a text: a preview to agree to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.edits.change import Diff
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.sink import label


class Replacements(Dialog[bool], inherit_bindings=False):
    """Gives whether to replace them; `words` count what is replaced."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(False)", show=False),
        Binding("enter", "dismiss(True)", show=False, priority=True),
        Binding("n", "hunk(1)", show=False),
        Binding("p", "hunk(-1)", show=False),
    ]
    DEFAULT_CSS = """
    Replacements {
        align: center top; background: $background 40%;
        & > Vertical { width: 120; max-width: 96%; height: 80%; margin-top: 1; background: $overlay; padding: 1 2; }
        & .title { height: 1; color: $accent; text-style: bold; }
        & .hint { height: 1; color: $muted; }
        & DiffView { height: 1fr; }
    }
    """

    def __init__(self, words: str, diff: Diff) -> None:
        super().__init__()
        self._words = words
        self._diff = diff
        self._hunk = 0

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(label(f"Replace {self._words} of {self._diff.path}"), classes="title", markup=False)
            yield DiffView()
            hint = "Enter replace all   n p hunk   Esc cancel"
            yield Static(label(hint), classes="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one(DiffView).focus()
        self.fill(self._show())

    async def _show(self) -> None:
        view = self.query_one(DiffView)
        await view.get_ready(self._diff)
        view.show_undecided(self._diff, 0)

    def action_hunk(self, step: int) -> None:
        if self._diff.hunks:
            self._hunk = max(0, min(self._hunk + step, len(self._diff.hunks) - 1))
            self.query_one(DiffView).show_diff(self._diff, (), self._hunk)
