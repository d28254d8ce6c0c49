"""What the keys of the sub-tasks do: running what the cursor is on, looking into it, changing the graph by hand."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace
from textual.app import App
from textual.widgets import Input

from tui_agent.session.session import Session
from tui_agent.store.graph import SubTask, layers
from tui_agent.ui.panes.review_place import ReviewPosition, shown_changes, waiting
from tui_agent.ui.panes.subtasks_look import Look

_Coroutine = Coroutine[Any, Any, object]


class ShownTasks(Protocol):
    """The pane, as far as its keys go."""

    session: Session
    shown: tuple[SubTask, ...]

    @property
    def app(self) -> App[object]: ...
    @property
    def look(self) -> Look: ...

    def look_as(self, look: Look) -> None: ...
    def query_one(self, selector: type[Input]) -> Input: ...
    def act(self, call: _Coroutine) -> None: ...
    def ask(self, call: _Coroutine) -> None: ...
    def go_to(self, name: str) -> None: ...
    def run_worker(self, work: _Coroutine, *, group: str, exclusive: bool) -> object: ...


class SubTaskActions:
    """Each is about the task that the cursor is on when its key is pressed."""

    def __init__(self, pane: ShownTasks) -> None:
        self._pane = pane
        self._session = pane.session

    @property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        from tui_agent.ui.dialogs import subtask_chat, subtask_forms

        pane, tasks = self._pane, self._session.subtasks
        return {
            "next": partial(self._step, 1),
            "previous": partial(self._step, -1),
            "run": partial(self._do, tasks.run),
            "run_ticked": lambda: pane.act(tasks.run_ticked()),
            "tick": partial(self._do, tasks.tick),
            "skip": partial(self._do, tasks.skip),
            "retry": partial(self._do, tasks.retry),
            "stop": partial(self._do, tasks.stop),
            "stop_all": lambda: pane.ask(tasks.stop_all()),
            "chat": partial(self._open, subtask_chat.open_chat),
            "changes": self._show_changes,
            "add": lambda: self._work(subtask_forms.add(pane.app, self._session)),
            "edit": partial(self._open, subtask_forms.edit),
            "connect": partial(self._open, subtask_forms.connect),
            "remove": partial(self._open, subtask_forms.remove),
            "fold": lambda: pane.look_as(replace(pane.look, folded=not pane.look.folded)),
            "follow": lambda: pane.look_as(replace(pane.look, follows=not pane.look.follows)),
            "filter": self._begin_filter,
        }

    def go(self, task: str) -> None:
        """Put the cursor on a task; it keeps to what runs no longer."""
        if task and task != self._pane.look.cursor:
            self._pane.look_as(replace(self._pane.look, cursor=task, follows=False))

    @property
    def _current(self) -> SubTask | None:
        return self._session.state.subtasks.get(self._pane.look.cursor)

    def _step(self, step: int) -> None:
        order = [task.id for layer in layers(self._pane.shown) for task in layer]
        if (cursor := self._pane.look.cursor) in order:
            self.go(order[max(0, min(order.index(cursor) + step, len(order) - 1))])

    def _begin_filter(self) -> None:
        """Show the line in which words to look for are written."""
        line, words = self._pane.query_one(Input), self._pane.look.words
        line.value, line.cursor_position = words, len(words)
        line.display = True
        line.focus()

    def _do(self, call: Callable[[str], _Coroutine]) -> None:
        if task := self._current:
            self._pane.act(call(task.id))

    def _open(self, dialog: Callable[[App[object], Session, SubTask], _Coroutine]) -> None:
        if task := self._current:
            self._work(dialog(self._pane.app, self._session, task))

    def _work(self, call: _Coroutine) -> None:
        self._pane.run_worker(call, group="subtask", exclusive=True)

    def _show_changes(self) -> None:
        """Go to the review, to the first change of this task that waits, or was decided last."""
        task = self._current
        if task is None:
            return
        review = self._session.state.review
        shown = [change for change in shown_changes(review) if task.id in change.tasks]
        if not shown:
            said = f"No change of the sub-task {task.id} waits for review"
            decided = any(task.id in change.tasks for change in review.changes)
            more = ": all of them were decided" if decided else ": it has changed nothing so far"
            self._pane.ask(self._session.notice(said + more))
            return
        place = next(iter([*waiting(shown), ReviewPosition(shown[0].id)]))
        layout = self._session.state.layout
        self._session.set_layout(replace(layout, place={**layout.place, "review": place.saved()}))
        self._pane.go_to("review")
