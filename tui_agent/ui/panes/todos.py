"""The todo pane: tick, add, edit and reorder todos."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from textual import events, on

from tui_agent.session.session import Session
from tui_agent.store.state import ReviewSlice, State, Todo
from tui_agent.ui.safe_text import counted, label
from tui_agent.ui.widgets.line_view import DONE, OPEN, Line, LineView, Piece, Row, note
from tui_agent.ui.widgets.list_pane import ListPane


class TodosPane(ListPane):
    EMPTY = "Steps of the work."
    ID = "todos"
    SLICES: ClassVar[tuple[str, ...]] = ("todos", "review")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._todos: tuple[Todo, ...] = ()
        self._review = ReviewSlice()
        self._unfolded: set[str] = set()
        #: Id of the todo being edited; "" for a new one.
        self._editing = ""

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        todos = self.session.todos
        return {
            "toggle": partial(self._at_cursor, todos.toggle),
            "add": partial(self._write_todo, "", ""),
            "edit": lambda: (it := self._current()) and self._write_todo(it.id, it.text),
            "remove": partial(self._at_cursor, todos.remove),
            "move_up": partial(self._at_cursor, todos.move, -1),
            "move_down": partial(self._at_cursor, todos.move, 1),
        }

    def show(self, state: State) -> None:
        self._todos, self._review = state.todos, state.review
        self._draw()

    def _at_cursor(self, call: Callable[..., Coroutine[Any, Any, object]], *given: int) -> None:
        if todo := self._current():
            self.act(call(todo.id, *given))

    @on(LineView.Chosen)
    def _row_chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        self._unfolded ^= {event.key}
        self._draw()

    @on(LineView.Marked)
    def _row_marked(self, event: LineView.Marked) -> None:
        event.stop()
        self.act(self.session.todos.toggle(event.key))

    def take(self, text: str) -> None:
        text = text.strip()
        if text and self._editing:
            self.act(self.session.todos.edit(self._editing, text))
        elif text:
            self.act(self.session.todos.add(text))

    def write_again(self, todo: str) -> None:
        """Restores an interrupted edit: `todo` is its id, "" for a new one."""
        found = next((one for one in self._todos if one.id == todo), None)
        if found is not None or not todo:
            self._write_todo(todo, found.text if found else "")

    @on(events.DescendantBlur)
    def _focus_left(self) -> None:
        if self.screen.focused is not self.line and not self.line.value:  # `has_focus` is later
            self.line.display = False

    def _current(self) -> Todo | None:
        return next((todo for todo in self._todos if todo.id == self.rows.cursor), None)

    def _write_todo(self, todo: str, text: str) -> None:
        self._editing = todo
        self.line.placeholder = "a step of the work"
        self.write(text, f"todo:{todo}")

    def _draw(self) -> None:
        done = sum(todo.done for todo in self._todos)
        self.title_text = label(f"{self.TITLE} {done}/{len(self._todos)}" if self._todos else self.TITLE)
        rows = list[Row]()
        for todo in self._todos:
            count = len({change.path for change in self._review.changes if change.id in todo.changes})
            files = (Piece(counted(count, "file"), "muted"),) if count else ()
            text = Piece(todo.text, "muted" if todo.done else "")
            line = Line((DONE if todo.done else OPEN, Piece(" "), text), files)
            rows.append(Row(todo.id, line, wraps=True, marked=True))
            if todo.details and todo.id in self._unfolded:
                rows.append(note(f"  {todo.details}", "muted", 2))
        self.set_rows(rows)
