"""Find and replace in lines, by words or regular expressions; and matching brackets."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from tui_agent.errors import EditFailed

SECONDS = 1.0
#: Replacing refuses more matches.
MOST = 100_000

Place = tuple[int, int]


class Occurrence(NamedTuple):
    row: int
    start: int
    end: int


class Occurrences(NamedTuple):
    """`more`: incomplete."""

    found: tuple[Occurrence, ...] = ()
    more: bool = False

    def exactly(self, start: Place, end: Place) -> Occurrence | None:
        at = bisect_left(self.found, start)
        here = self.found[at] if at < len(self.found) else None
        return here if here and ((here.row, here.start), (here.row, here.end)) == (start, end) else None


class Search:
    """All methods block for at most `SECONDS`."""

    def __init__(self, words: str, *, case: bool = False, expression: bool = False) -> None:
        """`expression`: `words` is a pattern of Python's `regex`. Raises `EditFailed` for an invalid one."""
        import regex

        self._expression = expression
        self._case = case
        self._words = "" if expression else words if case else words.lower()
        try:
            self._compiled: Any = regex.compile(
                words if expression else regex.escape(words), 0 if case else regex.IGNORECASE
            )
        except regex.error as error:
            raise EditFailed(f"The expression cannot be read, {error}", "correct it") from error

    def occurrences(
        self, lines: Sequence[str], start: Place = (0, 0), end: Place | None = None
    ) -> Occurrences:
        """Raises `EditFailed` on timeout."""
        deadline = time.monotonic() + SECONDS
        last, end_column = end or (len(lines) - 1, len(lines[-1]) if lines else 0)
        found: list[Occurrence] = []
        for row in range(start[0], min(last + 1, len(lines))):
            line = lines[row]
            begin, stop = start[1] if row == start[0] else 0, end_column if row == last else len(line)
            if self._words and self._words not in (line if self._case else line.lower()):
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise _too_long()
            try:
                matches = self._compiled.finditer(line, begin, stop, timeout=left, concurrent=True)
                found += (Occurrence(row, *match.span()) for match in matches)
            except TimeoutError as error:
                raise _too_long() from error
            if len(found) > MOST:
                return Occurrences(tuple(found[:MOST]), more=True)
        return Occurrences(tuple(found))

    def replaced(self, line: str, occurrence: Occurrence, template: str) -> str:
        r"""Templates of patterns may contain `\n` and groups as `\1` and `\g<name>`. Raises `EditFailed` for
        an invalid template or a changed text.
        """
        return self._replacement_for(line, occurrence, template, time.monotonic() + SECONDS)

    def all_replaced(
        self, lines: Sequence[str], found: Sequence[Occurrence], template: str
    ) -> dict[int, str]:
        """Returns changed lines by row. Raises `EditFailed` as `replaced`."""
        deadline = time.monotonic() + SECONDS
        changed = {}
        for row, here in groupby(found, attrgetter("row")):
            line, at, parts = lines[row], 0, []
            for occurrence in here:
                parts += (
                    line[at : occurrence.start],
                    self._replacement_for(line, occurrence, template, deadline),
                )
                at = occurrence.end
            changed[row] = "".join((*parts, line[at:]))
        return changed

    def _replacement_for(self, line: str, occurrence: Occurrence, template: str, deadline: float) -> str:
        if not self._expression:
            return template
        import regex

        _, start, end = occurrence
        left = max(deadline - time.monotonic(), 0.001)
        try:
            match = self._compiled.match(line, start, timeout=left, concurrent=True)
            if match is None or match.end() != end:
                raise EditFailed("The text has changed meanwhile", "search again")
            return match.expand(template)
        except TimeoutError as error:
            raise _too_long() from error
        except (regex.error, IndexError) as error:
            raise EditFailed(f"The replacement cannot be read, {error}", "correct it") from error


def _too_long() -> EditFailed:
    return EditFailed(f"The expression takes longer than {SECONDS:g} s", "make it more specific")


_PAIRS = {"(": ")", "[": "]", "{": "}"}
_OPENED = {end: start for start, end in _PAIRS.items()}
_ANY = re.compile(r"[()\[\]{}]")
_KINDS = {start: re.compile(re.escape(start) + "|" + re.escape(end)) for start, end in _PAIRS.items()}


def partner(lines: Sequence[str], place: Place) -> Place | None:
    row, column = place
    bracket = lines[row][column : column + 1]
    if bracket in _PAIRS:
        return _walk(lines, place, bracket, 1)
    if bracket in _OPENED:
        return _walk(lines, place, _OPENED[bracket], -1)
    return None


def near(lines: Sequence[str], place: Place) -> Place | None:
    row, column = place
    for at in (column, column - 1):
        if at >= 0 and lines[row][at : at + 1] in {*_PAIRS, *_OPENED}:
            return row, at
    found = _ANY.search(lines[row], column)
    return (row, found.start()) if found else None


def _walk(lines: Sequence[str], place: Place, start: str, step: int) -> Place | None:
    end, kind, depth = _PAIRS[start], _KINDS[start], 0
    for row in range(place[0], len(lines) if step > 0 else -1, step):
        line, columns = lines[row], []
        if start in line or end in line:
            first, stop = 0, len(line)
            if row == place[0]:
                first, stop = (place[1], stop) if step > 0 else (0, place[1] + 1)
            columns = [found.start() for found in kind.finditer(line, first, stop)]
        for column in columns[::step]:
            depth += step if line[column] == start else -step
            if depth == 0:
                return row, column
    return None
