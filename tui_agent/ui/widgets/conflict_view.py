"""A conflict as coloured lines: base, yours and theirs of each place, one of them the current one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui_agent.edits.conflicts import ConflictView
from tui_agent.ui.sink import one_line
from tui_agent.ui.widgets.conflict_lines import ConflictLine, conflict_lines, first_line
from tui_agent.ui.widgets.lined import Lined

_BAR = "▌"
_GROUNDS = {"theirs": "theirs", "yours": "yours"}


class ConflictLines(Lined):
    """Shows the places of one conflict; a click on a heading takes that side."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"ground--theirs", "ground--yours", "ground--fold"}
    DEFAULT_CSS = """
    ConflictLines > .ground--theirs { background: $added-surface; }
    ConflictLines > .ground--yours { background: $accent-surface; }
    ConflictLines > .ground--fold { background: $surface-raised; }
    """

    class SidePressed(Message):
        """The mouse chose a place, and with a heading a side of it (`yours`, `theirs`, or none)."""

        def __init__(self, place: int, side: str) -> None:
            super().__init__()
            self.place = place
            self.side = side

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[ConflictLine] = []
        self._current = 0

    def show_conflict(self, view: ConflictView, chosen: Mapping[int, str], current: int) -> None:
        """Show a conflict with what was chosen so far; the current place is scrolled to."""
        self._lines = conflict_lines(view, chosen)
        moved, self._current = current != self._current, current
        self.virtual_size = Size(0, len(self._lines))
        self.refresh()
        if moved or self.scroll_offset.y >= len(self._lines):
            self.call_after_refresh(self._reveal)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width = self.across
        if y >= len(self._lines):
            return Strip.blank(width, self.ink(""))
        line = self._lines[y]
        current = line.place >= 0 and line.place == self._current
        ink, ground = self._styles(line)
        bar = Segment(_BAR if current else " ", self.ink("accent"))
        text = line.text.rstrip("\r\n").expandtabs(4)
        sign = {"theirs": "+ ", "yours": "  ", "base": "- "}.get(line.part, "  ")
        sign = "" if line.part == "head" else sign
        return Strip([bar, Segment(f" {sign}{one_line(text)}", ink + ground)]).crop_extend(
            0, width, ground or self.ink("")
        )

    def on_click(self, event: events.Click) -> None:
        y = event.y + self.scroll_offset.y
        if y < len(self._lines) and self._lines[y].place >= 0:
            side = self._lines[y].side
            self.post_message(self.SidePressed(self._lines[y].place, side if side != "base" else ""))

    def _styles(self, line: ConflictLine) -> tuple[Style, Style]:
        match line.part:
            case "head":
                return self.ink("strong"), Style.null()
            case "fold":
                return self.ink("muted"), self.ground("fold")
            case "base":
                return self.ink("muted"), Style.null()
            case "yours" | "theirs":
                return self.ink(""), self.ground(_GROUNDS[line.part])
        return self.ink(""), Style.null()

    def _reveal(self) -> None:
        top = first_line(self._lines, self._current)
        self.scroll_to(y=max(top - 2, 0), animate=False)
