"""Which lines of a file are shown where all of them are too many: those asked for, and what is around them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from msgspec import Struct

from tui_agent.answers.line_ranges import Range, within
from tui_agent.files.text import PIECE, pieces

#: Lines around a place are shown so far, and twice as far after it, as there is room.
_REACH = (2, 4, 8, 15, 30, 60, 120, 250, 500, 1_000, 2_000, 5_000, 20_000, 100_000)
#: So many places of one word are looked at, and so many places of all; a word in more lines says nothing.
_MOST_LINES, _MOST_PLACES = 40, 60
#: The first lines, which say what a file is, where others are shown.
_HEAD = 12
#: So many names of a request are looked for, and so many occurrences of each looked at.
_MOST_NAMES, _MOST_OCCURRENCES = 100, 5_000
#: What a line's number takes beside the line and its end, in bytes; a longer line is cut.
_NUMBER, LONGEST = 7, 2_000
_WORD = re.compile(r"\w{3,80}")
_DEFINES = (
    r"\b(?:def|class|function|func|fn|struct|interface|type|enum|trait|impl|const|let|var|module|sub)\s+"
)


class Wanted(Struct, frozen=True):
    """What is wanted of a file: ranges that were asked for, places that a search found, and words that it is about."""

    ranges: tuple[Range, ...] = ()
    hits: tuple[int, ...] = ()
    words: str = ""


class Portions:
    """One text, measured once: which of its lines are shown in how much room."""

    def __init__(self, text: str, wanted: Wanted) -> None:
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
        """The ranges of lines that are shown in `room` bytes: those asked for, else what is around the places that a
        search found and that the words name, else the beginning. None where not even a line fits."""
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
    """Of the ranges as much as fits, in their order."""
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
    """As much around all of the places as fits; empty where the smallest part around them does not."""
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
    """The lines that define what the words name, then those that name it, the rarest name first.

    `ends` are the offsets at which the lines of the text end.
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
    """The offsets of a name as a whole word."""
    for begin in range(0, len(text), PIECE):
        after = begin
        while (at := text.find(name, after, begin + PIECE + len(name) - 1)) >= 0:
            after = at + len(name)
            if not _is_letter(text[at - 1 : at] if at else "") and not _is_letter(text[after : after + 1]):
                yield at


def _is_letter(character: str) -> bool:
    return character == "_" or character.isalnum()
