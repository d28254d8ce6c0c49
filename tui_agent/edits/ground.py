"""A file's text, prepared once for many searches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate, count
from operator import add

from msgspec import Struct

from tui_agent.edits import indent
from tui_agent.edits.lines import BOM, plain
from tui_agent.edits.words import LOOK_ALIKES, key, plain_marks

Form = Callable[[str], str]
#: More places of one text are not looked for.
MOST_PLACES = 1000
#: So many lines tell how wide one level of indentation is.
MOST_INDENTED = 500


def bare_end(line: str) -> str:
    return line.rstrip(" \t\f\v")


def look_alike(line: str) -> str:
    return bare_end(plain_marks(line))


class Span(Struct, frozen=True):
    """A place: offsets into `Ground.text`, and the line (from 0) on which it begins."""

    start: int
    end: int
    line: int


class Formed:
    """The text with each line in one form, in which offsets can be carried back to the text itself."""

    def __init__(self, ground: Ground, form: Form) -> None:
        self._ground = ground
        self.lines = [form(line) for line in ground.lines]
        self.text = "\n".join(self.lines) + "\n"
        self._starts = _starts(self.lines)

    def spans(self, wanted: str, at_line_end: bool, at_line_start: bool) -> list[Span]:
        """Where `wanted` stands; if need be only where the line ends with it, or nothing but space is before it."""
        found = []
        for start in every(self.text, wanted):
            first, column = self._place(start)
            last, end_column = self._place(start + len(wanted))
            ends = end_column == len(self.lines[last]) if last < len(self.lines) else True
            if at_line_end and not (ends or end_column == 0):
                continue
            if at_line_start and self.lines[first][:column].strip():
                continue
            found.append(self._span(first, column, last, end_column, ends))
        return found

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]

    def _span(self, first: int, column: int, last: int, end_column: int, ends: bool) -> Span:
        ground = self._ground
        start = ground.starts[first] + column
        if last >= len(ground.lines):
            return Span(start, len(ground.text), first)
        whole = ends and end_column > 0
        return Span(start, ground.starts[last] + (len(ground.lines[last]) if whole else end_column), first)


class Ground:
    """A text to find places in, with line feeds alone and one at its very end; `raw` is the file's own.

    The byte-order mark is put aside. What is derived is kept, since most changes hold several edits.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.bom = BOM if raw.startswith(BOM) else ""
        text = plain(raw.removeprefix(BOM))
        self.ended = not text or text.endswith("\n")
        self.text = text if self.ended else text + "\n"
        self.lines = self.text.split("\n")[:-1] if self.text else []
        self.starts = _starts(self.lines)
        self._keys: dict[int, str] = {}

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def span_of_lines(self, first: int, count: int) -> Span:
        """Whole lines, with the ending of the last one left out."""
        last = first + count - 1
        return Span(self.starts[first], self.starts[last] + len(self.lines[last]), first)

    def every(self, wanted: str) -> list[int]:
        """Where `wanted` begins in the text; a line that it holds whole leads there without a search."""
        parts = wanted.split("\n")
        longest = max(parts[1:-1], key=len, default="")
        if not longest:
            return every(self.text, wanted)
        before = sum(len(part) + 1 for part in parts[: parts.index(longest, 1)])
        starts = (self.starts[number] - before for number in self.by_line.get(longest, ()))
        return [start for start in starts if start >= 0 and self.text.startswith(wanted, start)][:MOST_PLACES]

    @cached_property
    def by_line(self) -> dict[str, list[int]]:
        """Line numbers under each line."""
        return _numbered(self.lines)

    @cached_property
    def without_trailing(self) -> Formed:
        return Formed(self, bare_end)

    @cached_property
    def looking_alike(self) -> Formed:
        return Formed(self, look_alike)

    @cached_property
    def stripped(self) -> list[str]:
        return [line.strip() for line in self.lines]

    @cached_property
    def level(self) -> int:
        """How many spaces one level of indentation has."""
        return indent.unit(self.lines[:MOST_INDENTED])

    @cached_property
    def has_blanks_only(self) -> bool:
        """Whether lines are indented with blanks and none with tabs."""
        return "\n\t" not in self.text and "\n  " in self.text and not self.text.startswith("\t")

    @cached_property
    def look_alikes(self) -> frozenset[str]:
        """The look-alikes that the file itself has."""
        if self.text.isascii():
            return frozenset()
        return frozenset(self.text).intersection(map(chr, LOOK_ALIKES))

    def key(self, number: int) -> str:
        """The words of a line, as `words.key` gives them."""
        found = self._keys.get(number)
        if found is None:
            found = self._keys[number] = key(self.lines[number])
        return found

    def keys(self, first: int, end: int) -> list[str]:
        return [self.key(number) for number in range(first, end)]

    def lines_with(self, word: str) -> list[int]:
        """The numbers of the lines that hold a text without line ends."""
        return list(dict.fromkeys(self.line_of(at) for at in every(self.text, word)))

    @cached_property
    def by_stripped(self) -> dict[str, list[int]]:
        """Line numbers under each line without its surrounding space."""
        return _numbered(self.stripped)


def _numbered(lines: list[str]) -> dict[str, list[int]]:
    result: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        result.setdefault(line, []).append(number)
    return result


def _starts(lines: list[str]) -> list[int]:
    """Where each line begins, and where the one after the last would."""
    return [0, *map(add, accumulate(map(len, lines)), count(1))]


def every(text: str, wanted: str) -> list[int]:
    """Where `wanted` begins in `text`, also where it overlaps itself; at most `MOST_PLACES`."""
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < MOST_PLACES:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found
