"""List of rows with a cursor; only visible rows are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip

from tui_agent.ui.keys.views import view_bindings
from tui_agent.ui.safe_text import one_line
from tui_agent.ui.widgets.line_view import Line, LineView, Piece, draw, wrap

_BAR = "▌"
#: Minimum width of text beside the right end of a line, in cells; narrower text gets the whole line.
_LEAST_BESIDE = 8


class Row(NamedTuple):
    """A row; the cursor skips rows without a `key`.

    `line` may be a function, called only for visible rows. `wraps` wraps the text of `line.left`, indented
    by `hang`. `marked` declares the first piece a clickable mark. With both only the last piece wraps, and
    `line.right` stays on the first line.
    """

    key: str
    line: Line | Callable[[], Line]
    wraps: bool = False
    hang: int = 0
    marked: bool = False


class Rows(LineView):
    """List widget with a cursor; posts cursor movements and choices."""

    BINDINGS = view_bindings("list")

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: tuple[Row, ...] = ()
        self._lines: list[tuple[int, Line | Callable[[], Line]]] = []
        self._cursor = ""

    @property
    def cursor(self) -> str:
        """Key of the current row, or "" if no row has a key."""
        return self._cursor

    def set_rows(self, rows: Sequence[Row], cursor: str | None = None) -> None:
        """Shows `rows`. The cursor moves to `cursor`, or stays on its key, or moves to the nearest row."""
        before = self._position()
        self.rows = tuple(rows)
        keys = self._keys()
        wanted = self._cursor if cursor is None else cursor
        if wanted not in keys:
            wanted = keys[min(before, len(keys) - 1)] if keys else ""
        moved = wanted != self._cursor
        self._cursor = wanted
        self._lay_out()
        if moved:
            self._reveal()

    def move_to(self, key: str) -> None:
        if key == self._cursor or key not in self._keys():
            return
        self._cursor = key
        self.refresh()
        self._reveal()
        self.post_message(self.Moved(self, key))

    def keep_in_view(self) -> None:
        """Scrolls to the cursor after the next layout."""
        self.call_after_refresh(self._reveal)

    def row_at(self, y: int) -> Row | None:
        if not 0 <= y < len(self._lines):
            return None
        return self.rows[self._lines[y][0]]

    def action_cursor(self, step: int) -> None:
        self._move_by(step)

    def action_page(self, step: int) -> None:
        self._move_by(step * max(self.down - 1, 1))

    def action_edge(self, index: int) -> None:
        keys = self._keys()
        if keys:
            self.move_to(keys[index])
        if index == 0:
            self.scroll_to(y=0, animate=False)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width = self.across
        if y >= len(self._lines):
            return Strip.blank(width, self.ink(""))
        index, line = self._lines[y]
        if not isinstance(line, Line):
            line = line()
        current = bool(self._cursor) and self.rows[index].key == self._cursor
        if not current:
            return draw(Line((Piece(" "), *line.left), line.right), width, self.ink)
        bar = Piece(_BAR, "accent" if self.has_focus else "faint")
        ground = self.ground("cursor" if self.has_focus else "resting")
        return draw(Line((bar, *line.left), line.right), width, self.ink, ground)

    def on_resize(self) -> None:
        self._lay_out()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        row = self.row_at(event.y + self.scroll_offset.y)
        if row is None or not row.key:
            return
        event.stop()
        if row.marked and event.x <= 1:
            self.post_message(self.Marked(self, row.key))
        elif row.key == self._cursor:
            self.post_message(self.Chosen(self, self._cursor))
        else:
            self.move_to(row.key)

    def point(self, x: int, y: int) -> None:
        row = self.row_at(y + self.scroll_offset.y)
        if row is not None:
            self.move_to(row.key)

    def _keys(self) -> list[str]:
        return [row.key for row in self.rows if row.key]

    def _position(self) -> int:
        keys = self._keys()
        return keys.index(self._cursor) if self._cursor in keys else 0

    def _move_by(self, step: int) -> None:
        keys = self._keys()
        if not keys:
            self.scroll_relative(y=step, animate=False)
            return
        self.move_to(keys[max(0, min(self._position() + step, len(keys) - 1))])

    def _lay_out(self) -> None:
        width = max(self.across - 1, 8)
        self._lines = [(index, line) for index, row in enumerate(self.rows) for line in _lines_of(row, width)]
        self.virtual_size = Size(0, len(self._lines))
        self.refresh()

    def _reveal(self) -> None:
        ys = [y for y, (index, _) in enumerate(self._lines) if self.rows[index].key == self._cursor]
        if ys:
            self.scroll_to_region(Region(0, ys[0], 1, len(ys)), animate=False, force=True)


def _lines_of(row: Row, width: int) -> Sequence[Line | Callable[[], Line]]:
    if not row.wraps or not isinstance(row.line, Line):
        return [row.line]
    if row.marked:
        return _marked(row.line, width)
    ink = row.line.left[-1].ink
    return [
        Line((Piece(text, ink),)) for text in wrap("".join(p.text for p in row.line.left), width, row.hang)
    ]


def _marked(line: Line, width: int) -> list[Line]:
    """Wraps only the last piece, aligned with itself and beside the right end."""
    *marks, text = line.left
    indent = sum(cell_len(piece.text) for piece in marks)
    beside = 1 + max((cell_len(piece.text) for piece in line.right), default=-1)
    room = width - indent
    if room - beside < _LEAST_BESIDE:
        beside = 0
    first = wrap(text.text, room - beside)[0]
    left = one_line(text.text)[len(first) :].lstrip()
    rest = wrap(left, room) if left else []
    under = Piece(" " * indent)
    return [
        Line((*marks, Piece(first, text.ink)), line.right if beside else ()),
        *(Line((under, Piece(words, text.ink))) for words in rest),
    ]
