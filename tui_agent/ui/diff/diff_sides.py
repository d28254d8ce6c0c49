"""A change side by side: the base on the left, the new text on the right, each line beside what it became."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from tui_agent.ui.diff.diff_lines import DiffLines
from tui_agent.ui.diff.diff_view import DiffView

#: Indices of the left and right line in `DiffLines.lines`; `None` for an empty side.
Pair = tuple[int | None, int | None]


def pairs(shown: DiffLines) -> Iterator[Pair]:
    at = 0
    while at < len(shown.lines):
        hunk = shown.lines[at].hunk
        if hunk < 0:
            yield at, at
            at += 1
            continue
        end = shown.lasts[hunk] + 1
        numbers = range(at, end)
        removed = [number for number in numbers if shown.lines[number].kind == "removed"]
        added = [number for number in numbers if shown.lines[number].kind == "added"]
        yield from zip_longest(removed, added)
        at = end


class DiffSides(DiffView):
    """The same diff, hunks and marks as `DiffView`, in two columns."""

    @property
    def two_numbers(self) -> bool:
        return False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._pairs: list[Pair] = []
        #: Index of each line's pair.
        self._pair_of: dict[int, int] = {}

    def render_line(self, y: int) -> Strip:
        width = self.across
        if self.shown is None:
            return self._sentence(y, width)
        place = self._at(y + self.scroll_offset.y)
        if place is None:
            return Strip.blank(width, self.ink(""))
        pair, part = place
        left, right = self._pairs[pair]
        if left is not None and self.shown.lines[left].kind == "fold":
            return self._fold(self.shown.lines[left], width)
        middle = Strip([Segment("│", self.ink("faint"))])
        return Strip.join([self._half(left, part, before=True), middle, self._half(right, part)]).crop_extend(
            0, width, self.ink("")
        )

    def _half(self, index: int | None, part: int, *, before: bool = False) -> Strip:
        assert self.shown is not None
        size = self._room + self.shown.digits + 5
        if index is None:
            return Strip([Segment(" " * size, self.ink(""))])
        line = self.shown.lines[index]
        breaks = self.shown.breaks(line, self._room)
        if part >= len(breaks) - 1:
            return Strip([Segment(" " * size, self._ground(line))])
        body = self._body(line, index).crop(*breaks[part : part + 2])
        return Strip.join(
            [
                self._gutter(line, index, part, before=before),
                body.crop_extend(0, self._room, self._ground(line)),
            ]
        )

    def _line_at(self, y: int) -> int | None:
        place = self._at(y)
        return None if place is None else next(n for n in self._pairs[place[0]] if n is not None)

    def _rows_of(self, first: int, last: int) -> tuple[int, int]:
        start = self._pair_of[first]
        end = max(self._pair_of[first], *(self._pair_of[number] for number in range(first, last + 1)))
        return self._tops[start], self._tops[end + 1] - 1

    def _lay_out(self) -> None:
        digits = self.shown.digits if self.shown else 1
        room = max((self.across - 1) // 2 - digits - 5, 1)
        if self.shown is self._laid_out and room == self._room:
            return
        self._laid_out, self._room = self.shown, room
        self._pairs = list(pairs(self.shown)) if self.shown else []
        self._pair_of = {
            number: at for at, pair in enumerate(self._pairs) for number in pair if number is not None
        }
        heights = self.shown.tops(room) if self.shown else [0]
        self._tops = [0]
        for pair in self._pairs:
            self._tops.append(
                self._tops[-1] + max(heights[n + 1] - heights[n] for n in pair if n is not None)
            )
        self.virtual_size = Size(0, self._tops[-1])
