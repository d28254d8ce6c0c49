"""Which lines of two texts are the same line: unique lines first, the rest between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tui_agent.edits import myers

#: Finding the shortest way takes time by the square of its length: half a second here.
MAX_EDITS = 600
#: Up to this many pairs of lines all are compared, above not those of lines that are all over the text.
MAX_PAIRS = 1_000_000

Match = tuple[int, int, int]
_Stretch = tuple[int, int, int, int]


def matches(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Runs of equal lines as (start in old, start in new, length), in order and without overlap.

    Patience difference (B. Cohen): lines that stand once on both sides are tied together, and each stretch
    between them is treated the same way, down to stretches in which no line is unique. There the shortest way
    from one to the other is taken if it has at most `MAX_EDITS` lines, else the longest common runs (`difflib`).
    """
    found: list[Match] = []
    waiting: list[_Stretch] = [(0, len(old), 0, len(new))]
    while waiting:
        stretch = _trimmed(old, new, waiting.pop(), found)
        start, end, at, to = stretch
        if start == end or at == to:
            continue
        anchors = _unique_pairs(old, new, stretch)
        if anchors:
            waiting.extend(_between(stretch, anchors))
            found.extend((i, j, 1) for i, j in anchors)
        else:
            found.extend(
                (start + i, at + j, length) for i, j, length in _compared(old[start:end], new[at:to])
            )
    return _joined(sorted(found))


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    short = myers.matches(old, new, MAX_EDITS)
    if short is not None:
        yield from short
        return
    huge = len(old) * len(new) > MAX_PAIRS
    for block in SequenceMatcher(None, old, new, autojunk=huge).get_matching_blocks():
        if block.size:
            yield block.a, block.b, block.size


def _trimmed(old: Sequence[str], new: Sequence[str], stretch: _Stretch, found: list[Match]) -> _Stretch:
    """The stretch without the lines that are equal at its two ends; those are noted."""
    start, end, at, to = stretch
    head = start
    while start < end and at < to and old[start] == new[at]:
        start, at = start + 1, at + 1
    if start > head:
        found.append((head, at - (start - head), start - head))
    tail = end
    while start < end and at < to and old[end - 1] == new[to - 1]:
        end, to = end - 1, to - 1
    if tail > end:
        found.append((end, to, tail - end))
    return start, end, at, to


def _unique_pairs(old: Sequence[str], new: Sequence[str], stretch: _Stretch) -> list[tuple[int, int]]:
    """Lines that stand once on each side, as the longest run of pairs that rises on both."""
    start, end, at, to = stretch
    here = _once(old, start, end)
    there = _once(new, at, to)
    return _rising([(i, there[line]) for line, i in here.items() if line in there])


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    places: dict[str, int] = {}
    doubled: set[str] = set()
    for number in range(start, end):
        line = lines[number]
        if line in places:
            doubled.add(line)
        else:
            places[line] = number
    return {line: number for line, number in places.items() if line not in doubled}


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence (pairs come sorted by the first) whose second numbers rise."""
    tops: list[int] = []
    piles: list[int] = []
    below: list[int] = []
    for number, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        below.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(j)
            piles.append(number)
        else:
            tops[pile], piles[pile] = j, number
    result: list[tuple[int, int]] = []
    number = piles[-1] if piles else -1
    while number >= 0:
        result.append(pairs[number])
        number = below[number]
    return result[::-1]


def _between(stretch: _Stretch, anchors: list[tuple[int, int]]) -> Iterator[_Stretch]:
    start, end, at, to = stretch
    for i, j in anchors:
        if start < i or at < j:
            yield start, i, at, j
        start, at = i + 1, j + 1
    yield start, end, at, to


def _joined(found: list[Match]) -> list[Match]:
    result: list[Match] = []
    for i, j, length in found:
        if result and result[-1][0] + result[-1][2] == i and result[-1][1] + result[-1][2] == j:
            result[-1] = (result[-1][0], result[-1][1], result[-1][2] + length)
        else:
            result.append((i, j, length))
    return result
