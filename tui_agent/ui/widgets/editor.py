"""One open file in an editor: lines with numbers, syntax colours, a cursor that the session knows."""

from __future__ import annotations

from pathlib import PurePosixPath

from textual.widgets.text_area import Selection, TextAreaTheme

from tui_agent.store.state import Buffer
from tui_agent.ui.widgets.highlights import LineHighlights
from tui_agent.ui.widgets.text_area import WritingArea

#: Files with more characters than this are shown without colours: the first parse takes longer than a frame.
COLOURED_TO = 400_000

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".jsx": "javascript",
    ".ts": "javascript",
    ".tsx": "javascript",
    ".json": "json",
    ".toml": "toml",
    ".md": "markdown",
    ".markdown": "markdown",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".html": "html",
    ".htm": "html",
    ".css": "css",
    ".tcss": "css",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".sh": "bash",
    ".bash": "bash",
    ".sql": "sql",
    ".xml": "xml",
    ".svg": "xml",
}


class Editor(WritingArea):
    """Holds the text of one buffer; the truth is the session's."""

    DEFAULT_CSS = """
    Editor { height: 1fr; padding: 0; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    Editor .text-area--cursor-line { background: $cursor-line; }
    Editor .text-area--cursor-gutter { background: $cursor-line; }
    """

    def __init__(self, buffer: Buffer, theme: TextAreaTheme) -> None:
        super().__init__(soft_wrap=False, tab_behavior="indent", show_line_numbers=True, compact=True)
        self._highlights = LineHighlights(self)
        self.path = buffer.path
        self.revision = -1
        #: The cursor and anchor as the session last had them.
        self.told = (buffer.cursor, buffer.anchor)
        self._first = theme

    def _build_highlight_map(self) -> None:
        """Textual would query the whole tree here; the lines ask for themselves when they are drawn."""
        self._line_cache.clear()
        self._highlights.clear()

    def on_mount(self) -> None:
        self.use_colours(self._first)

    def use_colours(self, theme: TextAreaTheme) -> None:
        self.register_theme(theme)
        self.theme = theme.name

    def take(self, buffer: Buffer) -> None:
        """Take the text of the buffer if it changed elsewhere, and the cursor if it was moved from elsewhere."""
        self.read_only = bool(buffer.note)
        if buffer.revision != self.revision:
            self._take_text(buffer)
        place = (buffer.cursor, buffer.anchor)
        if place != self.told:
            self.told = place
            self.selection = Selection(self._within(buffer.anchor), self._within(buffer.cursor))
            self.scroll_cursor_visible(center=True)

    def _take_text(self, buffer: Buffer) -> None:
        first = self.revision < 0
        self.revision = buffer.revision
        if first:
            small = len(buffer.text) <= COLOURED_TO
            self.text = buffer.text
            self.language = LANGUAGES.get(PurePosixPath(self.path).suffix.lower()) if small else None
            self.selection = Selection(self._within(buffer.anchor), self._within(buffer.cursor))
            self.call_after_refresh(self.scroll_cursor_visible, True)
        elif buffer.text != self.text:
            selection, scroll = self.selection, self.scroll_offset
            self.replace(buffer.text, (0, 0), self.document.end)
            self.selection = Selection(self._within(selection.start), self._within(selection.end))
            self.scroll_to(scroll.x, scroll.y, animate=False, immediate=True)

    def _within(self, place: tuple[int, int]) -> tuple[int, int]:
        row = min(place[0], self.document.line_count - 1)
        return row, min(place[1], len(self.document.get_line(row)))

    @property
    def place(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Cursor and anchor, as the session has them."""
        return self.selection.end, self.selection.start

    def find(self, words: str, forward: bool = True, here: bool = False) -> bool:
        """Select the next place where the words stand, whatever their case; `here` counts the one at the cursor."""
        start = self.selection.start if here or not forward else self.selection.end
        found = _next(self.document.lines, words.lower(), start, forward)
        if found:
            row, column = found
            self.selection = Selection((row, column), (row, column + len(words)))
            self.scroll_cursor_visible(center=True)
        return found is not None

    def go_to_line(self, number: int) -> None:
        self.selection = Selection.cursor(self._within((max(number, 1) - 1, 0)))
        self.scroll_cursor_visible(center=True)


def _next(lines: list[str], words: str, start: tuple[int, int], forward: bool) -> tuple[int, int] | None:
    """The next place of `words` from `start` on, around the end if need be."""
    if not words:
        return None
    row, column = start
    count = len(lines)
    for step in range(count + 1):
        at = (row + step if forward else row - step) % count
        line = lines[at].lower()
        if forward:
            found = line.find(words, column if step == 0 else 0)
        else:
            found = line.rfind(words, 0, column + len(words) - 1 if step == 0 else len(line))
        if found >= 0:
            return at, found
    return None
