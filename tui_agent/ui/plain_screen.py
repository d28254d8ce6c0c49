"""The plain screen, for screen readers: rows of words without signs, of which only what changed is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual.errors import NoWidget
from textual.geometry import Offset
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList, TextArea, Tree

from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.layout.container import TabLine
from tui_agent.ui.markdown.message_text import MessageText
from tui_agent.ui.spoken import around_file_text, around_model_text, spoken
from tui_agent.ui.textual_patches.screen_rows import line_of, rows_of
from tui_agent.ui.widgets.lines import Lined
from tui_agent.ui.widgets.pane import Pane

#: What it looks like, for everything under the class `-plain`.
STYLES = Path(__file__).with_suffix(".tcss")
_SHOW_CURSOR = "\x1b[?25h"


class Character(NamedTuple):
    """A character and its style."""

    text: str
    style: Style | None


class PlainScreen:
    """What the terminal shows, row by row."""

    def __init__(self) -> None:
        self._rows: list[list[Character]] = []
        #: Where the cursor of the terminal is.
        self.place = Offset(0, 0)
        self._seen: tuple[object, str, int | None] = (None, "", None)
        self._in_list = False

    def forget(self) -> None:
        """The terminal may show anything now."""
        self._rows = []

    @property
    def text(self) -> str:
        return "\n".join("".join(cell.text for cell in row).rstrip() for row in self._rows)

    def update(self, screen: Screen[object], console: Console) -> str:
        """The sequence that makes the terminal show the screen, and puts its cursor where the focus is."""
        strips = rows_of(screen)
        width, said = screen.size.width, _announced(screen)
        rows = [_row(strip, _words_at(screen, y), width) for y, strip in enumerate(strips)]
        if said is not None:  # a dialog takes the place of the text; what is announced stays below it
            lines = list(enumerate(rows_of(said.screen)))[said.region.y :]
            rows[said.region.y :] = [_row(strip, _words_at(said.screen, y), width) for y, strip in lines]
        before = self._rows if [len(rows)] == [len(self._rows)] else [[] for _ in rows]
        self._rows = rows
        written = [
            _changed(y, old, new, console) for y, (old, new) in enumerate(zip(before, rows, strict=True))
        ]
        x, y = self.place = self._place(screen, strips)
        return "".join([*written, Control.move_to(x, y).segment.text, _SHOW_CURSOR])

    def _place(self, screen: Screen[object], strips: Sequence[Strip]) -> Offset:
        """Where the cursor of the terminal belongs."""
        widget = screen.focused
        if widget is None:
            return Offset(0, 0)
        if isinstance(widget, Input):
            return self._choice(screen, widget) or widget.cursor_screen_offset
        if isinstance(widget, TextArea):
            return widget.cursor_screen_offset
        region = widget.region
        line = 0
        if isinstance(widget, Tree):
            line = widget.cursor_line - widget.scroll_offset.y
        elif isinstance(widget, OptionList):
            line = _highlighted(widget)
        elif isinstance(widget, Lined):
            marked = (y for y in range(region.height) if _begins(strips[region.y + y], region.x))
            line = next(marked, 0)
        return Offset(region.x, min(max(region.y + line, region.y), max(region.bottom - 1, region.y)))

    def _choice(self, screen: Screen[object], widget: Input) -> Offset | None:
        """In a list that is narrowed by typing the choice, from the key that moves it to the next letter."""
        found = [it for it in screen.query(OptionList) if it.display]
        if not found:
            return None
        seen = (screen, widget.value, found[0].highlighted)
        if seen != self._seen:
            self._in_list = seen[:2] == self._seen[:2]
            self._seen = seen
        return (
            Offset(found[0].region.x, found[0].region.y + _highlighted(found[0])) if self._in_list else None
        )


def _announced(screen: Screen[object]) -> Widget | None:
    """What is announced on the screen behind a dialog; None without a dialog."""
    behind = screen.app.screen_stack[0]
    found = behind.query("Announcements") if screen is not behind else ()
    return next(iter(found), None)


def _begins(strip: Strip, x: int) -> bool:
    """Whether the bar of what is chosen is at a cell of a row."""
    return strip.crop(x, x + 1).text in ("▌", "›")


def _highlighted(options: OptionList) -> int:
    """The row of the choice, counted from the first that is seen."""
    chosen = options.highlighted
    return 0 if chosen is None else line_of(options, chosen) - options.scroll_offset.y


def _words_at(screen: Screen[object], y: int) -> Callable[[str], str]:
    """What makes words of a row, by what is there."""
    try:
        widget: Widget = screen.get_widget_at(1, y)[0]
    except NoWidget:
        return spoken
    match widget:
        case TextArea() | Input():
            return str
        case DiffView():
            return around_file_text
        case MessageText():
            return around_model_text
        case TabLine():
            return partial(spoken, pane="title")
    panes = [node.ID for node in widget.ancestors_with_self if isinstance(node, Pane)]
    return partial(spoken, pane=panes[0] if panes else "dialog")


def _row(strip: Strip, words: Callable[[str], str], width: int) -> list[Character]:
    """The cells of a row in words, each in the style of what it says; as wide as the screen."""
    cells = [Character(char, segment.style) for segment in strip for char in segment.text]
    text = "".join(cell.text for cell in cells)
    said = text if text.isascii() else words(text)
    if said != text:
        styles = [cell.style for cell in cells] or [None]
        parts = SequenceMatcher(None, text, said, autojunk=False).get_opcodes()
        cells = [
            Character(said[at], styles[min(begin + at - first, max(end - 1, begin), len(styles) - 1)])
            for _, begin, end, first, last in parts
            for at in range(first, last)
        ]
        over = cell_len(said) - width
        while over > 0 and cells:
            over -= cell_len(cells.pop().text)
        style = cells[-1].style if cells else None
        cells += [Character(" ", style)] * -over
    return cells


def _changed(y: int, old: Sequence[Character], new: Sequence[Character], console: Console) -> str:
    """What changes a row of the terminal; nothing where it is the same."""
    if old == new:
        return ""
    pairs = list(zip(old, new, strict=False))
    same = next((at for at, (was, now) in enumerate(pairs) if was != now), len(pairs))
    ends = 0
    if len(old) == len(new):  # of the same characters to its end, which are then in the same places
        backwards = zip(reversed(old[same:]), reversed(new[same:]), strict=True)
        ends = next((at for at, (was, now) in enumerate(backwards) if was != now), 0)
    written = new[same : len(new) - ends]
    if any(not char.text.isascii() for char in new):  # its cells are not its characters
        same, written = 0, new
    segments = [Segment(cell.text, cell.style) for cell in written]
    return Control.move_to(same, y).segment.text + Strip(segments).simplify().render(console)
