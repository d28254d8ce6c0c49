"""The shortest way from one list of lines to another, as long as it is short."""

from __future__ import annotations

from collections.abc import Sequence

Match = tuple[int, int, int]


def matches(old: Sequence[str], new: Sequence[str], most: int) -> list[Match] | None:
    """Runs of equal lines on a shortest edit script of at most `most` lines added and removed, else None.

    The greedy algorithm of E. Myers, "An O(N·D) Difference Algorithm and Its Variations" (1986): for each number
    of edits the furthest point on every diagonal, kept so that the way can be walked back.
    """
    height, width = len(old), len(new)
    most = min(most, height + width)
    if abs(height - width) > most:
        return None
    zero = most + 1  # where the diagonal 0 is in the list
    furthest = [-1] * (2 * zero + 1)
    furthest[zero + 1] = 0
    trail: list[list[int]] = []
    for edits in range(most + 1):
        trail.append(furthest[zero - edits - 1 : zero + edits + 2])
        for diagonal in range(-edits, edits + 1, 2):
            added, removed = furthest[zero + diagonal + 1], furthest[zero + diagonal - 1]
            at = added if removed < added else removed + 1
            to = at - diagonal
            while at < height and to < width and old[at] == new[to]:
                at, to = at + 1, to + 1
            furthest[zero + diagonal] = at
            if at >= height and to >= width:
                return _walked_back(trail, height, width)
    return None


def _walked_back(trail: list[list[int]], at: int, to: int) -> list[Match]:
    found: list[Match] = []
    for edits in range(len(trail) - 1, -1, -1):
        diagonal = at - to
        here = diagonal + edits + 1
        added, removed = trail[edits][here + 1], trail[edits][here - 1]
        down = removed < added
        entered = added if down else removed + 1
        if at > entered:
            found.append((entered, entered - diagonal, at - entered))
        at = entered if down else entered - 1
        to = entered - diagonal - (1 if down else 0)
    return found[::-1]
