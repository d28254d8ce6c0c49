"""Unwrapped lines of Markdown and their layout at a given width: text, code, table rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from msgspec import Struct
from rich.cells import cell_len, chop_cells
from textual.content import Content

#: Prefix of continued code lines.
GOES_ON = "↪ "
#: Cells on each side of code, in its background colour.
MARGIN = 1
#: Most cells in a row of prose, because longer rows are hard to read.
MEASURE = 120
TAB = 8
EDGE = " │ "
#: Minimum width of a column, and the longest word that can widen it.
NARROWEST, LONGEST_WORD = 3, 30
_WORD = re.compile(r"\s*\S+\s*")


class Fragment(NamedTuple):
    """Part of a row; `at` is its offset in the line's text, or -1."""

    content: Content
    at: int = -1


class DrawnRow(NamedTuple):
    """`head` is the language of the code block that begins there."""

    pieces: Sequence[Fragment]
    code: bool = False
    head: str = ""


class TextLine(Struct, frozen=True, gc=False):
    """A line before wrapping. Its first `marks` characters are bullets and bars, which `hang` replaces in later
    rows. `head` is the language above a code block, not part of the text. Rows of `prose` have at most `MEASURE`
    cells."""

    content: Content
    code: bool = False
    marks: int = 0
    hang: str = ""
    head: str = ""
    prose: bool = False

    @property
    def plain(self) -> str:
        return self.content.plain

    def height(self, width: int) -> int:
        plain = self.content.plain
        room = width - 2 * MARGIN if self.code else min(width, MEASURE) if self.prose else width
        if len(plain) <= (room if plain.isascii() else room // 2) and "\t" not in plain:
            return 1  # a character has at most two cells
        return len(self._cuts(width)) + 1

    def rows(self, width: int, content: Content) -> Iterator[DrawnRow]:
        """Yields the rows of `content`, which has the line's text and possibly other styles."""
        marks, ends = self.marks, [self.marks, *self._cuts(width), len(content)]
        hang = Content.styled(self.hang if self._hangs(width) else "", "$faint")
        for number, (start, end) in enumerate(pairwise(ends)):
            piece = content[start:end]
            if end < len(content) and not self.code:
                piece = piece.rstrip()
            if not number:
                yield DrawnRow(
                    (Fragment(content[:marks], 0), Fragment(piece, start))
                    if marks
                    else (Fragment(piece, 0),),
                    self.code,
                    self.head,
                )
            elif self.code:
                yield DrawnRow(
                    (Fragment(hang), Fragment(Content.styled(GOES_ON, "$faint")), Fragment(piece, start)),
                    True,
                )
            else:
                yield DrawnRow((Fragment(hang), Fragment(piece, start)))

    def _hangs(self, width: int) -> bool:
        return 3 * len(self.hang) <= width

    def _cuts(self, width: int) -> list[int]:
        body = self.content.plain[self.marks :]
        if not self.code:
            width = min(width, MEASURE) if self.prose else width
            room = max(width - (cell_len(self.hang) if self._hangs(width) else 0), 1)
            return [self.marks + at for at in _divided(body, room)]
        room = max(width - 2 * MARGIN - (cell_len(self.hang) if self._hangs(width) else 0), 4)
        if cell_len(body.expandtabs(TAB)) <= room:
            return []
        first = len(next(_chopped(body, room)))
        parts = [body[:first], *_chopped(body[first:], room - len(GOES_ON))]
        return list(accumulate(map(len, parts[:-1]), initial=self.marks))[1:]


class Table(Struct, frozen=True):
    """Name, widest cell and longest word of each column, and its alignment: `left`, `center` or `right`."""

    names: tuple[str, ...]
    widest: tuple[int, ...]
    words: tuple[int, ...]
    sides: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rows: Sequence[Sequence[Content]], before: Table | None = None, sides: tuple[str, ...] = ()
    ) -> Table:
        names = before.names if before else tuple(cell.plain for cell in rows[0])
        widest = list(before.widest) if before else [1] * len(names)
        words = list(before.words) if before else [1] * len(names)
        for row in rows:
            for at, cell in enumerate(row[: len(names)]):
                size = cell_len(cell.plain)
                if size > widest[at]:
                    widest[at] = size
                if size > words[at]:
                    words[at] = max(words[at], *(cell_len(word) for word in cell.plain.split() or [""]))
        found = cls(names, tuple(widest), tuple(words), before.sides if before else sides)
        return before if before == found and before is not None else found

    def columns(self, width: int) -> list[int] | None:
        """Widths that keep words whole, or `None` if the columns do not fit."""
        room = width - len(EDGE) * (len(self.names) - 1)
        if sum(self.widest) <= room:
            return list(self.widest)
        least = [
            min(widest, max(NARROWEST, min(word, LONGEST_WORD)))
            for widest, word in zip(self.widest, self.words, strict=True)
        ]
        spare = room - sum(least)
        if spare < 0:
            return None
        wanted = [widest - cells for widest, cells in zip(self.widest, least, strict=True)]
        total = sum(wanted)
        return [cells + want * spare // total for cells, want in zip(least, wanted, strict=True)]


class TableLine(Struct, frozen=True, gc=False):
    """Cells side by side, or below each other with column names if the table is too wide."""

    table: Table
    cells: tuple[Content, ...]
    first: bool = False
    hang: str = ""

    code = False

    @property
    def content(self) -> Content:
        joined = Content(EDGE).join(self.cells)
        return Content(self.hang) + joined if self.hang else joined

    @property
    def plain(self) -> str:
        return self.hang + EDGE.join(cell.plain for cell in self.cells)

    def height(self, width: int) -> int:
        room = width - cell_len(self.hang)
        columns = self.table.columns(room)
        if columns is None:
            return sum(1 for _ in self._card(room, self.content))
        tall = (
            max(len(_breaks(cell.plain, cells)) for cell, cells in zip(self.cells, columns, strict=False)) + 1
        )
        return tall + 1 if self.first else tall

    def rows(self, width: int, content: Content) -> Iterator[DrawnRow]:
        hang = Fragment(Content.styled(self.hang, "$faint"))
        room = width - cell_len(self.hang)
        columns = self.table.columns(room)
        if columns is None:
            yield from (DrawnRow((hang, *row.pieces)) for row in self._card(room, content))
            return
        wrapped = []
        for start, cells in zip(self._starts(), columns, strict=False):
            end = start + len(self.cells[len(wrapped)])
            cell = content[start:end]
            ends = [0, *_breaks(cell.plain, cells), len(cell)]
            wrapped.append(
                [Fragment(cell[left:right].rstrip(), start + left) for left, right in pairwise(ends)]
            )
        edge = Fragment(Content.styled(EDGE, "$faint"))
        for number in range(max(map(len, wrapped))):
            pieces = [hang]
            for at, (parts, cells) in enumerate(zip(wrapped, columns, strict=False)):
                pieces += [edge] if at else []
                piece = parts[number] if number < len(parts) else Fragment(Content())
                spare = max(cells - cell_len(piece.content.plain), 0)
                side = self.table.sides[at] if at < len(self.table.sides) else ""
                before = {"right": spare, "center": spare // 2}.get(side, 0)
                pieces += [Fragment(Content(" " * before))] if before else []
                pieces.append(piece)
                if at < len(wrapped) - 1:
                    pieces.append(Fragment(Content(" " * (spare - before))))
            yield DrawnRow(pieces)
        if self.first:
            yield DrawnRow(
                (hang, Fragment(Content.styled("─┼─".join("─" * cells for cells in columns), "$faint")))
            )

    def _starts(self) -> list[int]:
        starts, at = [], len(self.hang)
        for cell in self.cells:
            starts.append(at)
            at += len(cell) + len(EDGE)
        return starts

    def _card(self, width: int, content: Content) -> Iterator[DrawnRow]:
        """Cells below each other; only a rule for the header row."""
        if self.first:
            yield DrawnRow((Fragment(Content.styled("─" * min(width, 24), "$faint")),))
            return
        for start, cell, name in zip(self._starts(), self.cells, self.table.names, strict=False):
            label = Content.styled(f"{name}: " if name else "", "bold")
            text = label + content[start : start + len(cell)]
            ends = [0, *_divided(text.plain, max(width, 1)), len(text)]
            for left, right in pairwise(ends):
                before = min(max(len(label) - left, 0), right - left)
                part = text[left:right]
                yield DrawnRow(
                    (
                        Fragment(part[:before]),
                        Fragment(part[before:].rstrip(), start + max(left - len(label), 0)),
                    )
                )
        yield DrawnRow((Fragment(Content.styled("─" * min(width, 24), "$faint")),))


AnyLine = TextLine | TableLine


def _chopped(text: str, room: int) -> Iterator[str]:
    if "\t" not in text:
        yield from chop_cells(text, room)
        return
    start = cells = 0
    for at, letter in enumerate(text):
        size = TAB - cells % TAB if letter == "\t" else cell_len(letter)
        if cells + size > room and at > start:
            yield text[start:at]
            start, cells = at, 0
        cells += size
    yield text[start:]


def _divided(text: str, width: int) -> list[int]:
    """The start of each row after the first. Words stay whole if they fit, as in Rich."""
    starts: list[int] = []
    used = 0
    for word in _WORD.finditer(text):
        at, cells = word.start(), cell_len(word[0].rstrip())
        if cells <= width - used:
            used += cell_len(word[0])
        elif cells > width:
            for piece in chop_cells(word[0], width):
                starts += [at] if at else []
                at += len(piece)
                used = cell_len(piece)
        elif used and at:
            starts.append(at)
            used = cell_len(word[0])
    return starts


def _breaks(plain: str, cells: int) -> list[int]:
    if len(plain) <= cells and plain.isascii():
        return []
    return _divided(plain, max(cells, 1))
