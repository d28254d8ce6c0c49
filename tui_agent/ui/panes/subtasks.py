"""The sub-tasks pane: a dependency graph, or a list by layer if space is short."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from msgspec.structs import replace
from textual import events, on
from textual.app import App, ComposeResult
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.session.session import Session
from tui_agent.store.conversation import Usage
from tui_agent.store.graph import SubTask, layers
from tui_agent.store.state import State, SubTasksSlice
from tui_agent.subtasks.copies import why_blocked
from tui_agent.ui.graph.facts import Facts
from tui_agent.ui.graph.graph_view import GraphView
from tui_agent.ui.panes.review_rows import ReviewPosition, shown_changes, waiting
from tui_agent.ui.panes.subtasks_rows import (
    ViewOptions,
    detail_rows,
    limits_row,
    list_rows,
    moved_to,
    read_look,
    title,
    unapproved,
    visible_tasks,
    words_for,
)
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.line_view import HintLine, LineView, Row, Rows
from tui_agent.ui.widgets.list_pane import ListPane
from tui_agent.ui.widgets.pane import noticed, save_place

_Call = Coroutine[Any, Any, object]
_NONE_SEEN = "The filter hides all sub-tasks."
#: Minimum rows for the limits, the actions and the details.
_LIMITS_FROM, _WORDS_FROM, _DETAILS_FROM = 6, 16, 9
#: Minimum cells for the graph; wider graphs scroll.
_LIST_BELOW = 40


class SubTasksPane(ListPane):
    EMPTY = "Sub-tasks of the model and your own."
    ID = "subtasks"
    SLICES: ClassVar[tuple[str, ...]] = ("subtasks", "usage", "review")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._slice = SubTasksSlice()
        self._used = Usage()
        self._look: ViewOptions | None = None
        self.shown: tuple[SubTask, ...] = ()
        self._facts = Facts((), {}, 0.0, 0)
        self._clock: Timer | None = None

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        from tui_agent.ui.dialogs import subtasks

        tasks = self.session.subtasks
        return {
            "next": partial(self._step, 1),
            "previous": partial(self._step, -1),
            "run": partial(self._do, tasks.run),
            "run_ticked": lambda: self.act(tasks.run_ticked()),
            "tick": partial(self._do, tasks.tick),
            "skip": partial(self._do, tasks.skip),
            "retry": partial(self._do, tasks.retry),
            "stop": partial(self._do, tasks.stop),
            "stop_all": lambda: self.ask(tasks.stop_all()),
            "chat": partial(self._open, subtasks.open_chat),
            "changes": self._show_changes,
            "add": lambda: self._work(subtasks.add(self.app, self.session)),
            "edit": partial(self._open, subtasks.edit),
            "connect": partial(self._open, subtasks.connect),
            "remove": partial(self._open, subtasks.remove),
            "fold": lambda: self.set_view(replace(self.look, folded=not self.look.folded)),
            "follow": lambda: self.set_view(replace(self.look, follows=not self.look.follows)),
            "filter": lambda: self.write(self.look.words),
        }

    def compose(self) -> ComposeResult:
        limits = Rows(id="limits")
        limits.can_focus = False
        yield limits
        yield GraphView()
        yield Rows(id="layers")
        yield Rows(id="details")
        words = Input(compact=True, select_on_focus=False, placeholder="id, goal or state")
        words.display = False
        yield words
        yield HintLine()

    @property
    def entry(self) -> Widget:
        if not self.is_mounted:
            return self
        return self._graph if self._graph.display else self.rows

    def show(self, state: State) -> None:
        if self._look is None:
            self._look = read_look(state.layout.place.get(self.ID))
        self._slice, self._used = state.subtasks, state.usage.session
        if self._slice.running and self._clock is None and not self.plain:
            self._clock = self.set_interval(1, self._tick)
        elif not self._slice.running and self._clock is not None:
            self._clock.stop()
            self._clock = None
        self._draw()

    @on(events.Resize)
    def _resized(self) -> None:
        self._choose_view()

    @property
    def look(self) -> ViewOptions:
        return self._look or ViewOptions()

    @property
    def _current(self) -> SubTask | None:
        return self._slice.get(self.look.cursor)

    def set_view(self, look: ViewOptions) -> None:
        if look == self._look:
            return
        self._look = look
        self._draw()
        save_place(self.session, self.ID, self.look.saved())

    def _tick(self) -> None:
        if self.display:
            self._draw()

    def _draw(self) -> None:
        tasks = self._slice.tasks
        silent_after = self.session.loaded.settings.subtasks.silent_after
        self.shown = visible_tasks(tasks, self.look)
        self._look = moved_to(self.look, self.shown)
        self._facts = Facts(tasks, self._slice.running, time.time(), silent_after, self._why_blocked)
        changes = self.session.state.review.changes
        self.title_text = label(title(self.TITLE, tasks, len(self.shown), self._facts.silent, changes))
        self._graph.show_tasks(self.shown, self.look.cursor, self._facts)
        self._choose_view()

    def _choose_view(self) -> None:
        width, height = self.size
        graph = bool(self.shown) and not self.plain and (self._graph.needs <= width or width >= _LIST_BELOW)
        had_focus = self.screen.focused in (self._graph, self.rows)
        self._graph.display, self.rows.display = graph, not graph
        if not graph:
            none = _NONE_SEEN if self._slice.tasks else ""
            self.set_rows(list_rows(self.shown, self._facts), self.look.cursor, empty=none)
        limits = self.query_one("#limits", Rows)
        limits.display = bool(self._slice.tasks) and height >= _LIMITS_FROM
        if limits.display:
            _set(limits, [limits_row(self.session.loaded.settings, self._slice.tasks, self._used)])
        details, task = self.query_one("#details", Rows), self._current
        details.display = task is not None and height >= _DETAILS_FROM
        if task is not None and details.display:
            states = {other.id: other.state for other in self._slice.tasks}
            running = self._slice.running.get(task.id)
            blocked = self._why_blocked(task)
            _set(details, detail_rows(task, self._facts[task.id], running, states, blocked))
        words = self.query_one(HintLine)
        due = unapproved(self._slice.tasks)
        words.display = height >= _WORDS_FROM or (bool(due) and height >= _LIMITS_FROM)
        if words.display:
            words.set_words(words_for(self._current, self._slice.tasks, self.look))
        if had_focus and self.screen.focused is not self.entry:
            self.entry.focus()

    def _why_blocked(self, task: SubTask) -> str:
        if not (task.wanted and task.state == "ready"):
            return ""

        most, run = self.session.loaded.settings.subtasks.max_parallel, len(self._slice.running)
        places = f"queued: {run} of {most} run" if run >= most else ""
        return why_blocked(self.session.state, task) or places

    @property
    def _graph(self) -> GraphView:
        return self.query_one(GraphView)

    @property
    def rows(self) -> Rows:
        return self.query_one("#layers", Rows)

    def _go(self, task: str) -> None:
        if task and task != self.look.cursor:
            self.set_view(replace(self.look, cursor=task, follows=False))

    def _step(self, step: int) -> None:
        order = [task.id for layer in layers(self.shown) for task in layer]
        if (cursor := self.look.cursor) in order:
            self._go(order[max(0, min(order.index(cursor) + step, len(order) - 1))])

    def _do(self, call: Callable[[str], _Call]) -> None:
        if task := self._current:
            self.act(call(task.id))

    def _open(self, dialog: Callable[[App[object], Session, SubTask], _Call]) -> None:
        if task := self._current:
            self._work(dialog(self.app, self.session, task))

    def _work(self, call: _Call) -> None:
        self.run_worker(noticed(self.session, call), group="subtask", exclusive=True)

    def _show_changes(self) -> None:
        """Opens the review at the task's first pending change, or its last decided one."""
        task = self._current
        if task is None:
            return
        review = self.session.state.review
        shown = [change for change in shown_changes(review) if task.id in change.tasks]
        if not shown:
            said = f"No change of the sub-task {task.id} is pending"
            decided = any(task.id in change.tasks for change in review.changes)
            more = ": all were decided" if decided else ": it has changed nothing yet"
            self.ask(self.session.notice(said + more))
            return
        place = next(iter([*waiting(shown), ReviewPosition(shown[0].id)]))
        save_place(self.session, "review", place.saved())
        self.go_to("review")

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        self._go(event.key)

    @on(LineView.Chosen)
    def _row_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        if self._current is not None and self._current.runs:
            self.commands["chat"]()

    @on(LineView.Marked)
    def _row_marked(self, event: LineView.Marked) -> None:
        event.stop()
        self.act(self.session.subtasks.tick(event.key))

    @on(Input.Changed)
    def _input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.line.display:
            self.set_view(replace(self.look, words=event.value))

    def _leave_line(self) -> None:
        self.set_view(replace(self.look, words=""))
        self.stop_writing()


def _set(view: Rows, rows: list[Row], cursor: str = "") -> None:
    if tuple(rows) != view.rows or cursor != view.cursor:
        view.set_rows(rows, cursor)
