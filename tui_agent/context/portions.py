"""Which lines of a file are shown where all of them are too many: those asked for, and what is around them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from tui_agent.answers.line_ranges import Range, within

#: Lines around a place are shown so far, and twice as far after it, as there is room.
_REACH = (2, 4, 8, 15, 30, 60, 120, 250, 500, 1_000, 2_000, 5_000, 20_000, 100_000)
#: So many places of one word are looked at, and so many places of all; a word in more lines says nothing.
_MOST_LINES, _MOST_PLACES = 40, 60
#: The first lines, which say what a file is, where others are shown.
_HEAD = 12
#: What a line's number takes, in bytes; a longer line is cut.
_NUMBER, LONGEST = 8, 2_000
_WORD = re.compile(r"[^\W\d]\w{2,79}")
_DEFINES = (
    r"\b(?:def|class|function|func|fn|struct|interface|type|enum|trait|impl|const|let|var|module|sub)\s+"
)


class Wanted(Struct, frozen=True):
    """What is wanted of a file: ranges that were asked for, places that a search found, and words that it is about."""

    ranges: tuple[Range, ...] = ()
    hits: tuple[int, ...] = ()
    words: str = ""


def fitting(lines: Sequence[str], wanted: Wanted, room: int) -> tuple[Range, ...]:
    """The ranges of lines that are shown in `room` bytes: those asked for first, then what is around the places that
    a search found and that the words name, else the beginning. Empty where not even a line fits."""
    sizes = [min(len(line.encode(errors="replace")), LONGEST) + _NUMBER for line in lines]
    if asked := within(wanted.ranges, len(lines)):
        if len(asked) == 1 and asked[0][0] == asked[0][1]:
            return _around(sizes, [asked[0][0]], room) or _first(sizes, asked, room)
        return _first(sizes, asked, room)
    places = list(dict.fromkeys([*wanted.hits, *_places(lines, wanted.words)]))[:_MOST_PLACES]
    while places:
        if found := _around(sizes, places, room):
            return found
        places = places[: len(places) // 2]
    return _first(sizes, [(1, len(lines))], room)


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


def _places(lines: Sequence[str], words: str) -> list[int]:
    """The lines that define what the words name, then those that name it, the rarest name first."""
    names = list(dict.fromkeys(_WORD.findall(words)))
    if not names:
        return []
    anywhere = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        for name in {match[0] for match in anywhere.finditer(line[:LONGEST])}:
            found.setdefault(name, []).append(number)
    defined: list[int] = []
    named: list[int] = []
    for name, numbers in sorted(found.items(), key=lambda each: len(each[1])):
        definition = re.compile(rf"{_DEFINES}{re.escape(name)}\b|^\s*{re.escape(name)}\s*[:=(]")
        definitions = [number for number in numbers if definition.search(lines[number - 1][:LONGEST])]
        if len(definitions) <= _MOST_LINES:
            defined += definitions
        if len(numbers) <= _MOST_LINES:
            named += numbers
    return [*defined, *named]
