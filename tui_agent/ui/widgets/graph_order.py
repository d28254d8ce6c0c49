"""The items of a layered graph, and in which order those of each layer stand, so that few lines cross.

Sweeps put each item at the barycentre of what it is tied to in the layer before, then behind (Sugiyama, Tagawa and
Toda, 1981); the best of them is kept. Neighbours then change places while that parts lines that cross.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

#: Sweeps forth and back, and rounds of neighbours changing places: more of them part hardly a line.
_SWEEPS, _ROUNDS = 8, 4


@dataclass(slots=True, eq=False)
class LayerItem:
    """A node, or (with `passes`) the place where a line from that node passes a layer."""

    name: str
    passes: bool = False
    row: int = 0
    sources: list[LayerItem] = field(default_factory=list)
    targets: list[LayerItem] = field(default_factory=list)
    #: The lane in front of it, from 0; -1 where its only line comes straight.
    lane: int = -1

    @property
    def span(self) -> tuple[int, int]:
        """The rows that its lane reaches over."""
        rows = [self.row, *(source.row for source in self.sources)]
        return min(rows), max(rows)


def put_in_order(layers: list[list[LayerItem]]) -> None:
    """Sort each layer in place."""
    best, fewest = [list(layer) for layer in layers], crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        _sweep(layers, forth=sweep % 2 == 0)
        found = crossings(layers)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept
    for _ in range(_ROUNDS if fewest else 0):
        if not _swap(layers):
            break


def crossings(layers: Sequence[Sequence[LayerItem]]) -> int:
    """How many pairs of lines between neighbouring layers cross."""
    found = 0
    for left, right in pairwise(layers):
        rows = _rows(right)
        passed: list[int] = []
        for item in left:
            ends = sorted(rows[id(target)] for target in item.targets)
            found += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return found


def _sweep(layers: list[list[LayerItem]], *, forth: bool) -> None:
    for index in range(1, len(layers)) if forth else range(len(layers) - 2, -1, -1):
        beside = _rows(layers[index - 1 if forth else index + 1])
        centres = {}
        for row, item in enumerate(layers[index]):
            rows = [beside[id(other)] for other in (item.sources if forth else item.targets)]
            centres[id(item)] = sum(rows) / len(rows) if rows else row
        layers[index].sort(key=lambda item, centres=centres: centres[id(item)])


def _swap(layers: list[list[LayerItem]]) -> bool:
    """Let neighbours change places where fewer lines cross then; whether any did."""
    swapped = False
    for index, layer in enumerate(layers):
        before = _rows(layers[index - 1]) if index else {}
        behind = _rows(layers[index + 1]) if index + 1 < len(layers) else {}
        ends = {
            id(item): (
                sorted(before[id(other)] for other in item.sources),
                sorted(behind[id(other)] for other in item.targets),
            )
            for item in layer
        }
        for at in range(len(layer) - 1):
            upper, lower = ends[id(layer[at])], ends[id(layer[at + 1])]
            now = sum(_crossed(up, low) for up, low in zip(upper, lower, strict=True))
            then = sum(_crossed(low, up) for up, low in zip(upper, lower, strict=True))
            if then < now:
                layer[at], layer[at + 1] = layer[at + 1], layer[at]
                swapped = True
    return swapped


def _crossed(upper: Sequence[int], lower: Sequence[int]) -> int:
    """How many lines of the upper of two neighbours cross lines of the lower one, on one side of them."""
    return sum(bisect_left(lower, end) for end in upper)


def _rows(layer: Sequence[LayerItem]) -> dict[int, int]:
    return {id(item): row for row, item in enumerate(layer)}
