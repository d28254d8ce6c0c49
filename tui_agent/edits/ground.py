"""A file's text, prepared once for many searches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

from msgspec import Struct

from tui_agent.edits.lines import BOM, plain

Form = Callable[[str], str]
#: More places of one text are not looked for.
MOST_PLACES = 1000

#: Letters that look like the ones on a keyboard, one for one.
LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "
        ),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)


def bare_end(line: str) -> str:
    return line.rstrip(" \t\f\v")


def look_alike(line: str) -> str:
    return bare_end(line.translate(LOOK_ALIKES))


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
    def stripped_ends(self) -> list[int]:
        """How long all stripped lines before each one are together, each with one for its ending."""
        return _starts(self.stripped)

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
    return [0, *accumulate(len(line) + 1 for line in lines)]


def every(text: str, wanted: str) -> list[int]:
    """Where `wanted` begins in `text`, also where it overlaps itself; at most `MOST_PLACES`."""
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < MOST_PLACES:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found
