"""Editor of an open file: line numbers, syntax colours, cursor shared with the session."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.timer import Timer
from textual.widgets import TextArea
from textual.widgets.text_area import DocumentBase, Edit, EditResult, Selection, TextAreaTheme

from tui_agent.edits.merge import Overlay
from tui_agent.edits.search import Occurrence, Place, near, partner
from tui_agent.store.files import Buffer
from tui_agent.ui.editor.documents import CodeDocument, ExactDocument, PartedLines, dedented, ending_of
from tui_agent.ui.editor.writing_area import StyledOnce, WritingArea
from tui_agent.ui.safe_text import parts
from tui_agent.ui.themes import editor_theme
from tui_agent.ui.widgets.syntax import LineHighlights, characters, grammar_of, language_of, query_of

_AROUND = 30
#: Line comment signs by language; the default is `#`.
COMMENTS = {
    **dict.fromkeys(("javascript", "typescript", "tsx", "java", "go", "rust", "css"), "//"),
    "sql": "--",
}


def _selected(area: TextArea) -> tuple[range, list[str]]:
    """Rows and texts of the lines that the selection touches."""
    (first, _), (last, column) = sorted(area.selection)
    rows = range(first, max(first, last - (column == 0 and last > first)) + 1)
    return rows, [area.document.get_line(row) for row in rows]


def _change_lines(area: TextArea, rows: range, lines: list[str], down: int = 0) -> None:
    """A single undo step; the selection moves with the lines."""
    start, end = area.selection
    old = [area.document.get_line(row) for row in rows]
    last = area.document.get_line(rows[-1])
    area.replace(area.document.newline.join(lines), (rows[0], 0), (rows[-1], len(last)))

    def moved(place: Place) -> Place:
        at = place[0] - rows[0]
        grown = len(lines[at]) - len(old[at]) if not down and 0 <= at < min(len(old), len(lines)) else 0
        return _within(area, (place[0] + down, max(0, place[1] + grown)))

    area.selection = Selection(moved(start), moved(end))


def dedent(area: TextArea) -> None:
    rows, lines = _selected(area)
    shorter = [dedented(line, area.indent_width) for line in lines]
    if shorter != lines:
        _change_lines(area, rows, shorter)


def toggle_comment(area: TextArea) -> None:
    sign = COMMENTS.get(area.language or "", "#")
    rows, lines = _selected(area)
    written = [line for line in lines if line.strip()]
    if all(line.lstrip().startswith(sign) for line in written):
        lines = [re.sub(rf"^(\s*){re.escape(sign)} ?", r"\1", line) for line in lines]
    else:
        depth = min((len(line) - len(line.lstrip()) for line in written), default=0)
        lines = [f"{line[:depth]}{sign} {line[depth:]}" if line.strip() else line for line in lines]
    _change_lines(area, rows, lines)


def duplicate_lines(area: TextArea) -> None:
    rows, lines = _selected(area)
    _change_lines(area, rows, [*lines, *lines], down=len(lines))


def move_lines(area: TextArea, step: int) -> None:
    """Swaps the selected lines with the line above (-1) or below (1)."""
    rows, lines = _selected(area)
    end = area.document.line_count - (not area.document.lines[-1])  # keeps a final line ending
    if rows[0] + step < 0 or rows[-1] + step >= end:
        return
    if step < 0:
        around, lines = range(rows[0] - 1, rows[-1] + 1), [*lines, area.document.get_line(rows[0] - 1)]
    else:
        around, lines = range(rows[0], rows[-1] + 2), [area.document.get_line(rows[-1] + 1), *lines]
    _change_lines(area, around, lines, down=step)


def replace_lines(area: TextArea, lines: Iterable[str], start: Place, end: Place) -> Place:
    area.history.checkpoint()
    ending = area.document.newline
    result = area.replace(ending.join(line.replace("\n", ending) for line in lines), start, end)
    area.history.checkpoint()
    return result.end_location


def go_to_bracket(area: TextArea) -> None:
    lines = area.document.lines
    here = near(lines, area.selection.end)
    there = partner(lines, here) if here else None
    if there is not None:
        area.move_cursor(there)


def _within(area: TextArea, place: Place) -> Place:
    row = min(place[0], area.document.line_count - 1)
    return row, min(place[1], len(area.document.get_line(row)))


def replaced_in(line: str, here: Occurrence, new: str) -> Content:
    before, after = line[max(0, here.start - _AROUND) : here.start].lstrip(), line[here.end :][:_AROUND]
    old = (line[here.start : here.end], "$removed strike")
    return parts((f"{here.row + 1}: ", "$muted"), before, old, (new, "$added bold"), after)


class EditorColours(LineHighlights):
    """Colours by document line, highlights by line of the whole text."""

    def __init__(self, area: WritingArea) -> None:
        super().__init__(lambda: document if isinstance(document := area.document, CodeDocument) else None)
        self._area = area
        #: By tree-sitter capture name.
        self.styles: Mapping[str, Style] = MappingProxyType({})
        self._found: Sequence[Occurrence] = ()

    def use(self, theme: TextAreaTheme) -> None:
        self.styles = theme.syntax_styles
        self._area.register_theme(StyledOnce.like(theme))
        self._area.theme = theme.name
        self._area.notify_style_update()

    def mark(self, found: Sequence[Occurrence]) -> None:
        if self._found or found:
            self._found = found
            self._area.refresh()

    def marks(self, row: int) -> tuple[tuple[int, int], ...]:
        found = self._found
        here = found[bisect_left(found, (row,)) : bisect_left(found, (row + 1,))]
        return tuple((one.start, one.end) for one in here)


#: Seconds between the last edit and the next parse; longer than between two typed keys.
PARSED_AFTER = 0.25
#: Minimum cells visible before the cursor.
LEFT_IN_VIEW = 8
#: Longer texts are read-only and shown in parts of `PART` lines, since drawing and wrapping them takes seconds.
MOST_LINES, PART = 50_000, PartedLines.PART
#: Characters up to which a text has colours: each pause in typing computes them again.
COLOURED_TO = 400_000


class Editor(WritingArea):
    class Scrolled(Message):
        pass

    TYPES_COMMANDS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(f"ctrl+{shift}{key}", f"go_to_end('{key}', {bool(shift)})", show=False)
        for key in ("home", "end")
        for shift in ("", "shift+")
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"editor--found", "editor--current"}
    #: A new size changes only the scrollbar; a layout change would lay out the whole screen.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False, repaint=False)
    _by_mouse = False
    _parsing: Timer | None = None
    #: Characters on disk; -1 if unknown.
    saved_length = -1

    DEFAULT_CSS = """
    Editor { height: 1fr; padding: 0; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    Editor .text-area--cursor-line { background: $cursor-line; }
    Editor .text-area--cursor-gutter { background: $cursor-line; }
    Editor > .editor--found { background: $selection; text-style: underline; }
    Editor > .editor--current { text-style: bold reverse; }
    """

    def __init__(self, buffer: Buffer) -> None:
        #: `None` without colours.
        self.code_language: str | None = None
        self.colours = EditorColours(self)
        super().__init__(soft_wrap=False, tab_behavior="indent", show_line_numbers=True, compact=True)
        self.path = buffer.path
        self.revision = -1
        #: Text of the last exchange with the session.
        self.agreed = ""
        self.told = (buffer.cursor, buffer.anchor)
        #: Position to scroll to after each layout until the first key or scroll.
        self._scroll_later: Place | None = None
        #: All lines, and the first visible one.
        self.whole: PartedLines | None = None
        self.first_line = 0
        self.watch(self, "virtual_size", self._resize_bar, init=False)
        self.watch(self, "scroll_x", self._tell_scrolled, init=False)
        self.watch(self, "scroll_y", self._tell_scrolled, init=False)

    @property
    def length(self) -> int:
        return self.document.length if isinstance(self.document, ExactDocument) else len(self.text)

    def _document_of(self, text: str) -> DocumentBase:
        grammar = grammar_of(self.code_language) if self.code_language else None
        if self.code_language is None or grammar is None:
            return ExactDocument(text)
        return CodeDocument(text, grammar, query_of(self.code_language))

    def _show_document(self, document: DocumentBase) -> None:
        before = self.document
        self.colours.clear()
        super()._show_document(document)
        if isinstance(document, CodeDocument) and document.parsed < 0:
            self._parse()
        if isinstance(before, CodeDocument):
            before.release()

    @on(events.Unmount)
    def _release(self) -> None:
        if isinstance(self.document, CodeDocument):
            self.document.release()

    def edit(self, edit: Edit) -> EditResult:
        """Shifts the colours by the edit; the next parse corrects them."""
        self._parse_soon()
        document = self.document
        if not isinstance(document, CodeDocument):
            return super().edit(edit)
        top, bottom = document.point(edit.top), document.point(edit.bottom)
        result = super().edit(edit)
        self.colours.move(top, bottom, document.point(result.end_location), edit.text.isalnum())
        return result

    def undo(self) -> None:
        self._parse_soon()
        super().undo()
        self.colours.clear()

    def redo(self) -> None:
        self._parse_soon()
        super().redo()
        self.colours.clear()

    def _parse_soon(self) -> None:
        if self._parsing is not None:
            self._parsing.stop()
        if isinstance(self.document, CodeDocument):
            self._parsing = self.set_timer(PARSED_AFTER, self._parse)

    @work(group="parse")
    async def _parse(self) -> None:
        document = self.document
        if not isinstance(document, CodeDocument):
            return
        if not await document.parse():
            self._parse_soon()
        elif document is self.document and not document.given_up:
            before = dict(self.colours)
            self.colours.clear()
            if self.soft_wrap:  # screen rows differ from text rows
                self.refresh()
                return
            top = self.scroll_offset.y
            for row in range(top, min(top + self.size.height, document.line_count)):
                if before.get(row) != self.colours[row]:
                    self._refresh_rows(row, row)

    def _resize_bar(self, before: Size, size: Size) -> None:
        bar = self.vertical_scrollbar
        if size.height != before.height and self.show_vertical_scrollbar:
            bar.window_virtual_size = size.height
            bar.refresh()
        self.scroll_x = self.validate_scroll_x(self.scroll_x)
        self.scroll_y = self.validate_scroll_y(self.scroll_y)

    @on(events.Mount)
    def _prepare(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._recolour())
        self._recolour()

    def _recolour(self) -> None:
        self.colours.use(editor_theme(self.app.theme, self.app.theme_variables))

    def take(self, buffer: Buffer) -> None:
        place = (buffer.cursor, buffer.anchor)
        if buffer.revision != self.revision:
            first = self.revision < 0 or not (self.agreed or self.text)
            self.revision = buffer.revision
            lines = PartedLines(buffer.text)
            if len(lines) > MOST_LINES + 1:
                self.whole = lines
                self._show_part(buffer.cursor[0])
            elif first or self.whole is not None:
                self.whole, self.first_line = None, 0
                self.code_language = language_of(self.path) if len(buffer.text) <= COLOURED_TO else None
                self.line_number_start = 1
                self.text = buffer.text
            elif (overlay := Overlay(self.agreed, self.text, buffer.text)).text != self.text:
                self._change_text(overlay)
            self.agreed = buffer.text
            if first:
                self.told = place
                self.select(buffer.anchor, buffer.cursor)
                if buffer.scroll is not None:
                    self.call_after_refresh(self._scroll_back, buffer.scroll)
        if not buffer.unsaved:
            self.saved_length = len(buffer.text)
        if place != self.told:
            self.told = place
            self.select(buffer.anchor, buffer.cursor)
        self.read_only = bool(buffer.note) or self.whole is not None

    def _change_text(self, overlay: Overlay) -> None:
        """A single undo step; cursor and scroll position move with their lines."""
        before, ending = self.document, ending_of(overlay.text)

        def moved(place: Place) -> Place:
            above = sum(len(line) + len(before.newline) for line in before.lines[: place[0]])
            *rows, line = overlay.text[: overlay.place(above + place[1])].split(ending)
            return len(rows), len(line)

        selection, scroll = self.selection, self.scroll_offset
        start, end = moved(selection.start), moved(selection.end)
        row = min(scroll.y, before.line_count - 1)
        down = moved((row, 0))[0] - row
        if ending == before.newline:
            self.replace(overlay.text, (0, 0), before.end)
        else:
            self.load_text(overlay.text)
        self.selection = Selection(_within(self, start), _within(self, end))
        self.scroll_to(scroll.x, scroll.y + down, animate=False, immediate=True)

    @property
    def changed_text(self) -> str | None:
        """`None` for a read-only part of a text."""
        return None if self.whole is not None else self.text

    @property
    def place(self) -> tuple[Place, Place]:
        (row, column), (anchor_row, anchor_column) = self.selection.end, self.selection.start
        return (row + self.first_line, column), (anchor_row + self.first_line, anchor_column)

    @property
    def scroll_place(self) -> Place:
        return round(self.scroll_y) + self.first_line, round(self.scroll_x)

    def _scroll_back(self, place: Place) -> None:
        self._scroll_later = place
        self.scroll_to(place[1], place[0] - self.first_line, animate=False, immediate=True, force=True)

    @on(events.Resize)
    def _scroll_when_laid_out(self) -> None:
        if self._scroll_later is not None:
            self.call_after_refresh(self._scroll_back, self._scroll_later)

    @on(events.Key)
    @on(events.MouseDown)
    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def _stay(self) -> None:
        self._scroll_later = None

    def _tell_scrolled(self) -> None:
        self.post_message(self.Scrolled())

    @on(events.Key)
    async def _indent(self, event: events.Key) -> None:
        self._by_mouse = False
        if self._taken_by_vim(event) or self.read_only:
            return
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            row, column = self.selection.start
            line = self.document.get_line(row)[:column]
            self._type_in("\n" + line[: len(line) - len(line.lstrip())])
        elif event.key == "shift+tab":
            event.stop()
            event.prevent_default()
            dedent(self)

    @property
    def lines(self) -> Sequence[str]:
        return self.whole or self.document.lines

    def select(self, anchor: Place, cursor: Place) -> None:
        if self.whole is not None and not 0 <= cursor[0] - self.first_line < self.document.line_count:
            self._show_part(cursor[0])
        self._by_mouse, self._scroll_later = False, None
        self.selection = Selection(
            _within(self, self._local_place(anchor)), _within(self, self._local_place(cursor))
        )
        self.call_after_refresh(self.scroll_cursor_visible, True)

    def go_to_line(self, number: int, column: int = 1) -> None:
        """Both count from 1."""
        place = (max(number, 1) - 1, max(column, 1) - 1)
        self.select(place, place)

    def action_go_to_end(self, key: str, select: bool) -> None:
        to = (0, 0) if key == "home" else (len(self.lines) - 1, len(self.lines[-1]))
        self.select(self.place[1] if select and self.whole is None else to, to)

    def _go_outside(self, line: int) -> bool:
        if self.whole is not None:
            self.go_to_line(len(self.whole) if line < 0 else min(line, len(self.whole)))
        return self.whole is not None

    def _looks(self, row: int) -> tuple[object, ...]:
        return tuple(self.colours[row]), self.colours.marks(row + self.first_line)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        for start, end in self.colours.marks(line_index + self.first_line):
            here = sorted(self.selection) == [(line_index, start), (line_index, end)]
            line.stylize(
                self.get_component_rich_style(f"editor--{'current' if here else 'found'}"), start, end
            )
        text = line.plain
        for begin, stop, name in self.colours[line_index]:
            if style := self.colours.styles.get(name):
                line.stylize(style, characters(text, begin), None if stop is None else characters(text, stop))
        return line

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Keeps `LEFT_IN_VIEW` cells before the cursor, except under a pressed mouse button."""
        scrolled = super().scroll_cursor_visible(center, animate)
        left, (x, _) = round(self.scroll_x), self.wrapped_document.location_to_offset(self.cursor_location)
        room = self.scrollable_content_region.width - self.gutter_width
        if left and not self._by_mouse and not self.soft_wrap and x < left + LEFT_IN_VIEW:
            to = 0 if x + LEFT_IN_VIEW <= room else x - room // 2
            self.scroll_to(x=to, animate=False, force=True)
        return scrolled

    @on(events.MouseDown)
    def _note_mouse(self) -> None:
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
        assert self.whole is not None
        last = max(len(self.whole) - PART, 0)
        self.first_line = min(max(row - PART // 2, 0), last)
        self.code_language = None
        self.line_number_start = self.first_line + 1
        self.text = "\n".join(self.whole[self.first_line : self.first_line + PART])

    def _local_place(self, place: Place) -> Place:
        return max(place[0] - self.first_line, 0), place[1]
