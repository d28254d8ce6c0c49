"""An edit carried over to lines that are not quite those it was written for: it changes only what it means to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tui_agent.edits import indent
from tui_agent.edits.alignment import matches
from tui_agent.edits.source import LOOK_ALIKES, Part, spans

#: A stretch of more pieces is not compared piece by piece.
_MOST_PIECES = 2000
_FANCY = frozenset(map(chr, LOOK_ALIKES))
_MARKS = "'\"-"


def one_by_one(count: int) -> tuple[Part, ...]:
    """The ties of so many lines, each of which stands for the one with its number."""
    return tuple((number, number + 1, number, number + 1) for number in range(count))


def adapted(
    search: Sequence[str],
    found: Sequence[str],
    replaced: Sequence[str],
    ties: Sequence[Part],
    level: int = 4,
    own: frozenset[str] = frozenset(),
) -> list[str] | None:
    """`found` after the edit from `search` to `replaced`, with all lines that the edit leaves alone kept.

    `ties` say which lines of the search stand for which of the file. New lines get the indentation of the file
    (`level` is the width of one of its levels) and, where the search text has look-alikes for its letters, those
    letters, but for the ones in `own`. None where a line that the edit touches has no certain partner, or a new
    line no certain indentation or letters.
    """
    parts = list(_parts(ties, search, found))
    pairs = [
        (indent.of(search[start]), indent.of(found[at]))
        for start, _, at, _ in ties
        if search[start].strip() and found[at].strip()
    ]
    if not pairs:
        return None
    new_lines = indent.reindented(replaced, pairs, level)
    if new_lines is None:
        new_lines = _only_changed(search, replaced, pairs, level)
    if new_lines is None:
        return None
    letters = _Letters(search, found, ties, own)

    def result_of(changes: Iterator[Part]) -> list[str] | None:
        result: list[str] = []
        at = 0
        for start, end, new, until in changes:
            here = _carried(parts, start, end)
            if here is None:
                return None
            lines = letters.carried(
                [*search[start:end]],
                [*found[here[0] : here[1]]],
                [*replaced[new:until]],
                new_lines[new:until],
            )
            if lines is None:
                return None
            result.extend(found[at : here[0]])
            result.extend(lines)
            at = here[1]
        return [*result, *found[at:]]

    result = result_of(edits(search, replaced))
    if len(found) != len(search) and result != result_of(_edits_from_the_end(search, replaced)):
        return (
            None  # of two equal lines either may be the one that changes, and the file has more between them
        )
    return result


def _only_changed(
    search: Sequence[str], replaced: Sequence[str], pairs: Sequence[indent.Pair], level: int
) -> list[str] | None:
    """The lines with the new ones alone indented like the file; those that are kept need no new indentation."""
    changed = [number for *_, new, until in edits(search, replaced) for number in range(new, until)]
    lines = indent.reindented([replaced[number] for number in changed], pairs, level, changed)
    if lines is None:
        return None
    result = list(replaced)
    for number, line in zip(changed, lines, strict=True):
        result[number] = line
    return result


def edits(search: Sequence[str], replaced: Sequence[str]) -> Iterator[Part]:
    """What differs: lines (from, to) of the search and the lines (from, to) that take their place."""
    old, new = ([line.rstrip() for line in lines] for lines in (search, replaced))
    start = at = 0
    for i, j, length in [*matches(old, new), (len(old), len(new), 0)]:
        if start < i or at < j:
            yield start, i, at, j
        start, at = i + length, j + length


def _edits_from_the_end(search: Sequence[str], replaced: Sequence[str]) -> Iterator[Part]:
    """The same, where equal lines are taken for each other from the end on."""
    mirrored = list(edits(search[::-1], replaced[::-1]))
    for start, end, new, until in reversed(mirrored):
        yield len(search) - end, len(search) - start, len(replaced) - until, len(replaced) - new


def _parts(ties: Sequence[Part], search: Sequence[str], found: Sequence[str]) -> Iterator[tuple[Part, bool]]:
    """All lines of both in order, in parts, and of each whether the two sides of it stand for each other.

    As many blank lines on both sides do.
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


def _carried(parts: Sequence[tuple[Part, bool]], start: int, end: int) -> tuple[int, int] | None:
    """The lines of the file (from, to) that stand for lines of the search; None where that is not certain."""
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


class _Letters:
    """What the file writes otherwise than the search text: look-alikes, blanks at line ends, layout inside lines."""

    def __init__(
        self, search: Sequence[str], found: Sequence[str], ties: Sequence[Part], own: frozenset[str]
    ) -> None:
        ours, theirs = "\n".join(search), "\n".join(found)
        self._fold = not ours.isascii() and any(char in _FANCY and char not in theirs for char in ours)
        self._own = own
        self._kept = "".join(char for char in theirs if char in _FANCY and char not in ours)
        self._bare = any(
            search[start] != search[start].rstrip() and found[at] == found[at].rstrip()
            for start, end, at, to in ties
            if search[start].strip() and end - start == 1 == to - at
        )

    def carried(
        self, search: list[str], found: list[str], written: list[str], replaced: list[str]
    ) -> list[str] | None:
        """The new lines for a stretch: `replaced` are the lines of `written` in the indentation of the file."""
        lines = [self._plain(line) for line in replaced]
        if not lines:
            return []
        if [line.strip() for line in search] == [line.strip() for line in found]:
            return lines if self._certain(lines) else None
        ours = "\n".join(self._plain(line).strip() for line in search)
        theirs = "\n".join(line.strip() for line in found)
        if len(search) != len(found):
            if _ending(found[-1]) not in (_ending(search[-1]), _ending(lines[-1])):
                return None
            return lines if self._certain(lines) else None
        if ours == theirs:
            return lines if self._certain(lines) else None
        text = woven(ours, theirs, "\n".join(line.strip() for line in lines))
        if text is None or not self._certain([text[1]]):
            return None
        return [
            indent.of(line) + new if new else line
            for line, new in zip(lines, text[0].split("\n"), strict=True)
        ]

    def _plain(self, line: str) -> str:
        if self._fold and not line.isascii():
            line = "".join(char if char in self._own else char.translate(LOOK_ALIKES) for char in line)
        return line.rstrip() if self._bare and line.strip() else line

    def _certain(self, lines: Sequence[str]) -> bool:
        """Not where the file has a letter of its own for a mark that a new line holds."""
        marks = {char.translate(LOOK_ALIKES) for char in self._kept} & set(_MARKS)
        return not any(mark in line for mark in marks for line in lines)


def _ending(line: str) -> str:
    bare = line.rstrip()
    return bare[-1] if bare[-1:] in (",", ";") else ""


def woven(search: str, found: str, replaced: str) -> tuple[str, str] | None:
    """`replaced` with what it shares with `search` as `found` writes it, and what only it says; None if unclear.

    `search` and `found` say the same words; what is between two words counts as a piece too.
    """
    ours, theirs, new = _pieces(search), _pieces(found), _pieces(replaced)
    if len(ours) != len(theirs) or max(len(ours), len(new)) > _MOST_PIECES:
        return None
    if [gap.count("\n") for gap in ours[::2]] != [gap.count("\n") for gap in theirs[::2]]:
        return None
    result: list[str] = []
    own: list[str] = []
    at = 0
    for i, j, length in SequenceMatcher(None, ours, new, autojunk=False).get_matching_blocks():
        own.extend(new[at:j])
        pairs = zip(ours[i : i + length], theirs[i : i + length], strict=True)
        if any(_commas(one) != _commas(other) for one, other in pairs):
            return None  # nobody can say whether the new line lacks it on purpose
        result.extend((*new[at:j], *theirs[i : i + length]))
        at = j + length
    return "".join(result), "".join(own)


def _commas(piece: str) -> str:
    return "".join(char for char in piece if char in ",;") if not piece.strip(" \t\n,;") else ""


def _pieces(text: str) -> list[str]:
    """What is between the words, and the words, in turn; it begins and ends with what is between."""
    result: list[str] = []
    at = 0
    for start, end in _spans(text):
        result.extend((text[at:start], text[start:end]))
        at = end
    return [*result, text[at:]]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    offset = 0
    for line in text.split("\n"):
        yield from ((offset + start, offset + end) for start, end in spans(line))
        offset += len(line) + 1
