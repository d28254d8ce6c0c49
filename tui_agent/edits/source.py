"""The text of a file, prepared once for many searches: its lines, and what they say apart from their layout."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate, count
from operator import add

from msgspec import Struct

from tui_agent.answers.values import EditHunk
from tui_agent.edits import indent
from tui_agent.edits.lines import BOM, plain

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
_TOKEN = re.compile(
    r"""
    "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `(?:\\.|[^`\\])*`   # a string
  | [^\W\d]\w*(?:'(?:s|t|re|ve|ll|d|m)\b)?                      # a name or a word
  | \d(?:[\w.]*\w)?                                             # a number or a version
  | [^\s,;]                                                     # any other mark
    """,
    re.VERBOSE,
)
#: A longer line counts as one word.
_LONGEST = 2000
_END = "\n"


def spans(line: str) -> list[tuple[int, int]]:
    """Where each word, string and mark of a line begins and ends; white space, commas and semicolons are none."""
    if len(line) > _LONGEST:
        bare = line.strip()
        at = line.find(bare)
        return [(at, at + len(bare))] if bare else []
    return [match.span() for match in _TOKEN.finditer(plain_marks(line))]


def key(line: str) -> str:
    """The words of a line, each with an ending; equal for lines that differ in layout, commas and quotes only."""
    if len(line) > _LONGEST:
        bare = line.strip()
        return bare + _END if bare else ""
    return "".join([_plain(word) + _END for word in _TOKEN.findall(plain_marks(line))])


def plain_marks(text: str) -> str:
    """The text with the marks of a keyboard for those that look like them, one for one."""
    return text if text.isascii() else text.translate(LOOK_ALIKES)


def _plain(word: str) -> str:
    if word[0] not in "\"'`":
        return word
    return f"'{word[1:-1]}'" if len(word) > 1 else "'"


def cuts(text: str, at: int) -> bool:
    """Whether the place before `text[at]` lies inside a word or a number, in scripts that have spaces."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _in_word(before) and _in_word(after):
        return True
    if after == "." and before.isdigit():
        return text[at + 1 : at + 2].isdigit()
    return before == "." and after.isdigit() and at > 1 and text[at - 2].isdigit()


def _in_word(char: str) -> bool:
    return char == "_" or (char.isalnum() and char < "\u0e00")


Form = Callable[[str], str]
#: Lines from `start` to `end` of a search text, and the lines of a place (from, to) that they stand for.
Part = tuple[int, int, int, int]
#: More places of one text are not looked for.
MOST_PLACES = 1000
#: So many lines tell how wide one level of indentation is.
MOST_INDENTED = 500


def bare_end(line: str) -> str:
    return line.rstrip(" \t\f\v")


def look_alike(line: str) -> str:
    return bare_end(plain_marks(line))


class Span(Struct, frozen=True):
    """A place: offsets into `SourceText.text`, and the line (from 0) on which it begins."""

    start: int
    end: int
    line: int


class Formed:
    """The text with each line in one form, in which offsets can be carried back to the text itself."""

    def __init__(self, source: SourceText, form: Form) -> None:
        self._source = source
        self.lines = [form(line) for line in source.lines]
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
        source = self._source
        start = source.starts[first] + column
        if last >= len(source.lines):
            return Span(start, len(source.text), first)
        whole = ends and end_column > 0
        return Span(start, source.starts[last] + (len(source.lines[last]) if whole else end_column), first)


class SourceText:
    """A text to find places in, with line feeds alone and one at its very end; `raw` is the file's own.

    The byte-order mark is put aside. What is derived is kept, since most changes hold several edits.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.has_returns = "\r" in raw
        self.bom = BOM if raw.startswith(BOM) else ""
        text = plain(raw.removeprefix(BOM))
        self.ended = not text or text.endswith("\n")
        self.text = text if self.ended else text + "\n"
        self.lines = self.text.split("\n")[:-1] if self.text else []
        self.starts = _starts(self.lines)
        self._keys: dict[int, str] = {}

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def every(self, wanted: str, whole: bool = False) -> list[int]:
        """Where `wanted` begins in the text; a line that it holds whole leads there without a search.

        With `whole` all its lines are whole ones, and only places where lines begin count.
        """
        parts = wanted.split("\n")
        lines = (parts[:-1] if len(parts) > 1 and not parts[-1] else parts) if whole else parts[1:-1]
        longest = max(lines, key=len, default="")
        if not longest:
            return every(self.text, wanted)
        before = sum(len(part) + 1 for part in parts[: parts.index(longest, not whole)])
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


class Match(Struct, frozen=True):
    """A place that fits on a rung: the lines from `first` to `end`, before the edit is carried over to them.

    `span` is what was found where that need not be whole lines; `ties` say which lines of the search stand for
    which of the file. `hunk` is what is wanted there: the line numbers that a search text had are gone from it.
    """

    rung: str
    first: int
    end: int
    hunk: EditHunk
    span: Span | None = None
    ties: tuple[Part, ...] = ()
