"""Matching brackets of the same kind."""

from __future__ import annotations

import re
from collections.abc import Sequence

Place = tuple[int, int]
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
    """Returns the bracket at `place`, directly before it, or the next one in the line."""
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
