"""A merge conflict: base, yours and theirs of each region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui_agent.edits.merge import ConflictView
from tui_agent.ui.diff.diff_lines import CONTEXT
from tui_agent.ui.safe_text import counted, one_line
from tui_agent.ui.widgets.line_view import BAR, LineView

Part = Literal["same", "fold", "head", "base", "yours", "theirs"]
_NAMES: dict[Part, str] = {
    "base": "base: the version that the model saw",
    "yours": "yours: the current file",
    "theirs": "theirs: the proposed change",
}
_PARTS: tuple[Part, ...] = ("base", "yours", "theirs")


class ConflictLine(NamedTuple):
    """`place` is the conflicting region's number, or -1; headings have a `side`."""

    part: Part
    text: str
    place: int = -1
    side: str = ""


def conflict_lines(view: ConflictView, chosen: Mapping[int, str]) -> list[ConflictLine]:
    """`chosen` maps regions to decisions, including `by hand`."""
    names = _NAMES
    if view.yours_name != "yours":
        names = {
            "base": "base: the common version",
            "yours": f"yours: the version of {view.yours_name}",
            "theirs": f"theirs: the version of {view.theirs_name}",
        }
    gone = {"yours": view.yours_gone, "theirs": view.theirs_gone}
    lines: list[ConflictLine] = []
    place, last = -1, len(view.regions) - 1
    for number, region in enumerate(view.regions):
        if not region.conflict:
            agreed = [ConflictLine("same", text) for text in region.agreed]
            head, tail = CONTEXT if number else 0, CONTEXT if number < last else 0
            hidden = len(agreed) - head - tail
            if hidden > 1:
                fold = ConflictLine("fold", f"{counted(hidden, 'line')} without conflict")
                agreed[head : head + hidden] = [fold]
            lines += agreed
            continue
        place += 1
        decision = chosen.get(place, "")
        for part in _PARTS:
            missing = " (no such file)" if gone.get(part) else ""
            mark = "✓ " if decision in (part, "both") and part != "base" else ""
            hand = "  ✓ by hand" if decision == "by hand" and part == "theirs" else ""
            lines.append(ConflictLine("head", f"{mark}{names[part]}{missing}{hand}", place, part))
            lines += [ConflictLine(part, text, place) for text in getattr(region, part)]
    return lines


class ConflictLines(LineView):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"ground--theirs", "ground--yours", "ground--fold"}
    DEFAULT_CSS = """
    ConflictLines > .ground--theirs { background: $added-surface; }
    ConflictLines > .ground--yours { background: $accent-surface; }
    ConflictLines > .ground--fold { background: $surface-raised; }
    """

    class SidePressed(Message):
        """`side` is `yours` or `theirs` for a heading, which chooses it; otherwise empty."""

        def __init__(self, place: int, side: str) -> None:
            super().__init__()
            self.place = place
            self.side = side

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[ConflictLine] = []
        self._current = 0

    def show_conflict(self, view: ConflictView, chosen: Mapping[int, str], current: int) -> None:
        self._lines = conflict_lines(view, chosen)
        moved, self._current = current != self._current, current
        self.virtual_size = Size(0, len(self._lines))
        self.refresh()
        if moved or self.scroll_offset.y >= len(self._lines):
            tops = (at for at, line in enumerate(self._lines) if line.place == current)
            self.call_after_refresh(self.scroll_to, y=max(next(tops, 0) - 2, 0))

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width = self.across
        if y >= len(self._lines):
            return Strip.blank(width, self.ink(""))
        line = self._lines[y]
        current = line.place >= 0 and line.place == self._current
        ink, ground = self.ink(""), Style.null()
        match line.part:
            case "head":
                ink = self.ink("strong")
            case "base":
                ink = self.ink("muted")
            case "fold":
                ink, ground = self.ink("muted"), self.ground("fold")
            case "yours" | "theirs":
                flat = line.part == "theirs" and self.is_flat
                ink, ground = self.ink("added" if flat else ""), self.ground(line.part)
        bar = Segment(BAR if current else " ", self.ink("accent"))
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
