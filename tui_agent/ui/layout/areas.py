"""Responsive pane layout in one, two or three columns.

The *centre* is the column of the pane in use: chat, review or editor, with 90 columns of text if
possible. Empty panes fold to their title: a tab if they share a row, a line in a column, or a line below
the next column if the whole column folds. The focused pane never folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from msgspec.structs import replace
from textual.geometry import Region, Size

from tui_agent.store.layout import LayoutSlice
from tui_agent.ui.panes import PANES

if TYPE_CHECKING:
    from tui_agent.store.state import State

#: Need of a pane that uses all available space.
ANY = 999


class SpaceNeed(NamedTuple):
    """Rows (0: empty) and columns a pane can fill, and whether it awaits the user."""

    rows: int = ANY
    columns: int = ANY
    waits: bool = False


Needs = Mapping[str, SpaceNeed]
NOTHING = SpaceNeed(0, 0)
AT_FIRST: Needs = {"files": SpaceNeed(), "chat": SpaceNeed()}
#: Rows and columns per task in the graph, and rows around it (limits, details, actions).
_TASK_ROWS, _TASK_COLUMNS, _AROUND = 3, 24, 10
#: Characters of a todo per line beside the sub-tasks.
_TODO_LETTERS = 20
#: Plan rows: files per action, alternative files, and a question without its choices.
_FILES, _OTHERS, _QUESTION = 6, 3, 6


def needs_of(state: State) -> Needs:
    """A missing pane is empty, and `OPENED` applies to it until the first turn."""
    plan, todos, tasks = state.plan, state.todos, state.subtasks.tasks
    found = {
        "known": SpaceNeed(len(state.known.files) + 2) if state.known.files else NOTHING,
        "buffers": SpaceNeed() if state.buffers.open else NOTHING,
        "review": SpaceNeed(waits=bool(state.review.open)) if state.review.changes else NOTHING,
        **dict.fromkeys(("plan", "todos", "subtasks"), NOTHING),
    }
    rows = len(plan.directories) + len(plan.listed) + len(plan.faults)
    for action in plan.actions:
        rows += 1 + len(action.earlier) + len(action.action.steps) + min(len(action.loaded), _FILES)
        rows += min(len(action.others), _OTHERS) + (action.state in ("skipped", "create", "failed"))
        rows += _QUESTION + min(len(action.nearest), 9) if action.state == "asking" else 0
    if rows:
        found["plan"] = SpaceNeed(rows, waits=state.turn.phase == "waiting")
    if todos:
        rows = sum(1 + len(todo.text) // _TODO_LETTERS for todo in todos)
        found["todos"] = SpaceNeed(rows + 1, min(max(len(todo.text) for todo in todos), 40) + 12)
    if tasks:
        from tui_agent.store.graph import layers

        depth = [len(layer) for layer in layers(tasks)]
        found["subtasks"] = SpaceNeed(max(depth) * _TASK_ROWS + _AROUND, len(depth) * _TASK_COLUMNS)
    begun = state.turn.number > 0
    return {**AT_FIRST, **{pane: need for pane, need in found.items() if need.rows or begun}}


Mode = Literal["wide", "medium", "narrow"]
WIDE_FROM, MEDIUM_FROM = 160, 120
#: Cells of the centre, of which a message has 90 for its text, and its share of a wider screen.
CENTRE, CENTRE_SHARE = 96, 0.56
#: Key in the layout's `tabs` of the centre's pane.
IN_USE = "centre"
#: Panes that a wide screen opens until the first turn, although they are empty.
OPENED: Needs = {"plan": SpaceNeed(3), "known": SpaceNeed(4), "review": SpaceNeed()}
#: Minimum cells of todos and of sub-tasks beside each other.
TASKS_LEAST = 26
GAP = 1


class Area(NamedTuple):
    """A screen region that `panes` share as tabs. `key` is its id in the layout's `tabs`. `front` is "" if
    all panes are folded.
    """

    key: str
    panes: tuple[str, ...]
    front: str
    header: Region
    body: Region


class Cell(NamedTuple):
    """`share` is relative to the column's height or the row's width."""

    share: float
    panes: tuple[str, ...]


Row = tuple[Cell, ...]

#: Panes with their own title line, unless they share their place.
OWN_TITLE = frozenset({"buffers"})


class LayoutColumn(NamedTuple):
    share: float
    least: int
    most: int
    rows: tuple[tuple[float, Row], ...]


def _slot(mode: Mode, name: str, share: float = 1) -> Cell:
    index = get_args(Mode).index(mode)
    panes = [pane for pane in PANES.values() if pane.slots[index].name == name]
    panes.sort(key=lambda pane: pane.slots[index].tab)
    return Cell(share, tuple(pane.id for pane in panes))


LAYOUTS: dict[Mode, tuple[LayoutColumn, ...]] = {
    "wide": (
        LayoutColumn(
            0.18,
            26,
            40,
            (
                (0.45, (_slot("wide", "left"),)),
                (0.33, (_slot("wide", "left-plan"),)),
                (0.22, (_slot("wide", "left-known"),)),
            ),
        ),
        LayoutColumn(
            0.41, 36, 999, ((0.5, (_slot("wide", "middle"),)), (0.5, (_slot("wide", "middle-low"),)))
        ),
        LayoutColumn(
            0.41,
            36,
            999,
            (
                (0.7, (_slot("wide", "right"),)),
                (0.3, (_slot("wide", "right-low-1", 0.44), _slot("wide", "right-low-2", 0.56))),
            ),
        ),
    ),
    "medium": (
        LayoutColumn(
            0.22,
            23,
            40,
            (
                (0.36, (_slot("medium", "side"),)),
                (0.28, (_slot("medium", "side-plan"),)),
                (0.18, (_slot("medium", "side-known"),)),
                (0.18, (_slot("medium", "side-todos"),)),
            ),
        ),
        LayoutColumn(0.78, CENTRE, 999, ((1.0, (_slot("medium", "centre"),)),)),
    ),
    "narrow": (LayoutColumn(1.0, 1, 999, ((1.0, (_slot("narrow", "all"),)),)),),
}


def mode_of(width: int) -> Mode:
    if width >= WIDE_FROM:
        return "wide"
    return "medium" if width >= MEDIUM_FROM else "narrow"


FULL: Needs = dict.fromkeys(PANES, SpaceNeed())


def areas(size: Size, layout: LayoutSlice, needs: Needs = FULL) -> list[Area]:
    mode, needs = mode_of(size.width), _opened_at(size, needs)
    if layout.zoomed:
        return [_place(mode, (layout.zoomed,), layout, needs, size.region)]
    return [
        _place(mode, _shown(cell, layout), layout, needs, Region(x + left, y, across, height))
        for column, x, width in columns_of(size, layout, needs)
        for row, y, height in rows_of(column, size, layout, needs)
        for cell, left, across in cells_of(row, width, layout, needs)
    ]


def _opened_at(size: Size, needs: Needs) -> Needs:
    return {**OPENED, **needs} if size.width >= WIDE_FROM else needs


def columns_of(size: Size, layout: LayoutSlice, needs: Needs) -> list[tuple[LayoutColumn, int, int]]:
    """Columns, left edges, and widths by share within bounds; the widest column absorbs the rest."""
    named = [
        column
        for column in LAYOUTS[mode_of(size.width)]
        if any(_shown(cell, layout) for _, row in column.rows for cell in row)
    ]
    columns = list(_unfolded(named, layout, needs))
    if any(name_of("column", column.rows[0][1]) in layout.sizes for column in columns):
        columns = [
            column._replace(
                share=layout.sizes.get(name_of("column", column.rows[0][1]), column.share),
                least=LEAST_COLUMN,
                most=999,
            )
            for column in columns
        ]
    else:
        used = layout.tabs.get(IN_USE, "chat")
        columns = [
            column._replace(share=CENTRE_SHARE, least=CENTRE, most=999)
            if any(used in cell.panes for _, row in column.rows for cell in row)
            else column
            for column in columns
        ]
    width = size.width - GAP * (len(columns) - 1)
    total = sum(column.share for column in columns) or 1
    widths = [min(max(round(width * c.share / total), c.least), c.most) for c in columns]
    over = sum(widths) - width
    for at in sorted(range(len(widths)), key=lambda i: columns[i].least - widths[i]):
        taken = min(max(over, 0), widths[at] - columns[at].least)  # from the columns with most to spare
        widths[at], over = widths[at] - taken, over - taken
    if widths:
        widest = max(range(len(widths)), key=lambda i: columns[i].share)
        widths[widest] -= over
    return list(zip(columns, _starts(widths, GAP), widths, strict=True))


def rows_of(
    column: LayoutColumn, size: Size, layout: LayoutSlice, needs: Needs
) -> list[tuple[Row, int, int]]:
    """Rows, upper edges and heights: the set size or the share, up to the need; the first absorbs the rest."""
    found = [(share, row) for share, row in column.rows if any(_shown(cell, layout) for cell in row)]
    folded = [not _opened(row, layout, needs) for _, row in found]
    room = size.height - sum(folded)
    opened = [(share, row) for (share, row), shut in zip(found, folded, strict=True) if not shut]
    sized = any(name_of("row", row) in layout.sizes for _, row in opened)
    if sized:
        shares = [layout.sizes.get(name_of("row", row), share) for share, row in opened]
        lengths = _split(shares, room)[1]
    else:
        wanted = [_need(row, layout, needs) for _, row in opened]
        shares = [share * (1 + need.waits) for (share, _), need in zip(opened, wanted, strict=True)]
        lengths = _split(shares, room)[1]
        for at, need in enumerate(wanted[1:], 1):
            lengths[at] = min(lengths[at], max(need.rows + 1, LEAST_HEIGHT))
        if lengths:
            lengths[0] += room - sum(lengths)
    for at, (_, row) in enumerate(opened):
        if any(
            layout.focus in cell.panes for cell in row
        ):  # leaves the focused pane its least height in a low column
            largest = max(range(len(lengths)), key=lengths.__getitem__)
            lack = max(0, min(LEAST_HEIGHT - lengths[at], lengths[largest] - 1))
            lengths[at] += lack
            lengths[largest] -= lack
    rest = iter(lengths)
    heights = [1 if shut else next(rest) for shut in folded]
    return list(zip([row for _, row in found], _starts(heights, 0), heights, strict=True))


def cells_of(row: Row, width: int, layout: LayoutSlice, needs: Needs) -> list[tuple[Cell, int, int]]:
    """Empty cells become tabs of a neighbour; all become tabs of one if they would be too narrow."""
    cells = [cell for cell in row if _shown(cell, layout)]
    opened = [cell for cell in cells if _opened((cell,), layout, needs)]
    if len(opened) < 2 or width < len(opened) * TASKS_LEAST:
        return [(Cell(1, tuple(pane for cell in cells for pane in cell.panes)), 0, width)]
    shares = [layout.sizes.get(name_of("cell", (cell,)), 0) for cell in opened]
    if not any(shares):
        wanted = [max(_need((cell,), layout, needs).columns, 2 * LEAST_WIDTH) for cell in opened]
        shares = [cell.share for cell in opened]
        if max(wanted) < ANY:  # each its need, or an equal part of the rest
            left = 1.0 * width
            for place, at in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
                shares[at] = min(1.0 * wanted[at], left / (len(wanted) - place))
                left -= shares[at]
        shares = [min(max(share / sum(shares), 0.25), 0.75) for share in shares]
    return list(zip(opened, *_split(shares, width, GAP), strict=True))


def _unfolded(columns: Sequence[LayoutColumn], layout: LayoutSlice, needs: Needs) -> Sequence[LayoutColumn]:
    kept: list[LayoutColumn] = []
    titles: tuple[str, ...] = ()
    for column in columns:
        shut = [row for _, row in column.rows if not _opened(row, layout, needs)]
        panes = tuple(pane for row in shut for cell in row for pane in cell.panes)
        if len(shut) == len(column.rows):
            titles += panes
            continue
        if titles:
            column = _with_titles(column, titles, layout, needs)
            titles = ()
        kept.append(column)
    if titles and kept:
        kept[-1] = _with_titles(kept[-1], titles, layout, needs)
    return kept or columns


def _with_titles(
    column: LayoutColumn, titles: tuple[str, ...], layout: LayoutSlice, needs: Needs
) -> LayoutColumn:
    rows = column.rows
    if len(rows) > 1 and not _opened(rows[-1][1], layout, needs):
        titles += tuple(pane for cell in rows[-1][1] for pane in cell.panes)
        rows = rows[:-1]
    return column._replace(rows=(*rows, (0.0, (Cell(1, titles),))))


def _opened(row: Row, layout: LayoutSlice, needs: Needs) -> bool:
    return any(_need_of(pane, layout, needs).rows for cell in row for pane in _shown(cell, layout))


def _need(row: Row, layout: LayoutSlice, needs: Needs) -> SpaceNeed:
    found = [_need_of(pane, layout, needs) for cell in row for pane in _shown(cell, layout)]
    return SpaceNeed(
        max(need.rows for need in found),
        max(need.columns for need in found),
        any(need.waits for need in found),
    )


def _need_of(pane: str, layout: LayoutSlice, needs: Needs) -> SpaceNeed:
    need = needs.get(pane, NOTHING)
    return SpaceNeed(max(need.rows, 8), max(need.columns, 24), need.waits) if pane == layout.focus else need


def name_of(part: Literal["column", "row", "cell"], row: Row) -> str:
    """The key of a part in the layout's `sizes`, built from all panes of its (first) row."""
    return f"{part}:{'+'.join(pane for cell in row for pane in cell.panes)}"


def _place(mode: Mode, panes: tuple[str, ...], layout: LayoutSlice, needs: Needs, region: Region) -> Area:
    key = f"{mode}.{panes[0]}"
    filled = [pane for pane in panes if _need_of(pane, layout, needs).rows or pane == layout.zoomed]
    if not filled:
        return Area(key, panes, "", region, Region(region.x, region.bottom, region.width, 0))
    chosen = layout.focus if layout.focus in panes else layout.tabs.get(key, "")
    front = chosen if chosen in filled else filled[0]
    own = panes[0] if len(panes) == 1 else ""
    header, body = region.split_horizontal(0 if own in OWN_TITLE else min(1, region.height))
    return Area(key, panes, front, header, body)


def _shown(cell: Cell, layout: LayoutSlice) -> tuple[str, ...]:
    return tuple(pane for pane in cell.panes if pane not in layout.hidden)


def _split(shares: Sequence[float], length: int, gap: int = 0) -> tuple[list[int], list[int]]:
    total = sum(shares) or 1
    length -= gap * (len(shares) - 1)
    lengths = [round(length * share / total) for share in shares]
    if lengths:
        lengths[0] += length - sum(lengths)
    return _starts(lengths, gap), lengths


def _starts(lengths: Sequence[int], gap: int) -> list[int]:
    return [sum(lengths[:i]) + gap * i for i in range(len(lengths))]


Axis = Literal["width", "height"]
#: Cells per key press.
STEPS: dict[Axis, int] = {"width": 4, "height": 2}
#: Minimum sizes of a row, of a cell beside another, and of a column set by the user.
LEAST_HEIGHT, LEAST_WIDTH, LEAST_COLUMN = 4, 10, 20


class Part(NamedTuple):
    name: str
    length: int
    least: int


def resized(
    size: Size, layout: LayoutSlice, pane: str, axis: Axis, cells: int, needs: Needs = FULL
) -> LayoutSlice:
    """Grows the part of `pane` at the expense of the next part (the previous one for the last), if that can
    shrink.
    """
    parts, at = _beside(size, layout, _opened_at(size, needs), pane, axis)
    if layout.zoomed or len(parts) < 2:
        return layout
    other = at + 1 if at + 1 < len(parts) else at - 1
    # On a low screen parts can already have less than their least length.
    spare, other_spare = (max(0, part.length - part.least) for part in (parts[at], parts[other]))
    taken = min(max(cells, -spare), other_spare)
    if taken * cells <= 0:
        return layout
    lengths = [part.length for part in parts]
    lengths[at] += taken
    lengths[other] -= taken
    shares = {part.name: length / sum(lengths) for part, length in zip(parts, lengths, strict=True)}
    return replace(layout, sizes={**layout.sizes, **shares})


def _beside(size: Size, layout: LayoutSlice, needs: Needs, pane: str, axis: Axis) -> tuple[list[Part], int]:
    columns = columns_of(size, layout, needs)
    for at_column, (column, _, width) in enumerate(columns):
        rows = [found for found in rows_of(column, size, layout, needs) if _opened(found[0], layout, needs)]
        for at_row, (row, _, _) in enumerate(rows):
            cells = cells_of(row, width, layout, needs)
            at_cell = next((at for at, (cell, _, _) in enumerate(cells) if pane in cell.panes), None)
            if at_cell is None:
                continue
            if axis == "height":
                return [Part(name_of("row", row), length, LEAST_HEIGHT) for row, _, length in rows], at_row
            if len(cells) > 1:
                return [Part(name_of("cell", (c,)), length, LEAST_WIDTH) for c, _, length in cells], at_cell
            return [
                Part(name_of("column", c.rows[0][1]), length, LEAST_COLUMN) for c, _, length in columns
            ], at_column
    return [], 0
