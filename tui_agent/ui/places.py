"""Where each pane stands on a screen of a given size: three columns, two, or one; what has no place is a tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace
from textual.geometry import Region, Size

from tui_agent.store.state import LayoutSlice

Mode = Literal["wide", "medium", "narrow"]
WIDE_FROM, MEDIUM_FROM = 120, 90
#: Cells of ground between panes side by side.
GAP = 1


class Place(NamedTuple):
    """A part of the screen: the panes that share it as tabs, the one in front, the line above it and its body.

    `key` names it in the layout's `tabs`.
    """

    key: str
    panes: tuple[str, ...]
    front: str
    header: Region
    body: Region


class Cell(NamedTuple):
    """Panes that share a place; `share` is its part of the height (of the width, for those side by side)."""

    share: float
    panes: tuple[str, ...]


Row = tuple[Cell, ...]

#: Panes whose own first line is their title, where they share their place with no other.
OWN_TITLE = frozenset({"buffers"})


class Column(NamedTuple):
    """`share` of the width, at least and at most so many cells; rows from the top, each with its share."""

    share: float
    least: int
    most: int
    rows: tuple[tuple[float, Row], ...]


LAYOUTS: dict[Mode, tuple[Column, ...]] = {
    "wide": (
        Column(0.2, 26, 40, ((0.52, (Cell(1, ("files",)),)), (0.48, (Cell(1, ("plan", "known")),)))),
        Column(0.46, 40, 999, ((0.5, (Cell(1, ("buffers",)),)), (0.5, (Cell(1, ("review",)),)))),
        Column(
            0.34,
            46,
            90,
            ((0.7, (Cell(1, ("chat",)),)), (0.3, (Cell(0.44, ("todos",)), Cell(0.56, ("subtasks",))))),
        ),
    ),
    "medium": (
        Column(0.5, 40, 999, ((1.0, (Cell(1, ("buffers", "review", "files", "known")),)),)),
        Column(
            0.5, 40, 999, ((0.66, (Cell(1, ("chat",)),)), (0.34, (Cell(1, ("plan", "todos", "subtasks")),)))
        ),
    ),
    "narrow": (
        Column(
            1.0,
            1,
            999,
            (
                (
                    1.0,
                    (Cell(1, ("chat", "review", "buffers", "files", "plan", "todos", "subtasks", "known")),),
                ),
            ),
        ),
    ),
}


#: What one step of resizing makes of a share, and how far it goes in either direction.
STEP, FURTHEST = 1.2, 5.0
Axis = Literal["width", "height"]


def resized(size: Size, layout: LayoutSlice, pane: str, axis: Axis, steps: int) -> LayoutSlice:
    """The layout with the part in which a pane stands so many steps wider or taller, or less so.

    The same layout where nothing stands beside it that could give way.
    """
    part = _part_of(mode_of(size.width), layout, pane, axis)
    if not part or layout.zoomed:
        return layout
    factor = layout.sizes.get(part, 1.0) * STEP**steps
    return replace(layout, sizes={**layout.sizes, part: min(max(factor, 1 / FURTHEST), FURTHEST)})


def _part_of(mode: Mode, layout: LayoutSlice, pane: str, axis: Axis) -> str:
    """The name of the smallest part that can change; nothing where there is none."""
    columns = [column for column in LAYOUTS[mode] if _left(column, layout)]
    for column in columns:
        rows = [row for _, row in column.rows if any(_shown(cell, layout) for cell in row)]
        for row in rows:
            cells = [cell for cell in row if _shown(cell, layout)]
            cell = next((cell for cell in cells if pane in cell.panes), None)
            if cell is None:
                continue
            if axis == "height":
                return _name(mode, row[0]) if len(rows) > 1 else ""
            if len(cells) > 1:
                return _name(mode, cell, "cell")
            return _name(mode, column.rows[0][1][0], "column") if len(columns) > 1 else ""
    return ""


def _name(mode: Mode, cell: Cell, part: str = "row") -> str:
    """What a part is called in the layout's `sizes`: by the first pane that ever stands in it."""
    return f"{mode}.{part}.{cell.panes[0]}"


def _sized(share: float, layout: LayoutSlice, name: str) -> float:
    return share * layout.sizes.get(name, 1.0)


def mode_of(width: int) -> Mode:
    if width >= WIDE_FROM:
        return "wide"
    return "medium" if width >= MEDIUM_FROM else "narrow"


def places(size: Size, layout: LayoutSlice) -> list[Place]:
    """The places on a screen of that size (in cells), each with a line for its title above its body."""
    mode = mode_of(size.width)
    if layout.zoomed:
        return [_place(mode, (layout.zoomed,), layout, size.region)]
    found = []
    columns = [_as_sized(mode, column, layout) for column in LAYOUTS[mode] if _left(column, layout)]
    for column, x, width in zip(
        columns, *_columns(columns, size.width - GAP * (len(columns) - 1)), strict=True
    ):
        rows = [
            (_sized(share, layout, _name(mode, row[0])), row)
            for share, row in column.rows
            if any(_shown(cell, layout) for cell in row)
        ]
        for (_, row), y, height in zip(rows, *_split([share for share, _ in rows], size.height), strict=True):
            cells = [cell for cell in row if _shown(cell, layout)]
            shares = [_sized(cell.share, layout, _name(mode, cell, "cell")) for cell in cells]
            for cell, left, across in zip(cells, *_split(shares, width, GAP), strict=True):
                region = Region(x + left, y, across, height)
                found.append(_place(mode, _shown(cell, layout), layout, region))
    return found


def _place(mode: Mode, panes: tuple[str, ...], layout: LayoutSlice, region: Region) -> Place:
    key = f"{mode}.{panes[0]}"
    chosen = layout.focus if layout.focus in panes else layout.tabs.get(key, "")
    front = chosen if chosen in panes else panes[0]
    own = panes[0] if len(panes) == 1 else ""
    header, body = region.split_horizontal(0 if own in OWN_TITLE else min(1, region.height))
    return Place(key, panes, front, header, body)


def _as_sized(mode: Mode, column: Column, layout: LayoutSlice) -> Column:
    """The column as the person sized it, which may be wider than it is by itself."""
    name = _name(mode, column.rows[0][1][0], "column")
    if name not in layout.sizes:
        return column
    return column._replace(
        share=_sized(column.share, layout, name), most=column.most if layout.sizes[name] <= 1 else 999
    )


def _shown(cell: Cell, layout: LayoutSlice) -> tuple[str, ...]:
    return tuple(pane for pane in cell.panes if pane not in layout.hidden)


def _left(column: Column, layout: LayoutSlice) -> bool:
    return any(_shown(cell, layout) for _, row in column.rows for cell in row)


def _columns(columns: Sequence[Column], width: int) -> tuple[list[int], list[int]]:
    """Left edges and widths: each its share within its bounds, what is left over goes to the widest."""
    total = sum(column.share for column in columns) or 1
    widths = [min(max(round(width * c.share / total), c.least), c.most) for c in columns]
    over = sum(widths) - width
    for at in sorted(range(len(widths)), key=lambda i: columns[i].least - widths[i]):
        taken = min(max(over, 0), widths[at] - columns[at].least)  # of those with most to spare
        widths[at], over = widths[at] - taken, over - taken
    if widths:
        widest = max(range(len(widths)), key=lambda i: columns[i].share)
        widths[widest] -= over
    return _starts(widths, GAP), widths


def _split(shares: Sequence[float], length: int, gap: int = 0) -> tuple[list[int], list[int]]:
    """Offsets and lengths of parts side by side, so many cells apart."""
    total = sum(shares) or 1
    length -= gap * (len(shares) - 1)
    lengths = [round(length * share / total) for share in shares]
    if lengths:
        lengths[0] += length - sum(lengths)
    return _starts(lengths, gap), lengths


def _starts(lengths: Sequence[int], gap: int) -> list[int]:
    return [sum(lengths[:i]) + gap * i for i in range(len(lengths))]
