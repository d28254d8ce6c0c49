"""Node order with few line crossings, and positions of nodes and lines in cells.

Layers are side by side. Each node has one lane to its left, a vertical line that joins its dependencies;
a longer line has its own row in the layers that it skips. Sweeps place items at the barycentre of their
neighbours (Sugiyama, Tagawa and Toda, 1981) and keep the best order; then swaps of adjacent items reduce
crossings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

#: Sweeps in both directions, and rounds of swaps; more have little effect.
_SWEEPS, _ROUNDS = 8, 4


@dataclass(slots=True, eq=False)
class LayerItem:
    """A node, or (with `passes`) a line through a layer."""

    name: str
    passes: bool = False
    row: int = 0
    sources: list[LayerItem] = field(default_factory=list)
    targets: list[LayerItem] = field(default_factory=list)
    #: From 0; -1 if its only line is straight.
    lane: int = -1

    @property
    def span(self) -> tuple[int, int]:
        rows = [self.row, *(source.row for source in self.sources)]
        return min(rows), max(rows)


def order_layers(layers: list[list[LayerItem]]) -> None:
    best, fewest = [list(layer) for layer in layers], crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        for index in range(1, len(layers)) if forth else range(len(layers) - 2, -1, -1):
            beside = _rows(layers[index - 1 if forth else index + 1])
            centres = {}
            for row, item in enumerate(layers[index]):
                rows = [beside[id(other)] for other in (item.sources if forth else item.targets)]
                centres[id(item)] = sum(rows) / len(rows) if rows else row
            layers[index].sort(key=lambda item, centres=centres: centres[id(item)])
        found = crossings(layers)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept
    for _ in range(_ROUNDS if fewest else 0):
        if not _swap(layers):
            break


def crossings(layers: Sequence[Sequence[LayerItem]]) -> int:
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


def _swap(layers: list[list[LayerItem]]) -> bool:
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
    return sum(bisect_left(lower, end) for end in upper)


def _rows(layer: Sequence[LayerItem]) -> dict[int, int]:
    return {id(item): row for row, item in enumerate(layer)}


@dataclass(slots=True)
class Layout:
    """`lanes` is the number of lanes in front of each layer."""

    layers: list[list[LayerItem]]
    lanes: list[int]
    rows: int


def assign_positions(layers: Sequence[Sequence[str]], waits_for: Mapping[str, Sequence[str]]) -> Layout:
    """Each name may wait for names of earlier layers."""
    items = _with_passes(layers, waits_for)
    order_layers(items)
    for layer in items:
        free = 0
        for item in layer:
            rows = sorted(source.row for source in item.sources)
            wanted = rows[(len(rows) - 1) // 2] if rows else free
            if len(item.sources) == 2:
                wanted = rows[-1]
            item.row = max(wanted, free)
            free = item.row + 1
    _part_lines(items)
    lanes = [_assign_lanes(layer) for layer in items]
    rows = 1 + max((item.row for layer in items for item in layer), default=-1)
    return Layout(items, lanes, rows)


def _with_passes(
    layers: Sequence[Sequence[str]], waits_for: Mapping[str, Sequence[str]]
) -> list[list[LayerItem]]:
    columns: list[list[LayerItem]] = []
    #: By name, the furthest layer of its line so far, and the item there.
    ends: dict[str, tuple[int, LayerItem]] = {}
    for index, names in enumerate(layers):
        columns.append([])
        for name in names:
            item = LayerItem(name)
            for needed in dict.fromkeys(waits_for.get(name, ())):
                if needed not in ends:
                    continue
                last, end = ends[needed]
                for at in range(last + 1, index):
                    passing = LayerItem(needed, passes=True)
                    columns[at].append(passing)
                    _tie(end, passing)
                    end = passing
                ends[needed] = index - 1, end
                _tie(end, item)
            columns[index].append(item)
        ends |= {item.name: (index, item) for item in columns[index]}
    return columns


def _tie(source: LayerItem, target: LayerItem) -> None:
    source.targets.append(target)
    target.sources.append(source)


def _part_lines(items: list[list[LayerItem]]) -> None:
    """Shifts later layers by half a row if lines would overlap."""
    shift, shifts = 0, [0] * len(items)
    for index, layer in enumerate(items[:-1]):
        beyond = {target.row for item in layer for target in item.targets}
        for source in layer:
            only_line = {target.row for target in source.targets} == {source.row}
            fans_out = all(len(target.sources) == 1 for target in source.targets)
            on_row = any(target.row == source.row for target in source.targets)
            if source.targets and source.row in beyond and not only_line and not (fans_out and on_row):
                shift ^= 1
                break
        shifts[index + 1] = shift
    if not any(shifts):
        return
    for layer, down in zip(items, shifts, strict=True):
        for item in layer:
            item.row = item.row * 2 + down


def _assign_lanes(layer: Sequence[LayerItem]) -> int:
    """Assigns each item the first lane with free rows. Only items with the same single dependency share a
    lane.
    """
    groups: dict[int, list[LayerItem]] = {}
    for item in layer:
        if item.sources and item.span[0] != item.span[1]:
            groups.setdefault(id(item.sources[0] if len(item.sources) == 1 else item), []).append(item)
    taken: list[list[tuple[int, int]]] = []
    for group in groups.values():
        low, high = min(item.span[0] for item in group), max(item.span[1] for item in group)
        fits = (n for n, spans in enumerate(taken) if all(high < a or low > b for a, b in spans))
        lane = next(fits, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        for item in group:
            item.lane = lane
    return len(taken)
