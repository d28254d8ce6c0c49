"""Textual's `TextArea` with rebound keys, cleaned output, and unchanged characters."""

from __future__ import annotations

import asyncio
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Offset, Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import Input, TextArea
from textual.widgets.text_area import (
    DocumentBase,
    DocumentNavigator,
    Edit,
    EditResult,
    Location,
    Selection,
    TextAreaTheme,
)

from tui_agent.ui.editor.documents import ExactDocument
from tui_agent.ui.keys.keyboard import store_waiting
from tui_agent.ui.safe_text import clean
from tui_agent.ui.textual_patches.text_area_lines import drawn_line
from tui_agent.ui.textual_patches.unwrapped_rows import view_of

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui_agent.session.session import Session
    from tui_agent.ui.editor.vim import Vim, VimDisplay


@runtime_checkable
class KeyedPane(Protocol):
    calls_by_key: dict[str, str]

    async def run_action(self, action: str) -> None: ...


#: Textual's keys for selections, which here move between panes.
_NOT_OURS = {"f6", "f7", "ctrl+a"}

#: Characters from which pastes are split in a thread.
PASTED_LONG = 100_000
_BRACKETS = re.compile(r"[][(){}]")
_PARTNERS = dict(zip("([{)]}", ")]}([{", strict=True))
#: Maximum lines to a matching bracket.
SEARCHED_LINES = 2_000


_KEYS = [
    Binding(",".join(keys), binding.action, binding.description, show=False)
    for binding in TextArea.BINDINGS
    if isinstance(binding, Binding)
    and (keys := [key for key in binding.key.split(",") if key not in _NOT_OURS])
]
#: Keys that edit, besides printable keys.
_EDITING = {key: binding.action for binding in _KEYS for key in binding.key.split(",")}


class StyledOnce(TextAreaTheme):
    """Computes its styles once per style sheet, not for each drawing."""

    _styled: int | None = -1

    def apply_css(self, text_area: TextArea) -> None:
        styled = getattr(text_area, "styled", None)
        if styled is None or styled != self._styled:
            super().apply_css(text_area)
            # Only the background, to keep syntax colours visible.
            self.cursor_line_style = _ground_of(self.cursor_line_style)
            self.selection_style = _ground_of(self.selection_style)
            self._styled = styled

    @classmethod
    def like(cls, theme: TextAreaTheme, name: str = "") -> StyledOnce:
        values: dict[str, Any] = {one.name: getattr(theme, one.name) for one in fields(theme) if one.init}
        if name:
            values["name"] = name
        return cls(**values)


class WritingArea(TextArea, inherit_bindings=False):
    """Without soft wrap, a key redraws only the changed lines."""

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

    class VimShown(Message):
        def __init__(self, shown: VimDisplay) -> None:
            super().__init__()
            self.shown = shown

    class VimCommand(Message):
        def __init__(self, name: str, words: str) -> None:
            super().__init__()
            self.name, self.words = name, words

    #: Whether Vim keys include searches and `:` commands, which Enter ends.
    TYPES_COMMANDS: ClassVar[bool] = False
    TYPED_COMMANDS: ClassVar[tuple[str, ...]] = ("w", "q", "q!", "wq", "x", "e", "e!")
    vim: Vim | None = None

    def __init__(self, text: str = "", **options: Any) -> None:
        self.styled = 0
        #: Drawn lines by all inputs of the drawing.
        self._drawn_lines: LRUCache[tuple[object, ...], Strip] = LRUCache(1024)
        self._bracket: Location | None = None
        super().__init__(**options)
        css = TextAreaTheme.get_builtin_theme("css")
        if css is not None:
            self.register_theme(StyledOnce.like(css, "writing"))
            self.theme = "writing"
        self._show_document(self._document_of(text))

    def notify_style_update(self) -> None:
        self.styled += 1
        self._drawn_lines.clear()
        super().notify_style_update()

    def load_text(self, text: str) -> None:
        self.history.clear()
        self._show_document(self._document_of(text))
        self.post_message(self.Changed(self))
        self.update_suggestion()

    def _document_of(self, text: str) -> DocumentBase:
        return ExactDocument(text)

    def _show_document(self, document: DocumentBase) -> None:
        self.document = document
        self.wrapped_document = view_of(document, self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._drawn_lines.clear()
        self.move_cursor((0, 0))
        if self.is_attached:
            self.mutate_reactive(TextArea.indent_width)  # makes Textual compute the size again
        self.refresh()

    def edit(self, edit: Edit) -> EditResult:
        before = self.document.line_count, self.gutter_width
        result = super().edit(edit)
        if before[1] != self.gutter_width:
            self.refresh()
        else:
            same = before[0] == self.document.line_count
            self._refresh_rows(edit.top[0], result.end_location[0] if same else self.document.line_count)
        return result

    def undo(self) -> None:
        super().undo()
        self.refresh()

    def redo(self) -> None:
        super().redo()
        self.refresh()

    def watch_selection(self, before: Selection, selection: Selection) -> None:
        rows = [row for row, _ in (*before, *selection)]
        if before.is_empty and selection.is_empty:
            for row in {*rows}:
                self._refresh_rows(row, row)
        else:
            self._refresh_rows(min(rows), max(rows))
        bracket, self._bracket = self._bracket, self.matching_bracket_location
        if bracket != self._bracket:
            for place in filter(None, (bracket, self._bracket)):
                self._refresh_rows(place[0], place[0])

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        if bracket not in _PARTNERS:
            return None
        row, column = search_from
        forward = bracket in "([{"
        rows = range(row, min(row + SEARCHED_LINES, self.document.line_count))
        if not forward:
            rows = range(row, max(row - SEARCHED_LINES, -1), -1)
        opened: list[str] = []
        for at in rows:
            line = self.document.get_line(at)
            places = [*_BRACKETS.finditer(line, column if forward and at == row else 0)]
            if not forward:
                places = [place for place in reversed(places) if at < row or place.start() <= column]
            for place in places:
                if (place[0] in "([{") == forward:
                    opened.append(place[0])
                elif opened and opened[-1] == _PARTNERS[place[0]]:
                    opened.pop()
                    if not opened:
                        return at, place.start()
        return None

    def _refresh_rows(self, first: int, last: int) -> None:
        top = self.scroll_offset.y
        first, end = max(first, top), min(last + 1, top + self.size.height)
        if self.soft_wrap:
            self.refresh()
        elif first < end:
            self.refresh(Region(0, first - top, self.size.width, end - first))

    def _type_in(self, text: str) -> EditResult:
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        inserted = lines.replace("\n", self.document.newline)
        return self.replace(inserted, *self.selection, maintain_selection_offset=False)

    def action_paste(self) -> None:
        if not self.read_only:
            self.move_cursor(self._type_in(self.app.clipboard).end_location)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Only the cursor depends on the focus; the base class would compute the styles of ten components."""
        self.refresh()

    def use_vim(self) -> None:
        from tui_agent.ui.editor.vim import Vim

        self.vim = self.vim or Vim(
            self,
            lambda shown: self.post_message(self.VimShown(shown)),
            self._go_outside,
            self._run_typed if self.TYPES_COMMANDS else None,
        )

    def _run_typed(self, words: str) -> str:
        name, _, rest = words.partition(" ")
        if name not in self.TYPED_COMMANDS or (rest and name != "e"):
            return (
                f"There is no :{words[:40]}: there are {', '.join(f':{one}' for one in self.TYPED_COMMANDS)}"
            )
        self.post_message(self.VimCommand(name, rest.strip()))
        return ""

    def _go_outside(self, line: int) -> bool:
        return False

    @property
    def _pane(self) -> KeyedPane | None:
        return next((node for node in self.ancestors if isinstance(node, KeyedPane)), None)

    def _taken_by_vim(self, event: events.Key) -> bool:
        """Outside insert mode, only keys of the workspace reach the text."""
        vim = self.vim
        if vim is None:
            return False
        writes = vim.mode == "insert"
        if not writes and event.key == "enter" and (pane := self._pane) and event.key in pane.calls_by_key:
            return False
        if vim.take(event):
            event.prevent_default()
            event.stop()
            return True
        deletes = _EDITING.get(event.key, "").startswith("delete_")
        if not writes and (event.is_printable or deletes or event.key in ("escape", "tab")):
            event.prevent_default()
            if deletes or event.key == "tab":
                event.stop()
            return True
        return False

    @on(events.Paste)
    async def _insert_pasted(self, event: events.Paste) -> None:
        """Splits a long paste in a thread; later keys wait in the queue."""
        if self.read_only:
            return
        event.prevent_default()
        text, document = event.text, self.document
        if len(text) >= PASTED_LONG and isinstance(document, ExactDocument):
            text = await asyncio.to_thread(document.prepare, text, self.indent_width)
            if not self.is_attached or self.read_only:
                return
            result = self.replace(text, *self.selection, maintain_selection_offset=False)
        else:
            result = self._type_in(text)
        self.move_cursor(result.end_location)
        self.focus()

    @on(events.Key)
    async def _run_key(self, event: events.Key) -> None:
        """Except for printable keys, the pane's action precedes that of the text. A binding would run after
        bubbling, behind later characters of the same burst.
        """
        if event.is_printable:
            return
        if (pane := self._pane) and (call := pane.calls_by_key.get(event.key)):
            event.stop()
            event.prevent_default()
            await pane.run_action(call)
        elif call := _EDITING.get(event.key):
            event.stop()
            event.prevent_default()
            await self.run_action(call)
        elif event.key == "enter" and not self.read_only:
            event.stop()
            event.prevent_default()
            self._type_in("\n")

    def point(self, x: int, y: int) -> None:
        if self.selection.is_empty:
            left, top = self.scroll_offset
            place = Offset(x - self.gutter_width + left - self.gutter.left, y + top - self.gutter.top)
            self.move_cursor(self.wrapped_document.offset_to_location(place))

    def get_line(self, line_index: int) -> Text:
        return Text(clean(self.document.get_line(line_index)), end="", no_wrap=True)

    def _looks(self, row: int) -> tuple[object, ...]:
        return ()

    def render_line(self, y: int) -> Strip:
        """Cached: Textual's own method reads the whole text for each line."""
        document = self.document
        if document.line_count == 1 and not document.get_line(0):
            # Textual wraps the placeholder, which raises at a width of 0.
            return super().render_line(y) if self.content_size.width > 0 else Strip.blank(self.size.width)
        row = self.scroll_offset.y + y
        selection = self.selection
        if self.soft_wrap or row >= document.line_count:
            return drawn_line(self, y)
        text = (
            self.size,
            self.gutter_width,
            self.scroll_offset.x,
            document.get_line(row),
            self._looks(row),
            self.theme,
        )
        here = selection.end[0] == row
        bracket = self.matching_bracket_location
        key = (
            row,
            text,
            selection if selection.contains_line(row) else here,
            bracket,
            self.read_only,
            self.suggestion,
            self.has_focus if here else None,
        )
        line = self._drawn_lines.get(key)
        if line is None:
            plain = not selection.contains_line(row) and (bracket is None or bracket[0] != row)
            same = self._drawn_lines.get(text) if plain and self.show_line_numbers else None
            if same is not None:  # as another row, with another number
                number, *segments = same
                words = f"{row + self.line_number_start:>{self.gutter_width - 2}}  "
                line = Strip([Segment(words, number.style), *segments], same.cell_length)
            else:
                line = drawn_line(self, y)
                if plain and self.show_line_numbers:
                    self._drawn_lines[text] = line
            self._drawn_lines[key] = line
        return line


def _ground_of(style: Style | None) -> Style | None:
    return Style(bgcolor=style.bgcolor) if style is not None else None


class StoresDraft:
    """Saves a draft, unless it equals the initial text."""

    _session: Session | None = None
    _place = ""
    _before = ""

    def keep_at(self, session: Session, place: str, before: str = "") -> str:
        """Starts saving as `place`. Returns the saved draft, or `before`."""
        self._session, self._place, self._before = session, place, before
        return session.state.input.typed.get(place, before)

    def keep(self, text: str) -> None:
        if self._session is not None and self._place:
            self._session.chat.set_typed(self._place, "" if text == self._before else text)
            store_waiting(cast("Widget", self).app, self._session)

    def give_up(self) -> None:
        self.keep(self._before)
        self._place = ""


class KeptInput(StoresDraft, Input):
    @on(Input.Changed)
    def _keep_line(self, event: Input.Changed) -> None:
        if event.input is self:
            self.keep(event.value)

    def on_resize(self) -> None:
        """Shows the cursor: a line that gets its text before its size is scrolled to its beginning."""
        column = self.cursor_screen_offset.x - self.content_region.x + self.scroll_offset.x
        self.scroll_to_region(Region(column, 0, 1, 1), force=True, animate=False)


class KeptArea(StoresDraft, WritingArea):
    @on(TextArea.Changed)
    def _keep_text(self) -> None:
        self.keep(self.text)
