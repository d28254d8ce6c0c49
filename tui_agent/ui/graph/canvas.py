"""A layered graph as rows of characters with the node or edges behind each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tui_agent.ui.graph.node_layout import LayerItem, assign_positions

_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_GLYPHS = dict(zip(range(1, 16), "───│┘└┴│┐┌┬│┤├┼", strict=True))
#: Cells of edge before the first lane and after the last one, arrow and space included.
_BEFORE, _AFTER = 2, 3


class Node(NamedTuple):
    """Position of a node's label: first cell and row."""

    name: str
    x: int
    y: int
    width: int


class LineGlyph(NamedTuple):
    """One character of an edge, and the nodes of all edges through its cell."""

    glyph: str
    names: frozenset[str]


class Canvas:
    """The drawn graph: `nodes` by name, `rows` of nodes, `marks` by row and cell.

    `lefts` and `rights` are the first and last cells of each layer.
    """

    def __init__(
        self,
        layers: Sequence[Sequence[str]],
        waits_for: Mapping[str, Sequence[str]],
        widths: Mapping[str, int],
    ) -> None:
        self.layout = assign_positions(layers, waits_for)
        self.nodes: dict[str, Node] = {}
        self.rows: list[list[Node]] = [[] for _ in range(self.layout.rows)]
        self.marks: list[dict[int, LineGlyph]] = [{} for _ in range(self.layout.rows)]
        self.width = 0
        self.height = self.layout.rows
        self._bits: list[dict[int, int]] = [{} for _ in range(self.layout.rows)]
        self._names: dict[tuple[int, int], frozenset[str]] = {}
        self.lefts, self.rights = self._columns(widths)
        for index, layer in enumerate(self.layout.layers):
            self._draw_layer(index, layer, widths)
        self._ink()

    def _columns(self, widths: Mapping[str, int]) -> tuple[list[int], list[int]]:
        lefts, rights, x = [], [], 0
        for layer, lanes in zip(self.layout.layers, self.layout.lanes, strict=True):
            if lefts:
                x += _BEFORE + max(2 * lanes - 1, 0) + _AFTER
            lefts.append(x)
            x += max((widths[item.name] for item in layer if not item.passes), default=0)
            rights.append(x)
        self.width = x
        return lefts, rights

    def _draw_layer(self, index: int, layer: list[LayerItem], widths: Mapping[str, int]) -> None:
        left, right = self.lefts[index], self.rights[index]
        for item in layer:
            if item.passes:
                self._run(item.row, left, right - 1, item.name)
            else:
                node = Node(item.name, left, item.row, widths[item.name])
                self.nodes[item.name] = node
                self.rows[item.row].append(node)
                if item.targets:
                    self._run(item.row, left + widths[item.name], right - 1, item.name)
            if item.sources:
                self._draw_arrival(index, item)
            if item.targets:
                self._draw_departure(index, item)

    def _draw_departure(self, index: int, item: LayerItem) -> None:
        lanes = [target.lane for target in item.targets if target.row != item.row or target.lane >= 0]
        furthest = max((self._lane_x(index + 1, lane) for lane in lanes), default=self.rights[index])
        joined = {self._lane_x(index + 1, lane) for lane in lanes}
        crossed = self._verticals(index + 1, item.row) - joined
        for x in range(self.rights[index], furthest + 1):
            if x not in crossed:
                self._add(item.row, x, _LEFT | (_RIGHT if x < furthest else 0), item.name)

    def _draw_arrival(self, index: int, item: LayerItem) -> None:
        """Draws the lane of an item and the edge into the item, with an arrow before a node."""
        start = self.rights[index - 1] if item.lane < 0 else self._lane_x(index, item.lane)
        if item.lane >= 0:
            low, high = item.span
            for y in range(low, high + 1):
                self._add(y, start, (_UP if y > low else 0) | (_DOWN if y < high else 0), item.name)
            self._add(item.row, start, _RIGHT, item.name)
            start += 1
        straight = [source for source in item.sources if source.row == item.row]
        joined = {self._lane_x(index, other.lane) for source in straight for other in source.targets}
        crossed = self._verticals(index, item.row) - joined
        for x in range(start, self.lefts[index]):
            if x not in crossed:
                self._add(item.row, x, _LEFT | _RIGHT, item.name)
        if not item.passes:
            arrow = self.lefts[index] - 2
            self._bits[item.row].pop(arrow, None)
            self._bits[item.row].pop(arrow + 1, None)
            self.marks[item.row][arrow] = LineGlyph("▶", frozenset({item.name}))

    def _verticals(self, index: int, row: int) -> set[int]:
        found = set()
        for item in self.layout.layers[index]:
            low, high = item.span
            if item.lane >= 0 and low <= row <= high and item.row != row:
                found.add(self._lane_x(index, item.lane))
        return found

    def _lane_x(self, index: int, lane: int) -> int:
        return self.rights[index - 1] + _BEFORE + 2 * lane

    def _run(self, row: int, start: int, end: int, name: str) -> None:
        for x in range(start, end + 1):
            self._add(row, x, _LEFT | _RIGHT, name)

    def _add(self, row: int, x: int, bits: int, name: str) -> None:
        self._bits[row][x] = self._bits[row].get(x, 0) | bits
        self._names[row, x] = self._names.get((row, x), frozenset()) | {name}

    def _ink(self) -> None:
        for row, cells in enumerate(self._bits):
            for x, bits in cells.items():
                self.marks[row].setdefault(x, LineGlyph(_GLYPHS[bits], self._names[row, x]))
            self.marks[row] = dict(sorted(self.marks[row].items()))
