"""A merge conflict: base, yours and theirs of each region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui_agent.edits.merge import ConflictView, Region
from tui_agent.ui.safe_text import counted, one_line
from tui_agent.ui.widgets.line_view import LineView

CONTEXT = 3
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
    lines: list[ConflictLine] = []
    place = -1
    for number, region in enumerate(view.regions):
        if not region.conflict:
            lines += _agreed(region, first=number == 0, last=number == len(view.regions) - 1)
            continue
        place += 1
        lines += _place(view, region, place, chosen.get(place, ""))
    return lines


def first_line(lines: list[ConflictLine], place: int) -> int:
    return next((at for at, line in enumerate(lines) if line.place == place), 0)


def _agreed(region: Region, *, first: bool, last: bool) -> Iterator[ConflictLine]:
    texts = region.agreed
    head = 0 if first else CONTEXT
    tail = 0 if last else CONTEXT
    if len(texts) <= head + tail + 1:
        yield from (ConflictLine("same", text) for text in texts)
        return
    yield from (ConflictLine("same", text) for text in texts[:head])
    yield ConflictLine("fold", f"{counted(len(texts) - head - tail, 'line')} without conflict")
    yield from (ConflictLine("same", text) for text in texts[len(texts) - tail :])


def _place(view: ConflictView, region: Region, place: int, chosen: str) -> Iterator[ConflictLine]:
    gone = {"yours": view.yours_gone, "theirs": view.theirs_gone}
    for part in _PARTS:
        name = f"{_name(view, part)}{' (no such file)' if gone.get(part) else ''}"
        mark = "✓ " if chosen in (part, "both") and part != "base" else ""
        hand = "  ✓ by hand" if chosen == "by hand" and part == "theirs" else ""
        yield ConflictLine("head", f"{mark}{name}{hand}", place, part)
        yield from (ConflictLine(part, text, place) for text in getattr(region, part))


def _name(view: ConflictView, part: Part) -> str:
    if view.yours_name == "yours":
        return _NAMES[part]
    match part:
        case "yours":
            return f"yours: the version of {view.yours_name}"
        case "theirs":
            return f"theirs: the version of {view.theirs_name}"
        case _:
            return "base: the common version"


_BAR = "▌"
_GROUNDS = {"theirs": "theirs", "yours": "yours"}


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

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[ConflictLine] = []
        self._current = 0

    def show_conflict(self, view: ConflictView, chosen: Mapping[int, str], current: int) -> None:
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
                colours = self.app.theme_variables
                flat = line.part == "theirs" and colours.get("added-surface") == colours.get("surface")
                return self.ink("added" if flat else ""), self.ground(_GROUNDS[line.part])
        return self.ink(""), Style.null()

    def _reveal(self) -> None:
        top = first_line(self._lines, self._current)
        self.scroll_to(y=max(top - 2, 0), animate=False)
