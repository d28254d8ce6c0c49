"""Adapts a fuzzily matched edit to the file's actual lines.

Kept lines stay as they are in the file. New lines are the model's text, except for one common change of
indentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_agent.edits import indent
from tui_agent.edits.alignment import matches
from tui_agent.edits.source_text import LOOK_ALIKES, Part
from tui_agent.files.lazy_regex import late

_WORD = late(r"\w+")
_FANCY = frozenset(map(chr, LOOK_ALIKES))
_CLOSING = (")", "]", "}")


def one_by_one(count: int) -> tuple[Part, ...]:
    """Returns ties between equally numbered lines."""
    return tuple((number, number + 1, number, number + 1) for number in range(count))


def carried(
    search: Sequence[str], found: Sequence[str], replaced: Sequence[str], ties: Sequence[Part], level: int = 4
) -> list[str] | None:
    """Returns `found` after the edit from `search` to `replaced`.

    `ties` pair lines of the search with lines of the file; `level` is the file's indentation width.
    Returns `None` if an edited line has no certain counterpart, or a new line no certain indentation.
    """
    parts = list(_parts(ties, search, found))
    new_lines = _indented(search, found, replaced, ties, level)
    if new_lines is None:
        return None
    slips = _Lookalikes(search, found, ties)

    def result_of(changes: Iterator[Part]) -> list[str] | None:
        result: list[str] = []
        at = 0
        for start, end, new, until in changes:
            here = _lines_matching(parts, start, end)
            lines = new_lines[new:until]
            if here is None or not _agree(search[start:end], found[here[0] : here[1]], lines):
                return None
            if slips.may_hold(lines):
                return None
            result.extend(found[at : here[0]])
            result.extend(lines)
            at = here[1]
        return [*result, *found[at:]]

    result = result_of(changes(search, replaced))
    if len(found) != len(search) and result != result_of(_changes_from_the_end(search, replaced)):
        return None  # ambiguous: two equal lines, and the file has more lines between them
    return result


def _indented(
    search: Sequence[str], found: Sequence[str], replaced: Sequence[str], ties: Sequence[Part], level: int
) -> list[str] | None:
    """Returns the replacement with the file's indentation, or `None` if it is ambiguous."""
    tied = [
        (start, indent.of(search[start]), indent.of(found[at]))
        for start, _, at, _ in ties
        if search[start].strip() and found[at].strip()
    ]
    pairs = [(wanted, there) for _, wanted, there in tied]
    if not pairs:
        return None
    if all(wanted == there for wanted, there in pairs):
        return list(replaced)
    stretches = list(changes(search, replaced))
    numbers = [number for *_, new, until in stretches for number in range(new, until)]
    worded = [number for number in numbers if replaced[number].strip()]
    blanks = "" not in search  # an empty line shows that blank lines are not shifted
    if not worded:
        only = indent.readings(replaced, pairs, level, numbers, blanks)
        return only[0] if only else list(replaced)  # shifted if possible
    if pairs[0][1] and not pairs[0][0] and _moves_beside_first(search, replaced, stretches):
        return None
    touched = {number for start, end, *_ in stretches for number in range(start, end)}
    first = indent.of(replaced[worded[0]])
    wanted_depths, depths = ({pair[side] for pair in pairs} for side in (0, 1))
    moved = {wanted for wanted, there in pairs if wanted != there}
    written_alike = (
        (first in moved and first == pairs[0][0])
        or any(indent.of(replaced[number]) in moved - depths for number in worded)
        or any(wanted != there for number, wanted, there in tied if number not in touched)
    )
    found_ways = indent.readings(replaced, pairs, level, numbers, blanks)
    as_in_file = {*first} <= {char for depth in depths for char in depth} or not any(depths)
    if as_in_file and (not written_alike or (first in depths and first not in wanted_depths)):
        if not found_ways and first not in depths:
            return None
        found_ways.append(list(replaced))  # the replacement may already use the file's indentation
    bare = pairs[0][1] and not pairs[0][0] and all(wanted == there for wanted, there in pairs[1:])
    if bare and 0 in worded and search[0][:1] in _CLOSING and replaced[0][:1] not in _CLOSING:
        return None  # a closing bracket rarely has the depth of its replacement
    if bare and pairs[1:] and 0 in worded:
        if {*_WORD.findall(search[0])}.isdisjoint(_WORD.findall(replaced[0])):
            return None  # a different line, possibly at another depth
        found_ways = [way for way in found_ways if not indent.jumps(way, level)]
        second = next((number for number in worded if number), 0)
        drops = second and second == next(
            (number for number, line in enumerate(replaced) if number and line.strip()), 0
        )
        if drops and len(pairs[1][1]) >= len(pairs[0][1]) > len(indent.of(replaced[second])):
            return None  # the other lines moved left; the first may have moved with them
    ways = [way for number, way in enumerate(found_ways) if way not in found_ways[:number]]
    if len(ways) > 1 or list(replaced) in ways:
        there = {number: line for number, _, line in tied}
        kept = {number: there[old] for number, old in _kept(stretches, len(replaced)).items() if old in there}
        ways = [
            way
            for way in ways
            if not indent.left_open(
                [kept.get(n, indent.of(line)) + line.lstrip(" \t") for n, line in enumerate(way)]
            )
        ]
    return ways[0] if len(ways) == 1 else None


def _moves_beside_first(search: Sequence[str], replaced: Sequence[str], stretches: Sequence[Part]) -> bool:
    """Whether the edit reindents lines but keeps the first one. If that line came without its indentation, the
    intended depth is unknown."""
    if not stretches or stretches[0][0] == 0:
        return False
    start, end, new, until = stretches[0]
    old = {bare for line in search[start:end] if (bare := line.strip())}
    return any(line.strip() in old for line in replaced[new:until])


def _kept(stretches: Sequence[Part], count: int) -> dict[int, int]:
    """Maps each kept line of the replacement to its line of the search."""
    kept: dict[int, int] = {}
    old = at = 0
    for _, end, new, until in [*stretches, (-1, -1, count, count)]:
        kept.update((at + number, old + number) for number in range(new - at))
        old, at = end, until
    return kept


def changes(search: Sequence[str], replaced: Sequence[str]) -> Iterator[Part]:
    """Yields changed lines (from, to) of the search with their replacement (from, to)."""
    start = at = 0
    for i, j, length in [*matches(search, replaced), (len(search), len(replaced), 0)]:
        if start < i or at < j:
            yield start, i, at, j
        start, at = i + length, j + length


def _changes_from_the_end(search: Sequence[str], replaced: Sequence[str]) -> Iterator[Part]:
    """Yields the same, but aligns equal lines from the end."""
    mirrored = list(changes(search[::-1], replaced[::-1]))
    for start, end, new, until in reversed(mirrored):
        yield len(search) - end, len(search) - start, len(replaced) - until, len(replaced) - new


def _parts(ties: Sequence[Part], search: Sequence[str], found: Sequence[str]) -> Iterator[tuple[Part, bool]]:
    """Yields consecutive parts of both texts, and whether the two sides of each correspond.

    Equal numbers of blank lines also correspond.
    """
    start = at = 0
    for tie in [*ties, (len(search), len(search), len(found), len(found))]:
        between = [*search[start : tie[0]], *found[at : tie[2]]]
        if tie[0] - start == tie[2] - at and not "".join(between).strip():
            for number in range(tie[0] - start):
                yield (start + number, start + number + 1, at + number, at + number + 1), True
        elif between:
            yield (start, tie[0], at, tie[2]), False
        if tie[0] < tie[1]:
            yield tie, True
        start, at = tie[1], tie[3]


def _lines_matching(parts: Sequence[tuple[Part, bool]], start: int, end: int) -> tuple[int, int] | None:
    """Returns the file's lines (from, to) for lines of the search, or `None` if uncertain."""
    if start == end:
        beside = [(part, tied) for part, tied in parts if part[0] <= start <= part[1]]
        if not all(tied for _, tied in beside):
            return None
        places = {part[2] if part[0] == start else part[3] for part, _ in beside if start in part[:2]}
        return (only, only) if len(places) == 1 and (only := places.pop()) is not None else None
    touched = [(part, tied) for part, tied in parts if part[0] < end and start < part[1]]
    within = [part for part, _ in parts if part[0] == part[1] and start < part[0] < end]
    if within or not all(tied for _, tied in touched):
        return None
    first, last = touched[0][0], touched[-1][0]
    return (first[2], last[3]) if first[0] == start and last[1] == end else None


def _agree(search: Sequence[str], found: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the edit preserves commas and semicolons missing from the search text."""
    if not search or not found or not new:
        return True
    ours, theirs = [*map(_ending, search)], [*map(_ending, found)]
    if theirs[-1] not in (ours[-1], _ending(new[-1])):
        return False
    if len(search) != len(found):
        return True
    return ours[:-1] == theirs[:-1] and [*map(_commas, search)] == [*map(_commas, found)]


def _ending(line: str) -> str:
    bare = line.rstrip()
    return bare[-1] if bare[-1:] in (",", ";") else ""


def _commas(line: str) -> str:
    return "".join(char for char in line.rstrip().rstrip(",;") if char in ",;")


class _Lookalikes:
    """Look-alike characters and trailing blanks present in only one of search text and file.

    New lines with any of these are ambiguous.
    """

    def __init__(self, search: Sequence[str], found: Sequence[str], ties: Sequence[Part]) -> None:
        ours, theirs = "".join(search), "".join(found)
        self._marks: frozenset[str] = frozenset()
        if not (ours.isascii() and theirs.isascii()):
            only_ours = _FANCY.intersection(ours) - {*theirs}
            only_theirs = _FANCY.intersection(theirs) - {*ours}
            for start, end, at, to in ties:
                if end - start == 1 == to - at:
                    differ = {
                        pair
                        for pair in zip(search[start].strip(), found[at].strip(), strict=False)
                        if len({*pair}) > 1
                    }
                    only_ours |= _FANCY.intersection(one for one, _ in differ)
                    only_theirs |= _FANCY.intersection(other for _, other in differ)
            self._marks = frozenset(char.translate(LOOK_ALIKES) for char in only_theirs) - {" "}
            if only_ours:
                self._marks |= (_FANCY - {*theirs}) | only_ours
        self._blanks = any(
            _blank_end(search[start]) and not _blank_end(found[at])
            for start, end, at, to in ties
            if end - start == 1 == to - at
        )

    def may_hold(self, lines: Sequence[str]) -> bool:
        if self._blanks and any(map(_blank_end, lines)):
            return True
        return any(char in line for char in self._marks for line in lines)


def _blank_end(line: str) -> bool:
    return bool(line.strip()) and line[-1].isspace()
