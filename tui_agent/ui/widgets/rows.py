"""A list of rows with a cursor, drawn line by line: as long as it likes, at the cost of what is visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip

from tui_agent.ui.keys.views import view_bindings
from tui_agent.ui.sink import one_line
from tui_agent.ui.widgets.lines import Line, Lined, Piece, draw, wrap

_BAR = "▌"
#: A text of which fewer cells would fit beside the right end has the line to itself.
_LEAST_BESIDE = 8


class Row(NamedTuple):
    """One row: `key` names it for the cursor, empty for a row that the cursor passes over.

    A long list gives functions for its lines: they are called for those that are seen.
    With `wraps` the text of `line.left` is broken over as many lines as it needs, indented by `hang`.
    With `marked` the first piece is a mark, which the mouse can press; with both only the last piece is broken, and
    `line.right` stays on the first line.
    """

    key: str
    line: Line | Callable[[], Line]
    wraps: bool = False
    hang: int = 0
    marked: bool = False


class Rows(Lined):
    """Shows rows, keeps a cursor on one of them, and says when it moves or when one is chosen."""

    BINDINGS = view_bindings("list")

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: tuple[Row, ...] = ()
        self._lines: list[tuple[int, Line | Callable[[], Line]]] = []
        self._cursor = ""

    @property
    def cursor(self) -> str:
        """The key of the row under the cursor; empty when no row can have it."""
        return self._cursor

    def set_rows(self, rows: Sequence[Row], cursor: str | None = None) -> None:
        """Show these rows. The cursor goes to `cursor`, stays on its key, or moves to the nearest row left."""
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
        """Put the cursor on a row, show it, and say so."""
        if key == self._cursor or key not in self._keys():
            return
        self._cursor = key
        self.refresh()
        self._reveal()
        self.post_message(self.Moved(self, key))

    def keep_in_view(self) -> None:
        """Show the row of the cursor again once the list has another height."""
        self.call_after_refresh(self._reveal)

    def row_at(self, y: int) -> Row | None:
        """The row drawn at line `y` of the content."""
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
    """The last piece over as many lines as it needs, under itself and beside what is at the right end."""
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
