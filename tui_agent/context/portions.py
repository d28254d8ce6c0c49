"""Selects the lines of a large file to show: requested ranges, and the surroundings of relevant lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from msgspec import Struct

from tui_agent.answers.plans import Range, within
from tui_agent.files.text import PIECE, pieces

#: Lines shown before a place, in increasing steps; twice as many are shown after it.
_REACH = (2, 4, 8, 15, 30, 60, 120, 250, 500, 1_000, 2_000, 5_000, 20_000, 100_000)
#: Maximum lines per word, and places in total; a more frequent word is ignored.
_MOST_LINES, _MOST_PLACES = 40, 60
_HEAD = 12
#: Maximum names to search for, and occurrences of each.
_MOST_NAMES, _MOST_OCCURRENCES = 100, 5_000
#: Bytes added per line by its number and line break; maximum bytes of a line.
_NUMBER, LONGEST = 7, 2_000
_WORD = re.compile(r"\w{3,80}")
_DEFINES = (
    r"\b(?:def|class|function|func|fn|struct|interface|type|enum|trait|impl|const|let|var|module|sub)\s+"
)


class PortionRequest(Struct, frozen=True):
    """The wanted parts of a file: requested ranges, search hits, and words to look for."""

    ranges: tuple[Range, ...] = ()
    hits: tuple[int, ...] = ()
    words: str = ""


class Portions:
    """Selects lines of one text for a given size; measures the text once."""

    def __init__(self, text: str, wanted: PortionRequest) -> None:
        self._sizes: list[int] = []
        ends = [0]
        for piece in pieces(text):
            lines = piece.splitlines(keepends=True)
            self._sizes += [min(len(line.encode(errors="replace")), LONGEST) + _NUMBER for line in lines]
            ends.extend(accumulate(map(len, lines), initial=ends.pop()))
        del ends[0]
        self._asked = within(wanted.ranges, len(self._sizes))
        self._places: list[int] = []
        if not self._asked:
            named = _places(text, ends, wanted.words)
            self._places = list(dict.fromkeys([*wanted.hits, *named]))[:_MOST_PLACES]

    def fitting(self, room: int) -> tuple[Range, ...]:
        """The line ranges that fit in `room` bytes: requested ones, otherwise the surroundings of search hits
        and named definitions, otherwise the beginning. Empty if no line fits."""
        sizes, asked, places = self._sizes, self._asked, self._places
        if asked:
            if len(asked) == 1 and asked[0][0] == asked[0][1]:
                return _around(sizes, [asked[0][0]], room) or _first(sizes, asked, room)
            return _first(sizes, asked, room)
        while places:
            if found := _around(sizes, places, room):
                return found
            places = places[: len(places) // 2]
        return _first(sizes, [(1, len(sizes))], room)


def _first(sizes: Sequence[int], ranges: Sequence[Range], room: int) -> tuple[Range, ...]:
    found = []
    for first, last in ranges:
        at = first
        while at <= last and sizes[at - 1] <= room:
            room -= sizes[at - 1]
            at += 1
        if at > first:
            found.append((first, at - 1))
        if at <= last:
            break
    return tuple(found)


def _around(sizes: Sequence[int], places: Sequence[int], room: int) -> tuple[Range, ...]:
    """The largest surroundings of all places that fit; empty if even the smallest do not."""
    best: tuple[Range, ...] = ()
    for reach in _REACH:
        around = [(place - reach, place + 2 * reach) for place in places]
        ranges = within([(1, _HEAD), *around], len(sizes))
        if sum(sum(sizes[first - 1 : last]) for first, last in ranges) > room:
            break
        best = ranges
        if len(ranges) == 1 and ranges[0] == (1, len(sizes)):
            break
    return best


def _places(text: str, ends: Sequence[int], words: str) -> list[int]:
    """Lines that define the named words, then lines that mention them, rarest first.

    `ends` are the end offsets of the text's lines.
    """
    defined: list[tuple[int, list[int]]] = []
    named: list[tuple[int, list[int]]] = []
    for name in list(dict.fromkeys(_WORD.findall(words)))[:_MOST_NAMES]:
        at = list(islice(_occurrences(text, name), _MOST_OCCURRENCES))
        numbers = list(dict.fromkeys(bisect_right(ends, offset) + 1 for offset in at))
        definition = re.compile(rf"{_DEFINES}{re.escape(name)}\b|^\s*{re.escape(name)}\s*[:=(]")

        def defines(number: int, definition: re.Pattern[str] = definition) -> bool:
            begin = ends[number - 2] if number > 1 else 0
            return definition.search(text[begin : min(ends[number - 1], begin + LONGEST)]) is not None

        definitions = [number for number in numbers if defines(number)]
        if len(definitions) <= _MOST_LINES:
            defined.append((len(numbers), definitions))
        if len(numbers) <= _MOST_LINES:
            named.append((len(numbers), numbers))
    ranked = [*sorted(defined, key=lambda each: each[0]), *sorted(named, key=lambda each: each[0])]
    return [number for _, numbers in ranked for number in numbers]


def _occurrences(text: str, name: str) -> Iterator[int]:
    for begin in range(0, len(text), PIECE):
        after = begin
        while (at := text.find(name, after, begin + PIECE + len(name) - 1)) >= 0:
            after = at + len(name)
            if not _is_letter(text[at - 1 : at] if at else "") and not _is_letter(text[after : after + 1]):
                yield at


def _is_letter(character: str) -> bool:
    return character == "_" or character.isalnum()
