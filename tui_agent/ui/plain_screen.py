"""The plain screen for screen readers: rows of words without signs. Only changed parts are written."""

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
from tui_agent.ui.screen_reader import around_file_text, around_model_text, to_speech
from tui_agent.ui.textual_patches.screen_rows import line_of, rows_of
from tui_agent.ui.widgets.line_view import LineView
from tui_agent.ui.widgets.pane import Pane

#: Style sheet for everything under the class `-plain`.
STYLES = Path(__file__).with_suffix(".tcss")
_SHOW_CURSOR = "\x1b[?25h"


class Character(NamedTuple):
    text: str
    style: Style | None


class PlainScreen:
    def __init__(self) -> None:
        self._rows: list[list[Character]] = []
        #: Position of the terminal cursor.
        self.place = Offset(0, 0)
        self._seen: tuple[object, str, int | None] = (None, "", None)
        self._in_list = False

    def forget(self) -> None:
        """Discard the recorded content after external output."""
        self._rows = []

    @property
    def text(self) -> str:
        return "\n".join("".join(cell.text for cell in row).rstrip() for row in self._rows)

    def update(self, screen: Screen[object], console: Console) -> str:
        """The sequence that updates the terminal and places the cursor at the focus."""
        strips = rows_of(screen)
        width, said = screen.size.width, _announced(screen)
        rows = [_row(strip, _words_at(screen, y), width) for y, strip in enumerate(strips)]
        if said is not None:  # a dialog covers the text; announcements remain below it
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
        elif isinstance(widget, LineView):
            marked = (
                y
                for y in range(region.height)
                if strips[region.y + y].crop(region.x, region.x + 1).text in ("▌", "›")
            )
            line = next(marked, 0)
        return Offset(region.x, min(max(region.y + line, region.y), max(region.bottom - 1, region.y)))

    def _choice(self, screen: Screen[object], widget: Input) -> Offset | None:
        """The highlighted option of a filtered list, until the next input character."""
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
    behind = screen.app.screen_stack[0]
    found = behind.query("Announcements") if screen is not behind else ()
    return next(iter(found), None)


def _highlighted(options: OptionList) -> int:
    chosen = options.highlighted
    return 0 if chosen is None else line_of(options, chosen) - options.scroll_offset.y


def _words_at(screen: Screen[object], y: int) -> Callable[[str], str]:
    """Returns the function that converts this row to words, depending on the widget at the row."""
    try:
        widget: Widget = screen.get_widget_at(1, y)[0]
    except NoWidget:
        return to_speech
    match widget:
        case TextArea() | Input():
            return str
        case DiffView():
            return around_file_text
        case MessageText():
            return around_model_text
        case TabLine():
            return partial(to_speech, pane="title")
    panes = [node.ID for node in widget.ancestors_with_self if isinstance(node, Pane)]
    return partial(to_speech, pane=panes[0] if panes else "dialog")


def _row(strip: Strip, words: Callable[[str], str], width: int) -> list[Character]:
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
    """Returns the sequence that updates a terminal row, or "" if it is unchanged."""
    if old == new:
        return ""
    pairs = list(zip(old, new, strict=False))
    same = next((at for at, (was, now) in enumerate(pairs) if was != now), len(pairs))
    ends = 0
    if len(old) == len(new):  # with an identical end, whose characters keep their positions
        backwards = zip(reversed(old[same:]), reversed(new[same:]), strict=True)
        ends = next((at for at, (was, now) in enumerate(backwards) if was != now), 0)
    written = new[same : len(new) - ends]
    if any(not char.text.isascii() for char in new):  # cells and characters differ
        same, written = 0, new
    segments = [Segment(cell.text, cell.style) for cell in written]
    return Control.move_to(same, y).segment.text + Strip(segments).simplify().render(console)
