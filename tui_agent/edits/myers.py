"""The shortest way from one list of lines to another, as long as it is short."""

from __future__ import annotations

from collections.abc import Sequence

Match = tuple[int, int, int]


def matches(old: Sequence[str], new: Sequence[str], most: int) -> list[Match] | None:
    """Runs of equal lines on a shortest edit script of at most `most` lines added and removed, else None.

    The greedy algorithm of E. Myers, "An O(N·D) Difference Algorithm and Its Variations" (1986): for each number
    of edits the furthest point on every diagonal, kept so that the way can be walked back.
    """
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(most, len(old) + len(new)) + 1):
        trail.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            at = _step(furthest, diagonal, edits)
            to = at - diagonal
            while at < len(old) and to < len(new) and old[at] == new[to]:
                at, to = at + 1, to + 1
            furthest[diagonal] = at
            if at >= len(old) and to >= len(new):
                return _walked_back(trail, len(old), len(new))
    return None


def _step(furthest: dict[int, int], diagonal: int, edits: int) -> int:
    """Where the diagonal is entered: from above (a line added), else from the left (a line removed)."""
    added = furthest.get(diagonal + 1, -1)
    removed = furthest.get(diagonal - 1, -1)
    if diagonal == -edits or (diagonal != edits and removed < added):
        return added
    return removed + 1


def _walked_back(trail: list[dict[int, int]], at: int, to: int) -> list[Match]:
    found: list[Match] = []
    for edits in range(len(trail) - 1, -1, -1):
        furthest = trail[edits]
        diagonal = at - to
        entered = _step(furthest, diagonal, edits)
        if at > entered:
            found.append((entered, entered - diagonal, at - entered))
        down = diagonal == -edits or (
            diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        at = entered if down else entered - 1
        to = entered - diagonal - (1 if down else 0)
    return found[::-1]
