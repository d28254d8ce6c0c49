from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st
from support.panes import ThemedApp
from textual.app import ComposeResult

from tui_agent.store.graph import SubTask, layers
from tui_agent.ui.graph.graph_view import Canvas, GraphView
from tui_agent.ui.widgets.line_view import LineView

_LEFT, _UP, _DOWN = "─┐┘┬┴┤┼▶", "│┘└┴┤├┼", "│┐┌┬┤├┼"
_TURNS = "┐┘└┌┬┴┤├┼"


def canvas_of(waits: dict[str, list[str]]) -> Canvas:
    tasks = [SubTask(name, "", dependencies=tuple(needs)) for name, needs in waits.items()]
    columns = [[task.id for task in layer] for layer in layers(tasks)]
    return Canvas(columns, waits, {name: len(name) + 3 for name in waits})


def drawn(waits: dict[str, list[str]]) -> str:
    canvas = canvas_of(waits)
    rows = [[" "] * canvas.width for _ in range(canvas.height)]
    for node in canvas.nodes.values():
        rows[node.y][node.x : node.x + node.width] = f"{node.name} ○ "
    for y, marks in enumerate(canvas.marks):
        for x, mark in marks.items():
            rows[y][x] = mark.glyph
    return "\n".join("".join(row).rstrip() for row in rows)


class Reader:
    """Follows the lines back as an eye does: from an arrow to a lane, along the lane, out to the left."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self.ends = {(node.x + node.width, node.y): name for name, node in canvas.nodes.items()}

    def glyph(self, x: int, y: int) -> str:
        if not 0 <= y < self.canvas.height or x not in self.canvas.marks[y]:
            return " "
        return self.canvas.marks[y][x].glyph

    def sources(self, name: str) -> set[str]:
        node = self.canvas.nodes[name]
        return self.arrive(node.x - 2, node.y)

    def arrive(self, x: int, y: int) -> set[str]:
        """Left along the row from where a layer begins, to its lane or straight on."""
        left = max(edge for edge in self.canvas.rights if edge <= x)
        while x >= left:
            if self.glyph(x, y) in _TURNS:
                return self.lane(x, y, left)
            x -= 1
        return self.leave(x + 1, y)

    def lane(self, x: int, y: int, left: int) -> set[str]:
        found: set[str] = set()
        for step, open_here, open_there in ((-1, _UP, _DOWN), (1, _DOWN, _UP)):
            row = y
            while self.glyph(x, row) in open_here and self.glyph(x, row + step) in open_there:
                row += step
                found |= self.out(x, row, left)
        return found | self.out(x, y, left)

    def out(self, x: int, y: int, left: int) -> set[str]:
        if self.glyph(x, y) not in _LEFT:
            return set()
        return self.leave(left, y)

    def leave(self, x: int, y: int) -> set[str]:
        """From the right edge of a layer: the node that ends there, or the line that passes it."""
        for (end, row), name in self.ends.items():
            if row == y and end <= x and all(self.glyph(cell, y) == "─" for cell in range(end, x)):
                return {name}
        layer = self.canvas.rights.index(x)
        return self.arrive(self.canvas.lefts[layer] - 1, y)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [f"n{i}" for i in range(draw(st.integers(1, 9)))]
    return {
        name: draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=3)) if i else []
        for i, name in enumerate(names)
    }


@given(graphs())
def test_lines_lead_from_each_task_to_what_it_waits_for_and_to_nothing_else(waits):
    reader = Reader(canvas_of(waits))
    assert {name: reader.sources(name) if needs else set() for name, needs in waits.items()} == {
        name: set(needs) for name, needs in waits.items()
    }


@given(graphs())
def test_nodes_stand_in_their_layers_and_on_rows_of_their_own(waits):
    canvas = canvas_of(waits)
    assert len({(node.x, node.y) for node in canvas.nodes.values()}) == len(waits)
    for name, needs in waits.items():
        assert all(canvas.nodes[needed].x < canvas.nodes[name].x for needed in needs)


def test_two_tasks_join_before_the_one_that_waits_for_both():
    expected = """
        api ○ ──┐
        ui ○ ───┴─▶ tests ○"""
    assert drawn({"api": [], "ui": [], "tests": ["api", "ui"]}) == textwrap.dedent(expected).strip("\n")


def test_one_task_fans_out_to_those_that_share_it():
    expected = """
        api ○ ──┬─▶ ui ○
                ├─▶ docs ○
                └─▶ tests ○"""
    waits = {"api": [], "ui": ["api"], "docs": ["api"], "tests": ["api"]}
    assert drawn(waits) == textwrap.dedent(expected).strip("\n")


def test_a_line_passes_the_layers_between():
    expected = """
        a ○ ──┬─▶ b ○ ─▶ c ○ ──┐
              └────────────────┴─▶ d ○"""
    assert drawn({"a": [], "b": ["a"], "c": ["b"], "d": ["a", "c"]}) == textwrap.dedent(expected).strip("\n")


def test_a_line_that_crosses_another_goes_behind_it():
    text = drawn({"api": [], "ui": [], "tests": ["api", "ui"], "docs": ["api"]})
    assert "─│─" in text


class GraphApp(ThemedApp):
    def __init__(self, tasks: list[SubTask]) -> None:
        super().__init__()
        self.tasks = tasks

    def compose(self) -> ComposeResult:
        yield GraphView()

    def on_mount(self) -> None:
        self.query_one(GraphView).show_tasks(self.tasks, self.tasks[0].id)
        self.query_one(GraphView).focus()

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        self.cursor = event.key
        self.query_one(GraphView).show_tasks(self.tasks, event.key)


async def test_arrow_keys_go_along_the_lines():
    tasks = [SubTask("api", ""), SubTask("ui", ""), SubTask("tests", "", dependencies=("ui",))]
    app = GraphApp(tasks)
    async with app.run_test(size=(60, 8)) as pilot:
        moves = []
        for key in ("down", "right", "left", "up"):
            await pilot.press(key)
            await pilot.pause()
            moves.append(app.cursor)
        assert moves == ["ui", "tests", "ui", "api"]


async def test_the_mouse_chooses_a_task():
    tasks = [SubTask("api", ""), SubTask("tests", "", dependencies=("api",))]
    app = GraphApp(tasks)
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.click(GraphView, offset=(13, 0))
        await pilot.pause()
        assert app.cursor == "tests"


async def test_a_graph_wider_than_the_view_scrolls_to_its_cursor():
    names = [f"step-{n}" for n in range(12)]
    tasks = [SubTask(name, "", dependencies=(names[i - 1],) if i else ()) for i, name in enumerate(names)]
    app = GraphApp(tasks)
    async with app.run_test(size=(40, 6)) as pilot:
        app.query_one(GraphView).show_tasks(tasks, "step-11")
        await pilot.pause()
        await pilot.pause()
        assert "step-11" in app.text


async def test_places_are_worked_out_once_while_only_states_change():
    tasks = [SubTask("api", ""), SubTask("tests", "", dependencies=("api",))]
    app = GraphApp(tasks)
    async with app.run_test(size=(60, 8)) as pilot:
        view = app.query_one(GraphView)
        canvas = view.canvas
        view.show_tasks([SubTask("api", "", state="completed"), tasks[1]], "api")
        await pilot.pause()
        assert view.canvas is canvas and "api ✓" in app.text


async def test_a_change_of_state_draws_the_row_of_its_task_and_no_other():
    tasks = [SubTask(name, "") for name in ("api", "ui", "docs", "tests")]
    app = GraphApp(tasks)
    async with app.run_test(size=(60, 8)) as pilot:
        await pilot.pause()
        view = app.query_one(GraphView)
        drawn: list[int] = []
        render_line = view.render_line
        view.render_line = lambda y: drawn.append(y) or render_line(y)  # type: ignore[method-assign,func-returns-value]
        view.show_tasks(tasks, "api")
        await pilot.pause()
        assert drawn == []
        view.show_tasks([*tasks[:2], SubTask("docs", "", state="completed"), tasks[3]], "api")
        await pilot.pause()
        assert set(drawn) == {2} and "docs  ✓" in app.text
