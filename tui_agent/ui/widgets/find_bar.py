"""One line under the editor: words to find, or a line to go to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from textual import events
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.editor import Editor

Mode = Literal["find", "line"]


class FindBar(Horizontal):
    """Enter goes on to the next place, up and down walk, Esc closes."""

    DEFAULT_CSS = """
    FindBar {
        height: 1; background: $surface-raised; padding: 0 1;
        & Input { border: none; height: 1; padding: 0 1; width: 1fr; background: $surface-raised; }
        & Static { width: auto; height: 1; }
    }
    """

    class Closed(Message):
        pass

    def __init__(self) -> None:
        super().__init__()
        self.display = False
        self._mode: Mode = "find"
        self._editor: Editor | None = None

    def compose(self) -> Iterable[Widget]:
        yield Static("", id="find-what", markup=False)
        yield Input(id="find-words", compact=True)
        yield Static("", id="find-none", markup=False)

    def open_for(self, mode: Mode, editor: Editor) -> None:
        self._mode, self._editor = mode, editor
        self.display = True
        self.query_one("#find-what", Static).update(parts(("find" if mode == "find" else "line", "$accent")))
        words = self.query_one(Input)
        words.value = editor.selected_text if mode == "find" and "\n" not in editor.selected_text else ""
        words.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._mode == "find" and event.value:
            self._find(here=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._mode == "find":
            self._find()
        elif self._editor and event.value.strip().isdigit():
            self._editor.go_to_line(int(event.value))
            self._close()

    def on_key(self, event: events.Key) -> None:
        match event.key:
            case "escape":
                event.stop()
                self._close()
            case "down":
                event.stop()
                self._find()
            case "up":
                event.stop()
                self._find(forward=False)

    def _find(self, forward: bool = True, here: bool = False) -> None:
        if self._editor is None or self._mode != "find":
            return
        found = self._editor.find(self.query_one(Input).value, forward, here)
        self.query_one("#find-none", Static).update(parts(("" if found else "not there", "$warning")))

    def _close(self) -> None:
        self.display = False
        self.post_message(self.Closed())
