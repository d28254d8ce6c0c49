"""A short list of files above the input, for the word after `@`."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widgets import OptionList

from tui_agent.ui.sink import label


class MentionList(OptionList, can_focus=False):
    """Driven by the input's keys; it has no focus of its own."""

    ROWS = 8

    def __init__(self) -> None:
        super().__init__(id="picker", markup=False, compact=True)
        self._paths: list[str] = []
        self.display = False

    def show(self, paths: Sequence[str]) -> None:
        self._paths = list(paths[: self.ROWS])
        self.display = bool(paths)
        self.set_options([label(path) for path in self._paths])
        if paths:
            self.highlighted = 0

    @property
    def chosen(self) -> str:
        """The path under the cursor, empty where there is none."""
        at = self.highlighted
        return self._paths[at] if at is not None and at < len(self._paths) else ""
