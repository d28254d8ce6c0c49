"""Places that are nearly what was asked for: one window of lines clearly better than every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from tui_agent.edits.ground import Ground
from tui_agent.errors import Ambiguous

#: How much worse, of 1, the second best place must be.
MARGIN = 0.05
#: A single line shorter than this is like too many others.
SHORTEST = 40
#: Letters and digits that the equal lines at both ends must hold to be an anchor.
ANCHOR = 20
#: Up to so many lines every window is compared, above only those that share a line with the search.
_FEW_LINES = 4
_COMMON = 50
_CANDIDATES = 64
#: Letters compared with letters in all windows that share a line, and how many windows there may be at least.
_WORK = 500_000_000
_FEWEST = 8
_COMPARED = 200
#: So many of the likeliest windows are also tried with some lines more or less at either end.
_STRETCHED = 2
_STRETCH = 3
#: The share of what a displaced window lacks by which it must be worse.
_LOSS = 0.5
_WIDEST = 120
_LARGEST = 64_000


class Window(Struct, frozen=True):
    """So many lines from `first` on (from 0), and how like the search text they are, of 100.

    `anchored` says that the first and the last lines are equal and only something between them differs.
    """

    first: int
    count: int
    score: float
    anchored: bool

    @property
    def end(self) -> int:
        return self.first + self.count

    def within(self, other: Window) -> bool:
        return other.first <= self.first and self.end <= other.end


def anchored_floor(threshold: float) -> float:
    """How like an anchored place must be: twice as much may differ as elsewhere."""
    return max(2 * threshold - 1, 0.0)


def window(ground: Ground, lines: Sequence[str], threshold: float) -> Window | None:
    """The window most like `lines`, of about as many lines, None where none reaches its floor.

    The measure is the normalised edit similarity of the lines without the space around them (rapidfuzz
    `ratio`). The floor is `threshold`; an anchored window may differ twice as much. Raises `Ambiguous` where
    another place comes within `MARGIN` of the best.
    """
    bare = [line.strip() for line in lines]
    text = "\n".join(bare)
    worded = [line for line in bare if line]
    if not worded or (len(worded) == 1 and len(text) < SHORTEST) or len(text) > _LARGEST:
        return None
    lowest = anchored_floor(threshold)
    scored = sorted(
        _scored(ground, bare, max(lowest - MARGIN, 0.0) * 100),
        key=lambda one: (-one.score, one.count, one.first),
    )
    reached = (one for one in scored if one.score >= (lowest if one.anchored else threshold) * 100)
    best = next(reached, None)
    if best is None:
        return None
    for rival in scored:
        if rival.score > best.score - MARGIN * 100 and not _same_place(ground, best, rival):
            raise Ambiguous(
                f"two places are nearly the same as the search text, at lines {best.first + 1} and {rival.first + 1}",
                "copy the search text exactly from the file",
            )
    return best


def _same_place(ground: Ground, best: Window, other: Window) -> bool:
    """Whether a window is the best one but for lines at its ends, for whose lack or surplus it is worse.

    Where it is not worse the text repeats itself, and the two are places of their own.
    """
    if other.within(best) or best.within(other):
        return True
    ends = ground.stripped_ends
    apart = abs(ends[other.first] - ends[best.first]) + abs(ends[other.end] - ends[best.end])
    length = ends[best.end] - ends[best.first]
    return best.score - other.score > _LOSS * 100 * apart / (2 * length)


def _scored(ground: Ground, bare: Sequence[str], cutoff: float) -> list[Window]:
    """The windows that reach the cutoff (of 100), best first."""
    from rapidfuzz import fuzz, process

    text = "\n".join(bare)
    places = _candidates(ground, bare, len(text), cutoff)
    found = process.extract(
        text,
        ["\n".join(ground.stripped[first : first + count]) for first, count in places],
        scorer=fuzz.ratio,
        score_cutoff=cutoff,
        limit=None,
    )
    windows = [
        Window(first, count, score, _anchored(bare, ground.stripped[first : first + count]))
        for _, score, number in found[:_COMPARED]
        for first, count in (places[number],)
    ]
    return sorted(windows, key=lambda one: (-one.score, one.count, one.first))


def _anchored(search: Sequence[str], found: Sequence[str]) -> bool:
    """Whether both begin and end with the same lines, which say enough to be told from others."""
    ours, theirs = ([line for line in lines if line] for lines in (search, found))
    head = _shared(ours, theirs)
    tail = _shared(ours[head:][::-1], theirs[head:][::-1])
    said = sum(char.isalnum() for line in (*ours[:head], *ours[len(ours) - tail :]) for char in line)
    return bool(head and tail) and said >= ANCHOR


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(ours), len(theirs)))


def _candidates(ground: Ground, bare: Sequence[str], length: int, cutoff: float) -> list[tuple[int, int]]:
    """Windows as (first line, number of lines), each once, all inside the file and about as long as the search."""
    found = dict.fromkeys(_voted(ground, bare, max(_FEWEST, _WORK // (length * length))))
    if len(bare) < _FEW_LINES:
        counts = range(max(1, len(bare) - 1), len(bare) + 2)
        found.update(dict.fromkeys((at, count) for count in counts for at in range(len(ground.stripped))))
    ends = ground.stripped_ends
    least, most = length * cutoff / (200 - cutoff), length * (200 - cutoff) / max(cutoff, 1)
    return [
        (first, count)
        for first, count in found
        if first >= 0 and first + count < len(ends) and least < ends[first + count] - ends[first] <= most + 1
    ]


def _voted(ground: Ground, bare: Sequence[str], most: int) -> list[tuple[int, int]]:
    """Where lines of the search stand, most of them first, at most so many windows.

    Two lines that stand a little further from one another than in the search span a longer window.
    """
    votes: Counter[int] = Counter()
    for number, line in enumerate(bare):
        places = ground.by_stripped.get(line, ()) if line else ()
        if len(places) <= _COMMON:
            votes.update(place - number for place in places)
    top = votes.most_common(_CANDIDATES)
    reach = max(3, len(bare) // 4)
    spans = [
        (-number - (more if last != first else 0), first, len(bare) + last - first)
        for first, number in top
        for last, more in top
        if abs(last - first) <= reach and len(bare) + last > first
    ]
    ranked = [(first, count) for _, first, count in sorted(spans)]
    stretched = (one for first, _ in top[:_STRETCHED] for one in _stretched(first, len(bare)))
    return [*ranked, *stretched][:most]


def _stretched(first: int, count: int) -> Iterator[tuple[int, int]]:
    """The windows that only begin, or only end, where the one of so many lines does."""
    for more in range(max(1 - count, -_STRETCH), _STRETCH + 1):
        yield first, count + more
        yield first - more, count + more


def hint(ground: Ground, search: str) -> str:
    """A remedy that names the lines most like the search text, with their numbers."""
    longest = max((line.strip() for line in search.split("\n")), key=len, default="")[:1000]
    if not longest or not ground.lines:
        return "send it again with text that stands in the file"
    from rapidfuzz import fuzz, process

    nearest = process.extractOne(longest, ground.stripped, scorer=fuzz.ratio, score_cutoff=50)
    if nearest is None:
        return "nothing in the file is like it; look at the file again and send the change anew"
    number = nearest[2]
    shown = [f"{at + 1}: {ground.lines[at][:_WIDEST]}" for at in _around(number, len(ground.lines))]
    return "copy it exactly from the file; the nearest lines are\n" + "\n".join(shown)


def _around(number: int, count: int) -> range:
    return range(max(0, number - 1), min(count, number + 2))
