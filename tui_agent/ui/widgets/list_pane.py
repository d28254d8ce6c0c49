"""A pane with a list of rows and a temporary input line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.widgets import Input

from tui_agent.ui.editor.writing_area import KeptInput
from tui_agent.ui.widgets.line_view import Row, Rows, note
from tui_agent.ui.widgets.pane import Pane


class ListPane(Pane):
    """`EMPTY` replaces an empty list; `take` receives the submitted line, or "" if it is left."""

    EMPTY: ClassVar[str] = ""

    def compose(self) -> ComposeResult:
        yield Rows()
        yield KeptInput(compact=True, select_on_focus=False)

    @property
    def rows(self) -> Rows:
        return self.query_one(Rows)

    @property
    def line(self) -> Input:
        return self.query_one(Input)

    def set_rows(self, rows: Sequence[Row], cursor: str | None = None, *, empty: str = "") -> None:
        shown = rows or [note(empty or self.EMPTY)]
        if tuple(shown) != self.rows.rows or cursor not in (None, self.rows.cursor):
            self.rows.set_rows(shown, cursor)

    def write(self, text: str, place: str = "") -> None:
        """Opens the input line with `text`, or with the draft saved at `place`."""
        line = self.line
        if isinstance(line, KeptInput) and place:
            text = line.keep_at(self.session, place, text)
        line.value, line.cursor_position = text, len(text)
        line.display = True
        line.focus()

    def take(self, text: str) -> None:
        pass

    def stop_writing(self) -> None:
        line = self.line
        if isinstance(line, KeptInput):
            line.give_up()
            line.value = ""
        line.display = False
        self.entry.focus()

    @on(Input.Submitted)
    def _input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.take(event.value)
        self.stop_writing()

    @on(events.Key)
    def _take_key(self, event: events.Key) -> None:
        if self.line.has_focus and self.keys.matches(event.key, "line.leave"):
            event.stop()
            self.take("")
            self.stop_writing()
