"""The todos: ticked, added, edited and put in order by hand."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.widgets import Input

from tui_agent.session.session import Session
from tui_agent.store.state import ReviewSlice, State, Todo
from tui_agent.ui.editor.kept_text import KeptInput
from tui_agent.ui.sink import counted, label
from tui_agent.ui.widgets.lines import DONE, OPEN, Line, Lined, Piece
from tui_agent.ui.widgets.pane import Pane
from tui_agent.ui.widgets.rows import Row, Rows

_EMPTY = "The steps of the work are listed here."


class TodosPane(Pane):
    """A row for each todo, and at the bottom a line to write one, shown while it is used."""

    ID = "todos"
    SLICES: ClassVar[tuple[str, ...]] = ("todos", "review")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._todos: tuple[Todo, ...] = ()
        self._review = ReviewSlice()
        self._unfolded: set[str] = set()
        #: The todo whose text is in the input; empty for a new one.
        self._editing = ""

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        todos = self.session.todos
        return {
            "toggle": partial(self._at_cursor, todos.toggle),
            "add": partial(self._write, "", ""),
            "edit": self._edit,
            "remove": partial(self._at_cursor, todos.remove),
            "move_up": partial(self._at_cursor, todos.move, -1),
            "move_down": partial(self._at_cursor, todos.move, 1),
        }

    def compose(self) -> ComposeResult:
        yield Rows()
        yield KeptInput(compact=True, select_on_focus=False)

    def show(self, state: State) -> None:
        self._todos, self._review = state.todos, state.review
        self._draw()

    def _at_cursor(self, call: Callable[..., Coroutine[Any, Any, object]], *given: int) -> None:
        """Ask the session for something with the todo under the cursor."""
        if todo := self._current():
            self.act(call(todo.id, *given))

    def _edit(self) -> None:
        if todo := self._current():
            self._write(todo.id, todo.text)

    def on_lined_chosen(self, event: Lined.Chosen) -> None:
        """Unfold or fold the details of the todo."""
        event.stop()
        self._unfolded ^= {event.key}
        self._draw()

    def on_lined_marked(self, event: Lined.Marked) -> None:
        event.stop()
        self.act(self.session.todos.toggle(event.key))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if text and self._editing:
            self.act(self.session.todos.edit(self._editing, text))
        elif text:
            self.act(self.session.todos.add(text))
        self._stop_writing()

    def write_again(self, todo: str) -> None:
        """Go on with a line that was being written when the session ended: `todo` is its id, empty for a new one."""
        found = next((one for one in self._todos if one.id == todo), None)
        if found is not None or not todo:
            self._write(todo, found.text if found else "")

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape" and self._input.has_focus:
            event.stop()
            self._stop_writing()

    def on_descendant_blur(self) -> None:
        if not self._input.has_focus and not self._input.value:
            self._input.display = False

    @property
    def _rows(self) -> Rows:
        return self.query_one(Rows)

    @property
    def _input(self) -> KeptInput:
        return self.query_one(KeptInput)

    def _current(self) -> Todo | None:
        return next((todo for todo in self._todos if todo.id == self._rows.cursor), None)

    def _write(self, todo: str, text: str) -> None:
        self._editing = todo
        self._input.placeholder = "what is to be done"
        self._input.value = text = self._input.keep_at(self.session, f"todo:{todo}", text)
        self._input.cursor_position = len(text)
        self._input.display = True
        self._input.focus()

    def _stop_writing(self) -> None:
        self._editing = ""
        self._input.give_up()
        self._input.value = ""
        self._input.display = False
        self._rows.focus()

    def _draw(self) -> None:
        done = sum(todo.done for todo in self._todos)
        self.title_text = label(f"{self.TITLE} {done}/{len(self._todos)}" if self._todos else self.TITLE)
        rows = [row for todo in self._todos for row in self._row(todo)]
        self._rows.set_rows(rows or [Row("", Line((Piece(_EMPTY, "muted"),)), wraps=True)])

    def _row(self, todo: Todo) -> list[Row]:
        count = len({change.path for change in self._review.changes if change.id in todo.changes})
        files = (Piece(counted(count, "file"), "muted"),) if count else ()
        text = Piece(todo.text, "muted" if todo.done else "")
        line = Line((DONE if todo.done else OPEN, Piece(" "), text), files)
        rows = [Row(todo.id, line, wraps=True, marked=True)]
        if todo.details and todo.id in self._unfolded:
            rows.append(Row("", Line((Piece(f"  {todo.details}", "muted"),)), wraps=True, hang=2))
        return rows
