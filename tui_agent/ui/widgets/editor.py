"""One open file in an editor: lines with numbers, syntax colours, a cursor that the session knows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events, work
from textual.document._document import EditResult
from textual.document._edit import Edit
from textual.geometry import Offset, Size
from textual.message import Message
from textual.timer import Timer
from textual.widgets.text_area import LanguageDoesNotExist, Selection, TextAreaTheme

from tui_agent.edits.overlay import Overlay
from tui_agent.edits.search import Occurrence, Place
from tui_agent.store.files import Buffer
from tui_agent.ui.widgets.documents import CodeDocument, PartedLines, ending_of, widest
from tui_agent.ui.widgets.line_edits import dedent
from tui_agent.ui.widgets.syntax import LineHighlights, Point, language_of
from tui_agent.ui.widgets.text_area import WritingArea

#: Seconds without an edit after which a text is parsed again: not between two keys of somebody who types on.
PARSED_AFTER = 0.25
#: Longer texts are not measured whole after each key.
MEASURED_WHOLE = 500
#: Cells of a line that are in view before the cursor, where there are as many.
LEFT_IN_VIEW = 8
#: A text with more lines than this is shown in parts of `PART` lines and read only: drawing and wrapping it
#: whole would take seconds, and each key a good part of one.
MOST_LINES, PART = 50_000, PartedLines.PART
#: Files with more characters than this are shown without colours, which would be looked for after each pause.
COLOURED_TO = 400_000


class _UnderWay(NamedTuple):
    """An edit that is being made, and where it begins and ends in the text before."""

    edit: Edit
    top: Point
    bottom: Point


def _growth(edits: Sequence[Edit]) -> int:
    """By how many characters edits made a text longer."""
    return sum(len(edit.text) - len(edit._edit_result.replaced_text) for edit in edits if edit._edit_result)


class Editor(WritingArea):
    """Holds the text of one buffer; the truth is the session's."""

    class Scrolled(Message):
        """Another part of the text is in view."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"editor--found", "editor--current"}
    #: Cells of the widest line, and the first and last line that the edit under way changes.
    _widest = 0
    _touched: tuple[int, int] | None = None
    #: Whether the cursor was last moved by the mouse.
    _by_mouse = False
    _parsing: Timer | None = None
    _edit: _UnderWay | None = None
    #: Characters of the text, and of the one that is on disk (-1: not known).
    length, saved_length = 0, -1

    DEFAULT_CSS = """
    Editor { height: 1fr; padding: 0; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    Editor .text-area--cursor-line { background: $cursor-line; }
    Editor .text-area--cursor-gutter { background: $cursor-line; }
    Editor > .editor--found { background: $selection; text-style: underline; }
    Editor > .editor--current { text-style: bold reverse; }
    """

    def __init__(self, buffer: Buffer, theme: TextAreaTheme) -> None:
        super().__init__(soft_wrap=False, tab_behavior="indent", show_line_numbers=True, compact=True)
        self._highlights = LineHighlights(self)
        self.path = buffer.path
        self.revision = -1
        #: The text that the session had when it was last taken over from there, or handed over to it.
        self.agreed = ""
        #: The cursor and anchor as the session last had them.
        self.told = (buffer.cursor, buffer.anchor)
        self._first = theme
        #: Every line of a text that is too long to be shown whole, and the first that is shown.
        self.whole: PartedLines | None = None
        self.first_line = 0
        self._found: Sequence[Occurrence] = ()

    def _build_highlight_map(self) -> None:
        """Textual would query the whole tree here; the lines ask for themselves when they are drawn.

        While an edit is under way they move with their text, as the tree does.
        """
        edit, self._edit = self._edit, None
        if edit is None or edit.edit._edit_result is None:
            self._highlights.clear()
        else:
            end = self._point(edit.edit._edit_result.end_location)
            assert isinstance(self._highlights, LineHighlights)
            self._highlights.move(edit.top, edit.bottom, end, edit.edit.text.isalnum())

    def _point(self, place: Place) -> Point:
        row, column = place
        line = self.document.get_line(row)[:column]
        return row, column if line.isascii() else len(line.encode(errors="replace"))

    def _set_document(self, text: str, language: str | None) -> None:
        """Show another text; the document of the one before is let go of."""
        before = getattr(self, "document", None)
        super()._set_document(text, language)
        self.length = len(text)
        if isinstance(self.document, CodeDocument) and self.document.parsed < 0:
            self._parse()
        if isinstance(before, CodeDocument) and before is not self.document:
            before.release()

    def on_unmount(self) -> None:
        if isinstance(self.document, CodeDocument):
            self.document.release()

    def edit(self, edit: Edit) -> EditResult:
        top = edit.top[0]
        self._touched = (top, max(top, edit.bottom[0]) + edit.text.count(self.document.newline))
        self._parse_soon()
        self._edit = _UnderWay(edit, self._point(edit.top), self._point(edit.bottom))
        result = super().edit(edit)
        self.length += len(edit.text) - len(result.replaced_text)
        return result

    def _undo_batch(self, edits: Sequence[Edit]) -> None:
        self.length -= _growth(edits)
        self._parse_soon()
        super()._undo_batch(edits)

    def _redo_batch(self, edits: Sequence[Edit]) -> None:
        self.length += _growth(edits)
        self._parse_soon()
        super()._redo_batch(edits)

    def _parse_soon(self) -> None:
        """Look at the syntax again once nobody has typed for a moment; until then colours move with their text."""
        if self._parsing is not None:
            self._parsing.stop()
        if isinstance(self.document, CodeDocument):
            self._parsing = self.set_timer(PARSED_AFTER, self._parse)

    @work(group="parse")
    async def _parse(self) -> None:
        """A task of its own, so that keys do not wait for it."""
        document = self.document
        if not isinstance(document, CodeDocument):
            return
        if not await document.parse():
            self._parse_soon()
        elif document is self.document and not document.given_up:
            before = dict(self._highlights)
            self._build_highlight_map()
            if self.soft_wrap:  # rows on the screen are not those of the text
                self.refresh()
                return
            top = self.scroll_offset.y
            for row in range(top, min(top + self.size.height, document.line_count)):
                if before.get(row) != self._highlights[row]:
                    self.refresh_rows(row, row)

    def _refresh_size(self) -> None:
        """The room that the text takes: in a long one only what was changed is measured, and no line gets shorter."""
        lines, touched, gutter = self.document.lines, self._touched, self.gutter_width
        ahead, self._touched, self._measured = self._measured, None, 0
        if touched is not None and len(lines) > MEASURED_WHOLE:
            first, last = touched[0], min(touched[1], len(lines) - 1)
            rows = [lines[first], lines[last]] if ahead else lines[first : last + 1]
            self._widest = max(self._widest, ahead, widest(rows, self.indent_width))
        else:
            self._widest = widest(lines, self.indent_width)
        size = Size(self._widest + gutter + 1, len(lines))
        before = self.virtual_size
        if size != before:  # as a reactive it would lay out the whole screen
            self.set_reactive(Editor.virtual_size, size)
            if size.height != before.height:
                self._scroll_update(size)
            else:  # no bar shows the width
                self.scroll_x = self.validate_scroll_x(self.scroll_x)

    def _on_mount(self, event: events.Mount) -> None:
        self.use_colours(self._first)
        if self.revision < 0:  # what its colours take is imported before its text comes
            self._speak(language_of(self.path))

    def use_colours(self, theme: TextAreaTheme) -> None:
        self.register_theme(theme)
        self.theme = theme.name

    # ── what the session has ─────────────────────────────────────────────────────────────────────────────

    def take(self, buffer: Buffer) -> None:
        """Take the text of the buffer if it changed elsewhere, and the cursor if it was moved from elsewhere."""
        place = (buffer.cursor, buffer.anchor)
        if buffer.revision != self.revision:
            self._take_text(buffer)
        if not buffer.unsaved:
            self.saved_length = len(buffer.text)
        if place != self.told:
            self.told = place
            self.select(buffer.anchor, buffer.cursor)
        self.read_only = bool(buffer.note) or self.whole is not None

    def _take_text(self, buffer: Buffer) -> None:
        first = self.revision < 0 or not (self.agreed or self.text)
        self.revision = buffer.revision
        lines = PartedLines(buffer.text)
        if len(lines) > MOST_LINES + 1:
            self.whole = lines
            self._show_part(buffer.cursor[0])
        elif first or self.whole is not None:
            self.whole, self.first_line = None, 0
            small = len(buffer.text) <= COLOURED_TO
            self._speak(language_of(self.path) if small else None)
            self.line_number_start = 1
            self.text = buffer.text
        else:
            overlay = Overlay(self.agreed, self.text, buffer.text)
            if overlay.text != self.text:
                self._change_text(overlay)
        self.agreed = buffer.text
        if first:
            self.told = (buffer.cursor, buffer.anchor)
            self.select(buffer.anchor, buffer.cursor)
        if first and buffer.scroll is not None:
            self.call_after_refresh(self._scroll_back, buffer.scroll)

    def _change_text(self, overlay: Overlay) -> None:
        """Take another text as one edit that can be undone; the cursor and what is in view move with their lines."""

        before, ending = self.document, ending_of(overlay.text)
        lines = overlay.text.split(ending)

        def moved(place: Place) -> Place:
            above = sum(len(line) + len(before.newline) for line in before.lines[: place[0]])
            return _place_of(overlay.place(above + place[1]), lines, len(ending))

        selection, scroll = self.selection, self.scroll_offset
        start, end = moved(selection.start), moved(selection.end)
        row = min(scroll.y, before.line_count - 1)
        down = moved((row, 0))[0] - row
        if ending == before.newline:
            self.replace(overlay.text, (0, 0), before.end)
        else:
            self.text = overlay.text
        self.selection = Selection(self._within(start), self._within(end))
        self.scroll_to(scroll.x, scroll.y + down, animate=False, immediate=True)

    def _speak(self, language: str | None) -> None:
        try:
            self.language = language
        except LanguageDoesNotExist:
            self.language = None

    @property
    def changed_text(self) -> str | None:
        """The text as it is here; None where only a part of it does, which is never edited."""
        return None if self.whole is not None else self.text

    @property
    def place(self) -> tuple[Place, Place]:
        """Cursor and anchor, as the session has them."""
        (row, column), (anchor_row, anchor_column) = self.selection.end, self.selection.start
        return (row + self.first_line, column), (anchor_row + self.first_line, anchor_column)

    # ── what is in view ──────────────────────────────────────────────────────────────────────────────────

    @property
    def scroll_place(self) -> Place:
        """The first line and column in view, as the session has them."""
        return round(self.scroll_y) + self.first_line, round(self.scroll_x)

    def _scroll_back(self, place: Place) -> None:
        """Show the text from there on, as it was left, wherever the cursor is."""
        self.scroll_to(place[1], place[0] - self.first_line, animate=False, immediate=True)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_x(old_value, new_value)
        self.post_message(self.Scrolled())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────

    async def on_key(self, event: events.Key) -> None:
        """Enter goes on at the depth of the line, Shift+Tab takes a step of it back."""
        self._by_mouse = False
        if self.read_only or self.locked:
            return  # the base says so
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            row, column = self.selection.start
            line = self.document.get_line(row)[:column]
            self._replace_via_keyboard("\n" + line[: len(line) - len(line.lstrip())], *self.selection)
        elif event.key == "shift+tab":
            event.stop()
            event.prevent_default()
            dedent(self)

    # ── moving ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def lines(self) -> Sequence[str]:
        """Every line of the text, without its ending."""
        return self.whole or self.document.lines

    def select(self, anchor: Place, cursor: Place) -> None:
        """Select by places of the whole text, and bring the cursor into view."""
        if self.whole is not None and not 0 <= cursor[0] - self.first_line < self.document.line_count:
            self._show_part(cursor[0])
        self._by_mouse = False
        self.selection = Selection(self._within(self._here(anchor)), self._within(self._here(cursor)))
        self.call_after_refresh(self.scroll_cursor_visible, True)

    def go_to_line(self, number: int, column: int = 1) -> None:
        """Both count from 1."""
        place = (max(number, 1) - 1, max(column, 1) - 1)
        self.select(place, place)

    def mark(self, found: Sequence[Occurrence]) -> None:
        """Show where something was found; `found` is in order."""
        if self._found or found:
            self._found = found
            self._line_cache.clear()
            self.refresh()

    def marks(self, row: int) -> tuple[tuple[int, int], ...]:
        """The columns of what was found in a line that is shown."""
        row, found = row + self.first_line, self._found
        here = found[bisect_left(found, (row,)) : bisect_left(found, (row + 1,))]
        return tuple((one.start, one.end) for one in here)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        for start, end in self.marks(line_index):
            here = sorted(self.selection) == [(line_index, start), (line_index, end)]
            line.stylize(
                self.get_component_rich_style(f"editor--{'current' if here else 'found'}"), start, end
            )
        return line

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """With as much of the line before the cursor as there is room for; the mouse stays on what it presses."""
        scrolled = super().scroll_cursor_visible(center, animate)
        left, (x, _) = round(self.scroll_x), self._cursor_offset
        room = self.scrollable_content_region.width - self.gutter_width
        if left and not self._by_mouse and not self.soft_wrap and x < left + LEFT_IN_VIEW:
            to = 0 if x + LEFT_IN_VIEW <= room else x - room // 2
            self.scroll_to(x=to, animate=False, force=True)
        return scrolled

    async def _on_mouse_down(self, event: events.MouseDown) -> None:
        self._by_mouse = True

    def action_cursor_down(self, select: bool = False) -> None:
        if self.whole is not None and not select and self.cursor_at_last_line:
            self.go_to_line(self.place[0][0] + 2)
        else:
            super().action_cursor_down(select)

    def action_cursor_up(self, select: bool = False) -> None:
        if self.whole is not None and not select and self.cursor_at_first_line:
            self.go_to_line(self.place[0][0])
        else:
            super().action_cursor_up(select)

    def _show_part(self, row: int) -> None:
        """Show the lines around this one, of a text that is too long to be shown whole."""
        assert self.whole is not None
        last = max(len(self.whole) - PART, 0)
        self.first_line = min(max(row - PART // 2, 0), last)
        self.language = None
        self.line_number_start = self.first_line + 1
        self.text = "\n".join(self.whole[self.first_line : self.first_line + PART])

    def _here(self, place: Place) -> Place:
        return max(place[0] - self.first_line, 0), place[1]

    def _within(self, place: Place) -> Place:
        row = min(place[0], self.document.line_count - 1)
        return row, min(place[1], len(self.document.get_line(row)))


def _place_of(index: int, lines: list[str], ending: int) -> Place:
    """The line and column of a character, in lines that each end with so many more."""
    for row, line in enumerate(lines):
        if index <= len(line):
            return row, index
        index -= len(line) + ending
    return len(lines) - 1, len(lines[-1])
