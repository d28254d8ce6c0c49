"""Views of lines: text fitted to cells, state symbols, rows with a cursor, and key hints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_agent.ui.host import keys_of
from tui_agent.ui.keys.keymap import view_bindings
from tui_agent.ui.safe_text import one_line

#: Style of a theme role (`muted`, `added`, …; "" is plain).
Inks = Callable[[str], Style]
ELLIPSIS = "…"
#: Minimum cells of a shrinkable piece.
_SHORTEST = 6
_SPACES = re.compile(r"( +)")


class Piece(NamedTuple):
    """`gives` is the end cut first on narrow lines; `all` marks a piece shown only in spare cells."""

    text: str
    ink: str = ""
    gives: Literal["", "start", "end", "all"] = ""


class Line(NamedTuple):
    """Pieces from the left, and the longest variant of `right` that fits."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...] = ()


def fit(text: str, width: int, gives: str = "end") -> str:
    """Shortens to `width` cells, with an ellipsis at the cut end."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[: max(width, 0)]
    if gives != "start":
        return set_cell_size(text, width - 1).rstrip() + ELLIPSIS
    spans, left = split_graphemes(text)
    for _, end, size in spans:
        left -= size
        if left <= width - 1:
            return ELLIPSIS + text[end:]
    return ELLIPSIS


def column(text: str, width: int, gives: str = "end") -> str:
    """Exactly `width` cells, cut or padded."""
    if len(text) <= width and text.isascii() and text.isprintable():
        return text.ljust(width)
    return set_cell_size(fit(one_line(text), width, gives), width)


def draw(line: Line, width: int, inks: Inks, base: Style | None = None) -> Strip:
    """Exactly `width` cells; `base` is the background of all pieces, such as the cursor's."""
    base = base or Style.null()
    left = [piece._replace(text=one_line(piece.text)) for piece in line.left]
    needed = sum(cell_len(piece.text) for piece in left if piece.gives != "all")
    choices = [piece._replace(text=one_line(piece.text)) for piece in line.right]
    shortest = choices[-1] if choices and cell_len(choices[-1].text) + 1 <= width // 2 else Piece("")
    beside = (piece for piece in choices if needed + 1 + cell_len(piece.text) <= width)
    right = next(beside, shortest)
    room = width - cell_len(right.text) - 1 if right.text else width
    free = room - needed if room - needed >= _SHORTEST * 2 else 0  # shorter text is not readable
    left = [
        piece._replace(text=fit(piece.text, free) if free else "") if piece.gives == "all" else piece
        for piece in left
    ]
    segments = [Segment(piece.text, inks(piece.ink) + base) for piece in _fitted(left, room)]
    used = sum(segment.cell_length for segment in segments)
    segments.append(Segment(" " * max(width - used - cell_len(right.text), 0), base))
    if right.text:
        segments.append(Segment(right.text, inks(right.ink) + base))
    return Strip(segments).crop(0, width)


def wrap(text: str, width: int, hang: int = 0) -> list[str]:
    """Breaks at spaces into lines of `width` cells, with a hanging indent of `hang` cells."""
    hang = min(hang, width // 2)
    lines = [""]
    for number, paragraph in enumerate(text.split("\n")):
        if number:
            lines.append(" " * hang)
        for word in _words(one_line(paragraph), max(width - hang, 2)):
            line = lines[-1]
            if cell_len(line) + cell_len(word) <= width:
                lines[-1] = line + word
            elif word.isspace():
                lines.append(" " * hang)
            else:
                lines.append(" " * hang + word)
    return [line.rstrip() for line in lines]


def _words(text: str, width: int) -> list[str]:
    parts = [part for part in _SPACES.split(text) if part]
    return [
        piece for part in parts for piece in (chop_cells(part, width) if len(part) * 2 > width else [part])
    ]


def _fitted(pieces: list[Piece], room: int) -> list[Piece]:
    """The widest shrinkable pieces shrink most."""
    over = sum(cell_len(piece.text) for piece in pieces) - room
    for index, piece in sorted(enumerate(pieces), key=lambda item: -cell_len(item[1].text)):
        if over <= 0:
            break
        if not piece.gives:
            continue
        size = cell_len(piece.text)
        shorter = fit(piece.text, max(size - over, min(size, _SHORTEST)), piece.gives)
        pieces[index] = piece._replace(text=shorter)
        over -= size - cell_len(shorter)
    if over <= 0:
        return pieces
    kept: list[Piece] = []
    for piece in pieces:
        kept.append(piece._replace(text=fit(piece.text, room)))
        room -= cell_len(piece.text)
        if room < 0:
            break
    return kept


ACTIONS = {
    "waiting": Piece("·", "muted"),
    "looking": Piece("●", "running"),
    "loaded": Piece("✓", "done"),
    "asking": Piece("?", "warning"),
    "skipped": Piece("–", "muted"),
    "create": Piece("+", "added"),
    "failed": Piece("✗", "failed"),
}
#: A miss is part of the search, not a failure.
ATTEMPTS = {
    "looking": Piece("●", "running"),
    "hit": Piece("✓", "done"),
    "miss": Piece("✗", "muted"),
    "too_broad": Piece("✗", "warning"),
    "invalid": Piece("✗", "warning"),
    "timeout": Piece("✗", "warning"),
}
UNTRIED = Piece("·", "faint")
CHANGES = {
    "pending": Piece("·", "accent"),
    "merged": Piece("·", "accent"),
    "conflict": Piece("!", "failed"),
    "applied": Piece("✓", "done"),
    "skipped": Piece("–", "muted"),
    "undone": Piece("–", "muted"),
    "failed": Piece("✗", "failed"),
}
TASKS = {
    "pending": Piece("○", "muted"),
    "ready": Piece("○", "accent"),
    "running": Piece("●", "running"),
    "completed": Piece("✓", "done"),
    "failed": Piece("✗", "failed"),
    "skipped": Piece("–", "muted"),
    "cancelled": Piece("×", "muted"),
}
DONE = Piece("✓", "done")
OPEN = Piece("○")


_INKS = (
    "muted",
    "faint",
    "accent",
    "added",
    "removed",
    "stale",
    "running",
    "done",
    "failed",
    "warning",
    "error",
)


class LineView(ScrollView, can_focus=True):
    COMPONENT_CLASSES = {f"ink--{name}" for name in _INKS} | {
        "ink--strong",
        "ground--cursor",
        "ground--resting",
    }
    DEFAULT_CSS = (
        "LineView { scrollbar-size: 0 1; scrollbar-gutter: stable; overflow-x: hidden; background: transparent; }\n"
        + "\n".join(f"LineView > .ink--{name} {{ color: ${name}; }}" for name in _INKS)
        + """
    LineView > .ink--strong { text-style: bold; }
    LineView > .ground--cursor { background: $accent-surface; }
    LineView > .ground--resting { background: $cursor-line; }
    """
    )

    class Moved(Message):
        """The cursor is at this key; in the graph, its move is requested."""

        def __init__(self, view: LineView, key: str) -> None:
            super().__init__()
            self.view = view
            self.key = key

        @property
        def control(self) -> LineView:
            return self.view

    class Chosen(Moved):
        pass

    class Marked(Moved):
        pass

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._plain = Style.null()
        self._inks: dict[str, Style] = {}

    @property
    def across(self) -> int:
        return self.scrollable_content_region.width

    @property
    def down(self) -> int:
        return self.scrollable_content_region.height

    @property
    def is_flat(self) -> bool:
        """Whether the theme does not distinguish changes by their background."""
        colours = self.app.theme_variables
        return colours.get("added-surface") == colours.get("surface")

    def ink(self, name: str) -> Style:
        style = self._inks.get(name)
        if style is None:
            full = self.get_component_rich_style(f"ink--{name}") if name else self._plain
            style = Style(color=full.color, bold=full.bold, italic=full.italic, underline=full.underline)
            self._inks[name] = style
        return style

    def ground(self, name: str) -> Style:
        style = self._inks.get(f"ground {name}")
        if style is None:
            full = self.get_component_rich_style(f"ground--{name}")
            style = Style(
                bgcolor=full.bgcolor, bold=full.bold, underline=full.underline, reverse=full.reverse
            )
            self._inks[f"ground {name}"] = style
        return style

    def scroll_to(self, x: float | None = None, y: float | None = None, **how: Any) -> None:
        """No animation: each frame would delay key handling."""
        how["animate"] = False
        super().scroll_to(x, y, **how)

    def keep_in_view(self) -> None:
        """Scrolls to the current line after the next layout."""
        self.call_after_refresh(self._reveal)

    def _reveal(self) -> None:
        pass

    def forget_drawn(self) -> None:
        """Called on a theme change: subclasses drop cached lines."""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._inks.clear()
        self.forget_drawn()

    def render_lines(self, crop: Region) -> list[Strip]:
        # The focused pane's background can differ, so the blend is recomputed.
        plain = self.rich_style
        if plain != self._plain:
            self._plain = plain
            self.notify_style_update()
        ground = Style(color=plain.color, bgcolor=plain.bgcolor)
        return [strip.apply_style(ground) for strip in super().render_lines(crop)]


#: Marks the cursor's row.
BAR = "▌"
#: Minimum cells beside the right end of a line; narrower text gets the whole line.
_LEAST_BESIDE = 8


class Row(NamedTuple):
    """The cursor skips rows without a `key`. A `line` function is called only for visible rows. `wraps`
    wraps the text of `line.left`, indented by `hang`; `marked` makes the first piece a clickable mark.
    With both only the last piece wraps.
    """

    key: str
    line: Line | Callable[[], Line]
    wraps: bool = False
    hang: int = 0
    marked: bool = False


def note(words: str, ink: str = "muted", hang: int = 0) -> Row:
    """A sentence that the cursor skips."""
    return Row("", Line((Piece(words, ink),)), wraps=True, hang=hang)


class Rows(LineView):
    BINDINGS = view_bindings("list")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self._lines: list[tuple[int, Line | Callable[[], Line]]] = []
        self.cursor = ""
        self._rests = True

    def set_rows(self, rows: Sequence[Row], cursor: str | None = None) -> None:
        """Moves the cursor to `cursor`, its former key, or the nearest row. Until it is first moved or the
        view focused, it stays on the first row.
        """
        before = self._position()
        self.rows = tuple(rows)
        keys = self._keys()
        wanted = self.cursor if cursor is None else cursor
        self._rests = self._rests and cursor is None
        if wanted not in keys or self._rests:
            wanted = keys[0 if self._rests else min(before, len(keys) - 1)] if keys else ""
        moved = wanted != self.cursor and not self._rests
        self.cursor = wanted
        self._lay_out()
        if moved:
            self._reveal()

    def move_to(self, key: str) -> None:
        if key == self.cursor or key not in self._keys():
            return
        self.cursor, self._rests = key, False
        self.refresh()
        self._reveal()
        self.post_message(self.Moved(self, key))

    def row_at(self, y: int) -> Row | None:
        if not 0 <= y < len(self._lines):
            return None
        return self.rows[self._lines[y][0]]

    def action_cursor(self, step: int) -> None:
        keys = self._keys()
        if keys:
            self.move_to(keys[max(0, min(self._position() + step, len(keys) - 1))])
        else:
            self.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        self.action_cursor(step * max(self.down - 1, 1))

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
        current = bool(self.cursor) and self.rows[index].key == self.cursor
        if not current:
            return draw(Line((Piece(" "), *line.left), line.right), width, self.ink)
        bar = Piece(BAR, "accent" if self.has_focus else "faint")
        ground = self.ground("cursor" if self.has_focus else "resting")
        return draw(Line((bar, *line.left), line.right), width, self.ink, ground)

    def on_resize(self) -> None:
        self._lay_out()

    def on_focus(self) -> None:
        self._rests = False
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
        elif row.key == self.cursor:
            self.post_message(self.Chosen(self, self.cursor))
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
        return keys.index(self.cursor) if self.cursor in keys else 0

    def _lay_out(self) -> None:
        width = max(self.across - 1, 8)
        self._lines = [(index, line) for index, row in enumerate(self.rows) for line in _lines_of(row, width)]
        self.virtual_size = Size(0, len(self._lines))
        self.refresh()

    def _reveal(self) -> None:
        ys = [y for y, (index, _) in enumerate(self._lines) if self.rows[index].key == self.cursor]
        if ys:
            self.scroll_to_region(Region(0, ys[0], 1, len(ys)), animate=False, force=True)


def _lines_of(row: Row, width: int) -> Sequence[Line | Callable[[], Line]]:
    if not row.wraps or not isinstance(row.line, Line):
        return [row.line]
    line = row.line
    *marks, text = line.left
    if not row.marked:
        words = "".join(piece.text for piece in line.left)
        return [Line((Piece(part, text.ink),)) for part in wrap(words, width, row.hang)]
    # Only the last piece wraps, aligned with itself and beside the right end.
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


class Hint(NamedTuple):
    """The id is empty for plain text."""

    action: str
    text: str


class HintLine(LineView, can_focus=False):
    """`a apply  s skip` with the current keys; a click runs the action."""

    DEFAULT_CSS = "HintLine { height: 1; overflow: hidden; scrollbar-gutter: auto; }"

    class Pressed(Message):
        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words: tuple[Hint, ...] = ()

    def set_words(self, words: Sequence[Hint]) -> None:
        if tuple(words) != self._words:
            self._words = tuple(words)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        segments = [Segment(" ", self.ink(""))]
        for hint, key, _ in self._placed() if y == 0 else ():
            if key:
                segments.append(Segment(f"{key} ", self.ink("accent")))
            segments.append(Segment(f"{hint.text}  ", self.ink("muted")))
        return Strip(segments).crop_extend(0, self.across, self.ink(""))

    def on_click(self, event: events.Click) -> None:
        action = next((hint.action for hint, _, end in self._placed() if event.x < end), "")
        if action:
            event.stop()
            self.post_message(self.Pressed(action))

    def _placed(self) -> Iterator[tuple[Hint, str, int]]:
        at, width, keys = 1, self.across, keys_of(self)
        for hint in self._words:
            key = keys.shown(hint.action)
            size = cell_len(key) + bool(key) + cell_len(hint.text) + 2
            if at + size - 2 > width:
                break
            at += size
            yield hint, key, at - 1
