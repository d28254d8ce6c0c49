"""Making a pane wider, narrower, taller or shorter: its neighbours give way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace
from textual.geometry import Size

from tui_agent.store.state import LayoutSlice
from tui_agent.ui.layout.areas import Cell, cells_of, columns_of, name_of, rows_of

Axis = Literal["width", "height"]
#: Cells of the screen for one press of a key.
STEPS: dict[Axis, int] = {"width": 4, "height": 2}
#: What a row and a cell beside another keep; a column says it itself.
LEAST_HEIGHT, LEAST_WIDTH = 4, 10


class Part(NamedTuple):
    """A part of the screen beside others: its name in the layout's `sizes`, its length now, and the least of it."""

    name: str
    length: int
    least: int


def resized(size: Size, layout: LayoutSlice, pane: str, axis: Axis, cells: int) -> LayoutSlice:
    """The layout with the part in which a pane stands so many cells longer, at the cost of the part after it (of the
    one before the last). The same layout where there is nothing that could give way."""
    parts, at = _beside(size, layout, pane, axis)
    if layout.zoomed or len(parts) < 2:
        return layout
    other = at + 1 if at + 1 < len(parts) else at - 1
    taken = min(max(cells, parts[at].least - parts[at].length), parts[other].length - parts[other].least)
    if taken * cells <= 0:
        return layout
    lengths = [part.length for part in parts]
    lengths[at] += taken
    lengths[other] -= taken
    shares = {part.name: length / sum(lengths) for part, length in zip(parts, lengths, strict=True)}
    return replace(layout, sizes={**layout.sizes, **shares})


def _beside(size: Size, layout: LayoutSlice, pane: str, axis: Axis) -> tuple[list[Part], int]:
    """The smallest parts along an axis of which one holds the pane, and which of them that is."""
    columns = columns_of(size, layout)
    for at_column, (column, _, width) in enumerate(columns):
        rows = rows_of(column, size, layout)
        for at_row, (row, _, _) in enumerate(rows):
            cells = cells_of(row, width, layout)
            at_cell = _holds([cell for cell, _, _ in cells], pane)
            if at_cell is None:
                continue
            if axis == "height":
                return [Part(name_of("row", row), length, LEAST_HEIGHT) for row, _, length in rows], at_row
            if len(cells) > 1:
                return [Part(name_of("cell", (c,)), length, LEAST_WIDTH) for c, _, length in cells], at_cell
            return [
                Part(name_of("column", c.rows[0][1]), length, c.least) for c, _, length in columns
            ], at_column
    return [], 0


def _holds(cells: Sequence[Cell], pane: str) -> int | None:
    return next((at for at, cell in enumerate(cells) if pane in cell.panes), None)
