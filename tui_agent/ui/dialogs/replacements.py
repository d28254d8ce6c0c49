"""Confirmation preview of replace-all."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from tui_agent.edits.change import Diff
from tui_agent.ui.dialogs.preview import DiffPreview
from tui_agent.ui.diff.diff_view import DiffView


class Replacements(DiffPreview[bool]):
    """Returns whether to replace; `words` states the number of matches."""

    ID = "replacements"
    DEFAULT_CSS = "Replacements > Vertical { height: 80%; }"
    told = (
        ("answer.accept", "replace all"),
        ("preview.next_hunk preview.previous_hunk", "change"),
        ("dialog.close", "cancel"),
    )

    def __init__(self, words: str, diff: Diff) -> None:
        super().__init__(f"Replace {words} of {diff.path}")
        self._replaced = diff

    def body(self) -> Iterable[Widget]:
        yield DiffView()

    def on_mount(self) -> None:
        self.view.focus()
        self.fill(self.show_diff(self._replaced))

    def action_keep(self) -> None:
        self.dismiss(True)
