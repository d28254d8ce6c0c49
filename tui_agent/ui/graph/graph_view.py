"""Sub-tasks as a graph: layers from left to right, dependencies as lines, a cursor.

Each node has one lane to its left, a vertical line that joins its dependencies; a longer line has its own
row in the layers that it skips. Sweeps place items at the barycentre of their neighbours (Sugiyama, Tagawa
and Toda, 1981) and keep the best order; then swaps of adjacent items reduce crossings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip

from tui_agent.store.graph import SubTask, layers
from tui_agent.ui.graph.facts import Fact, mark_of
from tui_agent.ui.keys.keymap import view_bindings
from tui_agent.ui.safe_text import one_line
from tui_agent.ui.widgets.line_view import LineView, column, fit

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
    # Later layers are half a row lower if lines would overlap.
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
    for layer, down in zip(items, shifts, strict=True) if any(shifts) else ():
        for item in layer:
            item.row = item.row * 2 + down
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


_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_GLYPHS = dict(zip(range(1, 16), "───│┘└┴│┐┌┬│┤├┼", strict=True))
#: Cells of edge before the first lane and after the last one, arrow and space included; without lanes only the latter.
_BEFORE, _AFTER = 2, 3


class Node(NamedTuple):
    name: str
    x: int
    y: int
    width: int


class LineGlyph(NamedTuple):
    glyph: str
    names: frozenset[str]


class Canvas:
    """`lefts` and `rights` are each layer's first and last cell."""

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
        self.lefts: list[int] = []
        self.rights: list[int] = []
        for layer, lanes in zip(self.layout.layers, self.layout.lanes, strict=True):
            if self.lefts:
                self.width += (_BEFORE + 2 * lanes - 1 if lanes else 0) + _AFTER
            self.lefts.append(self.width)
            self.width += max((widths[item.name] for item in layer if not item.passes), default=0)
            self.rights.append(self.width)
        for index, layer in enumerate(self.layout.layers):
            self._draw_layer(index, layer, widths)
        for row, cells in enumerate(self._bits):
            for x, bits in cells.items():
                self.marks[row].setdefault(x, LineGlyph(_GLYPHS[bits], self._names[row, x]))
            self.marks[row] = dict(sorted(self.marks[row].items()))

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
                for x in range(start, left):
                    if x not in crossed:
                        self._add(item.row, x, _LEFT | _RIGHT, item.name)
                if not item.passes:
                    self._bits[item.row].pop(left - 2, None)
                    self._bits[item.row].pop(left - 1, None)
                    self.marks[item.row][left - 2] = LineGlyph("▶", frozenset({item.name}))
            if item.targets:
                lanes = [target.lane for target in item.targets if target.row != item.row or target.lane >= 0]
                furthest = max((self._lane_x(index + 1, lane) for lane in lanes), default=self.rights[index])
                joined = {self._lane_x(index + 1, lane) for lane in lanes}
                crossed = self._verticals(index + 1, item.row) - joined
                for x in range(self.rights[index], furthest + 1):
                    if x not in crossed:
                        self._add(item.row, x, _LEFT | (_RIGHT if x < furthest else 0), item.name)

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


#: Maximum characters of a name; the details show it in full.
_LONGEST = 16
#: Widths of the facts beside a name, in cells; the widest that fits is used. The first includes the goal and
#: extends up to `_WIDEST`.
_ROOMS = (20, 8, 0)
_WIDEST = 60
#: Minimum cells for a goal after a row's last name.
_GOAL_FROM = 12


class GraphView(LineView):
    DEFAULT_CSS = "GraphView { overflow-x: auto; scrollbar-size: 1 1; }"
    BINDINGS = view_bindings("graph")

    def __init__(self) -> None:
        super().__init__()
        self.canvas: Canvas | None = None
        self._tasks: dict[str, SubTask] = {}
        self._facts: Mapping[str, Fact] = {}
        self._shape: object = None
        self._columns: list[list[str]] = []
        self._cursor = ""
        #: Cells for facts beside a name, and the graph's width without them.
        self._room = 0
        self.needs = 0

    def show_tasks(
        self, tasks: Sequence[SubTask], cursor: str, facts: Mapping[str, Fact] | None = None
    ) -> None:
        tasks_before, facts_before, canvas = self._tasks, self._facts, self.canvas
        moved = cursor != self._cursor
        self._tasks, self._facts, self._cursor = {task.id: task for task in tasks}, facts or {}, cursor
        self._find_places()
        top, height = self.scroll_offset.y, self.outer_size.height
        if moved or self.canvas is not canvas:
            self.refresh()
        else:
            for y, row in enumerate(self.canvas.rows[top : top + height] if self.canvas else ()):
                if any(
                    facts_before.get(node.name) != self._facts.get(node.name)
                    or tasks_before[node.name] != self._tasks[node.name]
                    for node in row
                ):
                    self.refresh(Region(0, y, self.outer_size.width, 1))
        if moved:
            self.keep_in_view()

    def on_resize(self) -> None:
        self._find_places()

    def action_step(self, across: int, down: int) -> None:
        """Moves to the nearest task in that direction, connected tasks first."""
        if self.canvas is None or self._cursor not in self.canvas.nodes:
            return
        here = self.canvas.nodes[self._cursor]
        nodes = self.canvas.nodes.values()
        if across:
            found = [node for node in nodes if (node.x - here.x) * across > 0]
        else:
            found = [node for node in nodes if node.x == here.x and (node.y - here.y) * down > 0]
        if found:
            if across < 0:
                tied = set(self._tasks[self._cursor].dependencies)
            else:
                tied = {task.id for task in self._tasks.values() if self._cursor in task.dependencies}
            best = min(found, key=lambda n: (n.name not in tied, abs(n.x - here.x), abs(n.y - here.y)))
            self.post_message(self.Moved(self, best.name))

    def render_line(self, y: int) -> Strip:
        width = self.across
        y += self.scroll_offset.y
        if self.canvas is None or y >= self.canvas.height:
            return Strip.blank(width, self.ink(""))
        faint, accent = self.ink("faint"), self.ink("accent")
        nodes = self.canvas.rows[y]
        pieces: list[tuple[int, list[Segment]]] = [(node.x, self._node(node)) for node in nodes]
        marks = self.canvas.marks[y]
        # neighbours of one colour as one piece
        runs = groupby(enumerate(marks), lambda at: (at[1] - at[0], self._cursor in marks[at[1]].names))
        for (_, lit), run in runs:
            cells = [x for _, x in run]
            line = "".join(marks[x].glyph for x in cells)
            pieces.append((cells[0], [Segment(line, accent if lit else faint)]))
        segments: list[Segment] = []
        at = 0
        for x, piece in sorted(pieces, key=itemgetter(0)):
            if x > at:
                segments.append(Segment(" " * (x - at)))
            segments += piece
            at = x + sum(segment.cell_length for segment in piece)
        last = next((node for node in nodes if node.x + node.width == at), None)
        room = width - at
        if last is not None and self._room < _ROOMS[0] and room >= _GOAL_FROM:
            goal = one_line(self._tasks[last.name].goal)
            segments.append(Segment(fit(goal, room), self.ink("muted")))
        left = self.scroll_offset.x
        return Strip(segments).crop_extend(left, left + width, self.ink(""))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset_capture(self) + self.scroll_offset
        node = self._node_at(at.x, at.y)
        if node is None:
            return
        if at.x == node.x + self._mark_at(node):
            self.post_message(self.Marked(self, node.name))
        elif node.name == self._cursor:
            self.post_message(self.Chosen(self, node.name))
        else:
            self.post_message(self.Moved(self, node.name))

    def point(self, x: int, y: int) -> None:
        if node := self._node_at(x + self.scroll_offset.x, y + self.scroll_offset.y):
            self.post_message(self.Moved(self, node.name))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _find_places(self) -> None:
        shape = tuple((task.id, task.dependencies) for task in self._tasks.values())
        if shape != self._shape:
            self._shape, self._room = shape, 0
            self._columns = [[task.id for task in layer] for layer in layers(tuple(self._tasks.values()))]
            self.canvas = self._lay_out()
            self.needs = self.canvas.width
        over = self.across - self.needs
        rooms = _ROOMS if self._facts else ()
        room = next((room for room in rooms if room * len(self._columns) <= over), 0)
        if room == _ROOMS[0]:
            room = min(over // len(self._columns), _WIDEST)
        if room != self._room:
            self._room = room
            self.canvas = self._lay_out()
        if self.canvas is not None:
            self.virtual_size = Size(self.canvas.width, self.canvas.height)

    def _lay_out(self) -> Canvas:
        widths = {}
        for names in self._columns:
            widest = max(cell_len(_name(name)) for name in names)
            # name, space, mark, facts, and a space before the line
            widths |= dict.fromkeys(names, widest + 3 + self._room)
        return Canvas(self._columns, {task.id: task.dependencies for task in self._tasks.values()}, widths)

    def _node(self, node: Node) -> list[Segment]:
        """A running task's time and activity; otherwise its state and its goal, which has the room if both do not
        fit: lines show the dependencies.
        """
        task = self._tasks[node.name]
        fact = self._facts.get(node.name) or Fact(mark_of(task))
        told = fact.short
        if self._room >= _ROOMS[0]:
            runs = task.state == "running" and not fact.silent
            state = fact.short.text if runs else fact.long.text
            if task.state in ("pending", "ready") and cell_len(f" {state} · {task.goal}") > self._room:
                state = fact.short.text if task.state == "ready" else ""
            words = (state, (runs and fact.doing) or task.goal)
            told = fact.long._replace(text=" · ".join(word for word in words if word))
        ground = Style.null()
        if node.name == self._cursor:
            ground = self.ground("cursor" if self.has_focus else "resting")
        ink = self.ink("strong") if node.name == self._cursor else self.ink("")
        segments = [
            Segment(column(_name(node.name), self._mark_at(node)), ink + ground),
            Segment(fact.mark.text, self.ink(fact.mark.ink) + ground),
        ]
        if self._room:
            words = " " + column(told.text, self._room - 1)
            segments.append(Segment(words, self.ink(told.ink) + ground))
        return [*segments, Segment(" ", Style.null())]

    def _mark_at(self, node: Node) -> int:
        return node.width - 2 - self._room

    def _node_at(self, x: int, y: int) -> Node | None:
        rows = self.canvas.rows if self.canvas else []
        nodes = rows[y] if 0 <= y < len(rows) else []
        return next((node for node in nodes if node.x <= x < node.x + node.width), None)

    def _reveal(self) -> None:
        node = self.canvas.nodes.get(self._cursor) if self.canvas else None
        if node is not None:
            self.scroll_to_region(Region(node.x, node.y, node.width, 1), animate=False)


def _name(task: str) -> str:
    return fit(one_line(task), _LONGEST)
