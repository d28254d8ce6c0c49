"""Where the nodes of a layered graph stand and which way its lines go, in cells.

Layers are side by side. Between two of them every node on the right has one lane, a vertical line in which all
that it waits for come together: what is shared is drawn once. A line that skips a layer passes it on a row of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from tui_agent.ui.widgets.graph_order import LayerItem, put_in_order


@dataclass(slots=True)
class Layout:
    """The layers from left to right, each from top to bottom, and the number of lanes in front of each."""

    layers: list[list[LayerItem]]
    lanes: list[int]
    rows: int


def lay_out(layers: Sequence[Sequence[str]], waits_for: Mapping[str, Sequence[str]]) -> Layout:
    """Place `layers` of names; each name may wait for names of earlier layers."""
    items = _with_passes(layers, waits_for)
    put_in_order(items)
    _place(items)
    _part_lines(items)
    lanes = [_assign_lanes(layer) for layer in items]
    rows = 1 + max((item.row for layer in items for item in layer), default=-1)
    return Layout(items, lanes, rows)


def _with_passes(
    layers: Sequence[Sequence[str]], waits_for: Mapping[str, Sequence[str]]
) -> list[list[LayerItem]]:
    columns: list[list[LayerItem]] = []
    ends: dict[str, tuple[int, LayerItem]] = {}
    for index, names in enumerate(layers):
        columns.append([])
        for name in names:
            item = LayerItem(name)
            for needed in dict.fromkeys(waits_for.get(name, ())):
                if needed in ends and ends[needed][0] < index:
                    _tie(_reach(columns, ends, needed, index - 1), item)
            columns[index].append(item)
        ends |= {item.name: (index, item) for item in columns[index] if not item.passes}
    return columns


def _reach(
    columns: list[list[LayerItem]], ends: dict[str, tuple[int, LayerItem]], name: str, index: int
) -> LayerItem:
    """The end of the line from `name` in layer `index`, led there past the layers between."""
    at, item = ends[name]
    while at < index:
        at += 1
        passing = next((other for other in columns[at] if other.passes and other.name == name), None)
        if passing is None:
            passing = LayerItem(name, passes=True)
            columns[at].append(passing)
            _tie(item, passing)
        item = passing
    return item


def _tie(source: LayerItem, target: LayerItem) -> None:
    source.targets.append(target)
    target.sources.append(source)


def _place(items: list[list[LayerItem]]) -> None:
    """Each item on the middle row of what it is tied to, or the next free one below."""
    for layer in items:
        free = 0
        for item in layer:
            wanted = median_low(source.row for source in item.sources) if item.sources else free
            if len(item.sources) == 2:
                wanted = max(source.row for source in item.sources)
            item.row = max(wanted, free)
            free = item.row + 1


def _part_lines(items: list[list[LayerItem]]) -> None:
    """Where lines that leave a row would run into lines that reach it, move the layers behind by half a row."""
    shift, shifts = 0, [0] * len(items)
    for index, layer in enumerate(items[:-1]):
        shift ^= not _is_clear(layer)
        shifts[index + 1] = shift
    if not any(shifts):
        return
    for layer, down in zip(items, shifts, strict=True):
        for item in layer:
            item.row = item.row * 2 + down


def _is_clear(layer: Sequence[LayerItem]) -> bool:
    """Whether every line that reaches a row of this layer can be followed back without doubt."""
    beyond = {target.row for item in layer for target in item.targets}
    for source in layer:
        only_line = {target.row for target in source.targets} == {source.row}
        fans_out = all(len(target.sources) == 1 for target in source.targets)
        on_row = any(target.row == source.row for target in source.targets)
        if source.targets and source.row in beyond and not only_line and not (fans_out and on_row):
            return False
    return True


def _assign_lanes(layer: Sequence[LayerItem]) -> int:
    """Give each item that needs one the first lane whose rows are free; how many lanes there are.

    Items that wait for one and the same source only share a lane.
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
