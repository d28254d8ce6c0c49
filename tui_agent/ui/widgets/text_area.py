"""A place to write in: Textual's TextArea with keys that terminals leave alone, text shown through the sink, and
every character kept as it is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from rich.segment import Segment
from rich.text import Text
from textual import events
from textual._text_area_theme import TextAreaTheme
from textual.binding import Binding, BindingType
from textual.document._document import EditResult, Location, Selection
from textual.document._edit import Edit
from textual.geometry import Offset, Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import TextArea

from tui_agent.ui.sink import clean
from tui_agent.ui.widgets.documents import CodeDocument, ExactDocument, Verbatim, ending_of


@runtime_checkable
class KeyedPane(Protocol):
    """A pane, as far as its keys go: what each of them calls."""

    calls_by_key: dict[str, str]

    async def run_action(self, action: str) -> None: ...


#: Keys of Textual's own that select all or a line; they are ours for moving between panes.
_NOT_OURS = {"f6", "f7", "ctrl+a"}


#: Characters of a paste from which on the loop goes on while it is taken apart.
PASTED_LONG = 100_000
_BRACKETS = re.compile(r"[][(){}]")
#: Lines in which the other one of two brackets is looked for.
SEARCHED_LINES = 2_000


def _editing_keys() -> list[Binding]:
    found = []
    for binding in TextArea.BINDINGS:
        assert isinstance(binding, Binding)
        keys = [key for key in binding.key.split(",") if key not in _NOT_OURS]
        if keys:
            found.append(Binding(",".join(keys), binding.action, binding.description, show=False))
    return found


_KEYS = _editing_keys()
#: Keys that would change the text, beside those that can be printed.
_CHANGING = {"enter", "backspace", "delete", "ctrl+v", "ctrl+x", "ctrl+z", "ctrl+y"}
_EDITING = {key: binding.action for binding in _KEYS for key in binding.key.split(",")}


class StyledOnce(TextAreaTheme):
    """Works its styles out when a style sheet was applied, which makes others, and not for each drawing."""

    _styles: object = None

    def apply_css(self, text_area: TextArea) -> None:
        styles = text_area._component_styles.get("text-area--cursor")
        if styles is None or styles is not self._styles:
            super().apply_css(text_area)
            self._styles = styles


class WritingArea(TextArea, inherit_bindings=False):
    """The cursor does not blink, since nothing moves on the screen while nothing happens.

    Where lines are not wrapped, only those are drawn again that a key changed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*_KEYS]
    cursor_blink = reactive(False, init=False)
    selection = reactive(Selection(), init=False, always_update=True, repaint=False)
    DEFAULT_CSS = """
    WritingArea {
        border: none; padding: 0; background: $surface; color: $text;
        &:focus { border: none; background-tint: transparent; }
        &:dark .text-area--cursor, &:light .text-area--cursor { background: $cursor; color: $background; }
        & .text-area--cursor-line { background: $surface; }
        & .text-area--gutter { color: $faint; background: $surface; }
        & .text-area--cursor-gutter { color: $muted; background: $surface; }
        & .text-area--selection { background: $selection; }
        & .text-area--matching-bracket { background: $selection; text-style: bold underline; }
        & .text-area--placeholder { color: $faint; }
    }
    """

    class TypingRefused(Message):
        """Something was typed where nothing can be written."""

    #: Whether what is typed is refused, because the session is only read here.
    locked = False
    #: Cells of the widest line of a paste that was measured before it becomes an edit; 0: nothing was.
    _measured = 0

    def _set_theme(self, theme: str) -> None:
        super()._set_theme(theme)
        self._theme.__class__ = StyledOnce

    def _set_document(self, text: str, language: str | None) -> None:
        super()._set_document(Verbatim.of(text, ending_of(text)), language)
        if not isinstance(self.document, CodeDocument):
            self.document.__class__ = ExactDocument
        self.refresh()

    def edit(self, edit: Edit) -> EditResult:
        before = self.document.line_count, self.gutter_width
        result = super().edit(edit)
        if before[1] != self.gutter_width:
            self.refresh()
        else:
            same = before[0] == self.document.line_count
            self.refresh_rows(edit.top[0], result.end_location[0] if same else self.document.line_count)
        return result

    def _undo_batch(self, edits: Sequence[Edit]) -> None:
        super()._undo_batch(edits)
        self.refresh()

    def _redo_batch(self, edits: Sequence[Edit]) -> None:
        super()._redo_batch(edits)
        self.refresh()

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        bracket = self._matching_bracket_location
        super()._watch_selection(previous_selection, selection)
        rows = [row for row, _ in (*previous_selection, *selection)]
        if previous_selection.is_empty and selection.is_empty:
            for row in {*rows}:
                self.refresh_rows(row, row)
        else:
            self.refresh_rows(min(rows), max(rows))
        if bracket != self._matching_bracket_location:
            for place in filter(None, (bracket, self._matching_bracket_location)):
                self.refresh_rows(place[0], place[0])

    def _yield_character_locations(self, start: Location) -> Iterable[tuple[str, Location]]:
        """The brackets from a place on: Textual asks for them, to find the one that belongs to another."""
        row, column = start
        for at in range(row, min(row + SEARCHED_LINES, self.document.line_count)):
            line = self.document.get_line(at)
            for found in _BRACKETS.finditer(line, column if at == row else 0):
                yield found[0], (at, found.start())

    def _yield_character_locations_reverse(self, start: Location) -> Iterable[tuple[str, Location]]:
        row, column = start
        for at in range(row, max(row - SEARCHED_LINES, -1), -1):
            line = self.document.get_line(at)
            for found in reversed([*_BRACKETS.finditer(line, 0, column + 1 if at == row else len(line))]):
                yield found[0], (at, found.start())

    def refresh_rows(self, first: int, last: int) -> None:
        """Draw the lines from one to the other again, as far as they are in view."""
        top = self.scroll_offset.y
        first, end = max(first, top), min(last + 1, top + self.size.height)
        if self.soft_wrap:
            self.refresh()
        elif first < end:
            self.refresh(Region(0, first - top, self.size.width, end - first))

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        """What is typed or pasted gets the line ending that the text has."""
        lines = insert.replace("\r\n", "\n").replace("\r", "\n")
        return super()._replace_via_keyboard(lines.replace("\n", self.document.newline), start, end)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """No rule about the focus makes it look different, only the cursor is drawn or not: the styles, its own and
        those of ten parts, would be worked out for nothing."""
        self.refresh()

    def refuse_text(self) -> None:
        self.locked = self.read_only = True

    async def on_paste(self, event: events.Paste) -> None:
        """A long paste is taken apart in a thread, and becomes one edit; what is typed waits in the queue behind it."""
        if self.locked:
            event.stop()
            event.prevent_default()
            self.post_message(self.TypingRefused())
        elif len(event.text) >= PASTED_LONG and not self.read_only:
            event.prevent_default()
            pieces, width = await asyncio.to_thread(
                Verbatim.pasted, event.text, self.document.newline, self.indent_width
            )
            if self.is_attached and not self.read_only:
                self._measured = width
                result = self.replace(pieces, *self.selection, maintain_selection_offset=False)
                self.move_cursor(result.end_location)
                self.focus()

    async def on_key(self, event: events.Key) -> None:
        """Keys that the pane has an action for come before those of the text; what can be typed does not.

        Both are done here and at once: a binding waits until the key has risen to the application, and letters
        that came with it in one burst would overtake it.
        """
        if self.locked and (event.is_printable or event.key in _CHANGING):
            event.stop()
            event.prevent_default()
            self.post_message(self.TypingRefused())
            return
        if event.is_printable:
            return
        pane = next((node for node in self.ancestors if isinstance(node, KeyedPane)), None)
        if pane and (call := pane.calls_by_key.get(event.key)):
            event.stop()
            event.prevent_default()
            await pane.run_action(call)
        elif call := _EDITING.get(event.key):
            event.stop()
            event.prevent_default()
            await self.run_action(call)

    def point(self, x: int, y: int) -> None:
        """The cursor goes there, unless something is selected: that is what is meant then."""
        if self.selection.is_empty:
            left, top = self.scroll_offset
            place = Offset(x - self.gutter_width + left - self.gutter.left, y + top - self.gutter.top)
            self.move_cursor(self.wrapped_document.offset_to_location(place))

    def get_line(self, line_index: int) -> Text:
        return Text(clean(self.document.get_line(line_index)), end="", no_wrap=True)

    def marks(self, row: int) -> tuple[tuple[int, int], ...]:
        """The columns of a line that are shown in another way than its text and its colours have it."""
        return ()

    def render_line(self, y: int) -> Strip:
        """Textual asks for the whole text, to know whether it is empty, for each line that it draws."""
        document = self.document
        if document.line_count == 1 and not document.get_line(0):
            return super().render_line(y)
        row = self.scroll_offset.y + y
        selection = self.selection
        if self.soft_wrap or row >= document.line_count:
            return self._render_line(y)
        text = (
            self.size,
            self.gutter_width,
            self.scroll_offset.x,
            document.get_line(row),
            tuple(self._highlights[row]),
            self.marks(row),
            self.theme,
        )
        key = (
            row,
            text,
            selection if selection.contains_line(row) else selection.end[0] == row,
            self._matching_bracket_location,
            self.read_only,
            self.suggestion,
            self._draw_cursor if selection.end[0] == row else None,
        )
        line = self._line_cache.get(key)
        if line is None:
            bracket = self._matching_bracket_location
            plain = not selection.contains_line(row) and (bracket is None or bracket[0] != row)
            line = (
                self._renumbered(y, row, text) if plain and self.show_line_numbers else self._render_line(y)
            )
            self._line_cache[key] = line
        return line

    def _renumbered(self, y: int, row: int, text: tuple[object, ...]) -> Strip:
        """A line that moved, since one was begun or taken away above it, is drawn as it was behind another number."""
        line = self._line_cache.get(text)
        if line is None:
            line = self._line_cache[text] = self._render_line(y)
            return line
        number, *segments = line
        words = f"{row + self.line_number_start:>{self.gutter_width - 2}}  "
        return Strip([Segment(words, number.style), *segments], line.cell_length)
