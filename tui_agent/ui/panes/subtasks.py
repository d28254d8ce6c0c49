"""The sub-tasks: a graph from left to right where there is room for it, a list by layer where there is not."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widget import Widget

from tui_agent.session.session import Session
from tui_agent.store.state import State
from tui_agent.subtasks.graph import DONE_STATES, SubTask, layers
from tui_agent.ui.sink import label
from tui_agent.ui.widgets.graph_view import GraphView
from tui_agent.ui.widgets.lines import Line, Piece
from tui_agent.ui.widgets.marks import TASKS
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Row, Rows

_EMPTY = "Work that the model splits into parts is drawn here."
#: Lower panes have no room for the details.
_DETAILS_FROM = 9
#: A graph may be wider than the pane and scroll, but not in a pane as narrow as this.
_LIST_BELOW = 40


class SubTasksPane(Pane):
    """The graph or the list of tasks, and the details of the one that the cursor stands on."""

    ID = "subtasks"
    TITLE = "Sub-tasks"
    SLICES: ClassVar[tuple[str, ...]] = ("subtasks",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._tasks: tuple[SubTask, ...] = ()
        self._cursor = ""

    def compose(self) -> ComposeResult:
        yield GraphView()
        yield Rows(id="layers")
        yield Rows(id="details")

    @property
    def entry(self) -> Widget:
        return self._graph if self._graph.display else self._list

    def show(self, state: State) -> None:
        self._tasks = state.subtasks.tasks
        if self._cursor not in {task.id for task in self._tasks}:
            self._cursor = self._first()
        self._draw()

    def action_next(self) -> None:
        self._step(1)

    def action_previous(self) -> None:
        self._step(-1)

    def action_skip(self) -> None:
        if self._cursor:
            self.ask(self.session.skip_subtask(self._cursor))

    def on_graph_view_moved(self, event: GraphView.Moved) -> None:
        event.stop()
        self._go(event.task)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._go(event.key)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()

    def on_resize(self) -> None:
        self._choose_view()

    @property
    def _graph(self) -> GraphView:
        return self.query_one(GraphView)

    @property
    def _list(self) -> Rows:
        return self.query_one("#layers", Rows)

    def _first(self) -> str:
        """The task that most wants to be looked at: one that runs, is ready, or is the first."""
        for state in ("running", "ready"):
            for task in self._tasks:
                if task.state == state:
                    return task.id
        return self._tasks[0].id if self._tasks else ""

    def _order(self) -> list[str]:
        return [task.id for layer in layers(self._tasks) for task in layer]

    def _step(self, step: int) -> None:
        order = self._order()
        if self._cursor in order:
            self._go(order[max(0, min(order.index(self._cursor) + step, len(order) - 1))])

    def _go(self, task: str) -> None:
        if task and task != self._cursor:
            self._cursor = task
            self._draw()

    def _draw(self) -> None:
        done = sum(task.state in DONE_STATES for task in self._tasks)
        self.title_text = label(f"{self.TITLE} {done}/{len(self._tasks)}" if self._tasks else self.TITLE)
        self._graph.show_tasks(self._tasks, self._cursor)
        self._list.set_rows(_list_rows(self._tasks), cursor=self._cursor)
        self._choose_view()

    def _choose_view(self) -> None:
        width = self.size.width
        graph = bool(self._tasks) and (self._graph.needs <= width or width >= _LIST_BELOW)
        had_focus = self._graph.has_focus or self._list.has_focus
        self._graph.display, self._list.display = graph, not graph
        details = self.query_one("#details", Rows)
        details.display = bool(self._cursor) and self.size.height >= _DETAILS_FROM
        task = next((task for task in self._tasks if task.id == self._cursor), None)
        details.set_rows(_details(task) if task else [])
        if had_focus:
            self.entry.focus()


def _list_rows(tasks: tuple[SubTask, ...]) -> list[Row]:
    if not tasks:
        return [Row("", Line((Piece(_EMPTY, "muted"),)), wraps=True)]
    rows = []
    for depth, layer in enumerate(layers(tasks)):
        for task in layer:
            needs = ", ".join(task.dependencies)
            waits = (Piece(" ← ", "faint"), Piece(needs, "muted", "end")) if needs else ()
            name = Piece(task.id, "", "end")
            rows.append(
                Row(task.id, Line((Piece("  " * min(depth, 3)), TASKS[task.state], Piece(" "), name, *waits)))
            )
    return rows


def _details(task: SubTask) -> list[Row]:
    """State and goal, files, what it waits for, and what came of it."""
    said = [(task.goal, "")]
    if task.files:
        said.append((f"files: {', '.join(task.files)}", "muted"))
    if task.dependencies:
        said.append((f"waits for: {', '.join(task.dependencies)}", "muted"))
    if task.summary:
        said.append((task.summary, "muted"))
    mark = TASKS[task.state]
    auto = " · starts by itself" if task.auto_execute else ""
    head = Row(
        "", Line((mark, Piece(" "), Piece(task.id, "strong", "end"), Piece(f"  {task.state}{auto}", "muted")))
    )
    return [head, *(Row("", Line((Piece(f"  {text}", ink),)), wraps=True, hang=2) for text, ink in said)]
