"""Sub-tasks as a graph: layers from left to right, what waits for what as lines, a cursor on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tui_agent.subtasks.graph import SubTask, layers
from tui_agent.ui.sink import one_line
from tui_agent.ui.widgets.graph_canvas import Canvas, Node
from tui_agent.ui.widgets.lined import Lined
from tui_agent.ui.widgets.lines import fit
from tui_agent.ui.widgets.marks import TASKS

#: Longer names are cut: what they mean stands in the details.
_LONGEST = 16


class GraphView(Lined):
    """Draws tasks and keeps a cursor on one; only visible rows are drawn."""

    DEFAULT_CSS = "GraphView { overflow-x: auto; scrollbar-size: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(0, -1)", "Up", show=False),
        Binding("down", "step(0, 1)", "Down", show=False),
        Binding("left", "step(-1, 0)", "What it waits for", show=False),
        Binding("right", "step(1, 0)", "What waits for it", show=False),
    ]

    class Moved(Message):
        """The cursor now stands on this task."""

        def __init__(self, task: str) -> None:
            super().__init__()
            self.task = task

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.canvas: Canvas | None = None
        self._tasks: dict[str, SubTask] = {}
        self._shape: object = None
        self._cursor = ""

    @property
    def needs(self) -> int:
        """The cells across that the whole graph needs."""
        return self.canvas.width if self.canvas else 0

    def show_tasks(self, tasks: Sequence[SubTask], cursor: str) -> None:
        """Draw the tasks; their places are worked out anew only when what waits for what is another."""
        self._tasks = {task.id: task for task in tasks}
        shape = tuple((task.id, task.dependencies) for task in tasks)
        if shape != self._shape:
            self._shape = shape
            self.canvas = self._lay_out(tasks)
            self.virtual_size = Size(self.canvas.width, self.canvas.height)
        moved = cursor != self._cursor
        self._cursor = cursor
        self.refresh()
        if moved:
            self.call_after_refresh(self._reveal)

    def action_step(self, across: int, down: int) -> None:
        """Go to the nearest task in that direction, first among those that a line leads to."""
        if self.canvas is None or self._cursor not in self.canvas.nodes:
            return
        here = self.canvas.nodes[self._cursor]
        found = [node for node in self.canvas.nodes.values() if _lies(here, node, across, down)]
        if found:
            tied = self._tied(across)
            best = min(found, key=lambda n: (n.name not in tied, abs(n.x - here.x), abs(n.y - here.y)))
            self.post_message(self.Moved(best.name))

    def render_line(self, y: int) -> Strip:
        width = self.across
        y += self.scroll_offset.y
        if self.canvas is None or y >= self.canvas.height:
            return Strip.blank(width, self.ink(""))
        left = self.scroll_offset.x
        return Strip(self._segments(self.canvas, y)).crop_extend(left, left + width, self.ink(""))

    def on_click(self, event: events.Click) -> None:
        if self.canvas is None:
            return
        x, y = event.x + self.scroll_offset.x, event.y + self.scroll_offset.y
        for node in self.canvas.nodes.values():
            if node.y == y and node.x <= x < node.x + node.width:
                self.post_message(self.Moved(node.name))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _lay_out(self, tasks: Sequence[SubTask]) -> Canvas:
        columns = [[task.id for task in layer] for layer in layers(tasks)]
        widths = {}
        for column in columns:
            widest = max(cell_len(_name(task)) for task in column)
            # the name, a space, its mark and a space before the line
            widths |= dict.fromkeys(column, widest + 3)
        return Canvas(columns, {task.id: task.dependencies for task in tasks}, widths)

    def _segments(self, canvas: Canvas, y: int) -> list[Segment]:
        faint, accent = self.ink("faint"), self.ink("accent")
        pieces: list[tuple[int, list[Segment]]] = [(node.x, self._node(node)) for node in canvas.rows[y]]
        for x, mark in canvas.marks[y].items():
            pieces.append((x, [Segment(mark.glyph, accent if self._cursor in mark.names else faint)]))
        segments: list[Segment] = []
        at = 0
        for x, piece in sorted(pieces, key=itemgetter(0)):
            if x > at:
                segments.append(Segment(" " * (x - at)))
            segments += piece
            at = x + sum(segment.cell_length for segment in piece)
        return segments

    def _node(self, node: Node) -> list[Segment]:
        name = _name(node.name)
        mark = TASKS[self._tasks[node.name].state]
        ground = Style.null()
        if node.name == self._cursor:
            ground = self.ground("cursor" if self.has_focus else "resting")
        padding = " " * (node.width - cell_len(name) - 2)
        ink = self.ink("strong") if node.name == self._cursor else self.ink("")
        return [
            Segment(name + padding, ink + ground),
            Segment(mark.text, self.ink(mark.ink) + ground),
            Segment(" ", Style.null()),
        ]

    def _tied(self, across: int) -> set[str]:
        if across < 0:
            return set(self._tasks[self._cursor].dependencies)
        return {task.id for task in self._tasks.values() if self._cursor in task.dependencies}

    def _reveal(self) -> None:
        node = self.canvas.nodes.get(self._cursor) if self.canvas else None
        if node is not None:
            self.scroll_to_region(Region(node.x, node.y, node.width, 1), animate=False)


def _name(task: str) -> str:
    return fit(one_line(task), _LONGEST)


def _lies(here: Node, there: Node, across: int, down: int) -> bool:
    if across:
        return (there.x - here.x) * across > 0
    return there.x == here.x and (there.y - here.y) * down > 0
