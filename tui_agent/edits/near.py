"""Places that are nearly what was asked for: one window of lines clearly better than every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tui_agent.edits.ground import Ground
from tui_agent.errors import Ambiguous

#: How much worse, of 1, the second best place must be.
MARGIN = 0.05
#: A single line shorter than this is like too many others.
SHORTEST = 40
#: Up to so many lines every window is compared, above only those that share a line with the search.
_FEW_LINES = 4
_COMMON = 50
_CANDIDATES = 64
_WIDEST = 120
_LARGEST = 200_000


def window(ground: Ground, lines: Sequence[str], threshold: float) -> int | None:
    """The first line of the window most like `lines`, None where none reaches the floor.

    The measure is the normalised edit similarity of the lines without the space around them (rapidfuzz
    `ratio`). Raises `Ambiguous` where a second place comes within `MARGIN` of the best.
    """
    bare = [line.strip() for line in lines]
    text = "\n".join(bare)
    worded = [line for line in bare if line]
    if not worded or (len(worded) == 1 and len(text) < SHORTEST) or len(text) > _LARGEST:
        return None
    from rapidfuzz import fuzz

    floor = max(threshold - MARGIN, 0.0) * 100
    scores = [
        (score, first)
        for first in _candidates(ground, bare)
        if (
            score := fuzz.ratio(
                text, "\n".join(ground.stripped[first : first + len(bare)]), score_cutoff=floor
            )
        )
    ]
    scores.sort(key=lambda pair: (-pair[0], pair[1]))
    if not scores or scores[0][0] < threshold * 100:
        return None
    best, first = scores[0]
    rival = next((at for score, at in scores[1:] if score > best - MARGIN * 100), None)
    if rival is not None:
        raise Ambiguous(
            f"two places are nearly the same as the search text, at lines {first + 1} and {rival + 1}",
            "copy the search text exactly from the file",
        )
    return first


def _candidates(ground: Ground, bare: Sequence[str]) -> Iterable[int]:
    last = len(ground.stripped) - len(bare)
    if len(bare) < _FEW_LINES:
        return range(last + 1)
    votes: Counter[int] = Counter()
    for number, line in enumerate(bare):
        places = ground.by_stripped.get(line, ()) if line else ()
        if len(places) <= _COMMON:
            votes.update(place - number for place in places)
    return [first for first, _ in votes.most_common(_CANDIDATES) if 0 <= first <= last]


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
