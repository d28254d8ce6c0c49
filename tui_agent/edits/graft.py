"""An edit carried over to lines that are not quite those it was written for: it changes only what it means to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_agent.edits import indent
from tui_agent.edits.align import matches
from tui_agent.edits.ground import bare_end

#: Lines from `start` to `end` of the search, and the lines of the file (from, to) that they stand for.
_Part = tuple[int, int, int, int]


def grafted(
    search: Sequence[str], found: Sequence[str], replaced: Sequence[str], floor: float
) -> list[str] | None:
    """`found` after the edit from `search` to `replaced`, with all lines that the edit leaves alone kept.

    Lines are tied by what stands in them without the space around; as many on both sides between two ties
    belong together one by one, another number only as a whole. What the edit touches between two ties must be
    alike by `floor` (0 to 1). None where it is not, or where a line that the edit touches has no certain partner.
    """
    parts = list(_parts(search, found))
    pairs = [(i + k, j + k) for i, end, j, to in parts if end - i == to - j for k in range(end - i)]
    known = indent.mapping([search[i] for i, _ in pairs], [found[j] for _, j in pairs])
    text = None if known is None else indent.reindented(replaced, known)
    result: list[str] = []
    at = 0
    for start, end, new, until in _edits(search, replaced):
        here = _carried(parts, start, end)
        if here is None or not _alike(parts, (start, end, *here), search, found, floor):
            return None
        result.extend(found[at : here[0]])
        result.extend((replaced if text is None else text)[new:until])
        at = here[1]
    return [*result, *found[at:]]


def _edits(search: Sequence[str], replaced: Sequence[str]) -> Iterator[_Part]:
    """What differs: lines (from, to) of the search and the lines (from, to) that take their place."""
    old, new = ([bare_end(line) for line in lines] for lines in (search, replaced))
    start = at = 0
    for i, j, length in [*matches(old, new), (len(old), len(new), 0)]:
        if start < i or at < j:
            yield start, i, at, j
        start, at = i + length, j + length


def _parts(search: Sequence[str], found: Sequence[str]) -> Iterator[_Part]:
    """All lines of both in order: tied one by one, or what lies between two ties."""
    start = at = 0
    for i, j in [*_ties(search, found), (len(search), len(found))]:
        if start < i or at < j:
            yield start, i, at, j
        if i < len(search):
            yield i, i + 1, j, j + 1
        start, at = i + 1, j + 1


def _ties(search: Sequence[str], found: Sequence[str]) -> list[tuple[int, int]]:
    """Equal lines that belong together whichever end one begins from."""
    old, new = ([line.strip() for line in lines] for lines in (search, found))
    forward = {(i + k, j + k) for i, j, length in matches(old, new) for k in range(length)}
    last, end = len(old) - 1, len(new) - 1
    backward = {
        (last - i - k, end - j - k) for i, j, length in matches(old[::-1], new[::-1]) for k in range(length)
    }
    return sorted(forward & backward)


def _carried(parts: Sequence[_Part], start: int, end: int) -> tuple[int, int] | None:
    """The lines of the file (from, to) that stand for lines of the search; None where that is not certain."""
    if start == end:
        places = {_inside(part, start) for part in parts if part[0] <= start <= part[1]}
        return (only, only) if len(places) == 1 and (only := places.pop()) is not None else None
    touched = [part for part in parts if part[0] < end and start < part[1]]
    first = _inside(touched[0], start)
    last = _inside(touched[-1], end)
    extra = any(part[0] == part[1] and start < part[0] < end for part in parts)
    return None if first is None or last is None or extra else (first, last)


def _inside(part: _Part, line: int) -> int | None:
    """Where the boundary before a line of the search lies in the file; None in the midst of unequal parts."""
    start, end, at, to = part
    if end - start == to - at:
        return at + line - start
    if start == end:
        return None
    return at if line == start else to if line == end else None


def _alike(
    parts: Sequence[_Part], edit: _Part, search: Sequence[str], found: Sequence[str], floor: float
) -> bool:
    """Whether every part that an edit touches says nearly the same on both sides."""
    from rapidfuzz import fuzz

    for start, end, at, to in parts:
        if start < edit[1] and edit[0] < end:
            ours, theirs = (
                "".join(line.strip() for line in lines) for lines in (search[start:end], found[at:to])
            )
            if fuzz.ratio(ours, theirs) < floor * 100:
                return False
    return True
