"""The lines around the editor: the open files above it, and what is looked for below it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from textual import events
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.editor import Editor

_GAP = 3


class FileTabs(Widget):
    """A click on a name brings that file to the front."""

    DEFAULT_CSS = """
    FileTabs { height: 1; padding: 0 1; background: $background; color: $text; }
    """

    class FilePressed(Message):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self._buffers = BuffersSlice()

    def show(self, buffers: BuffersSlice) -> None:
        self._buffers = buffers
        self.set_class(not buffers.open, "-empty")
        self.refresh()

    def render(self) -> Content:
        labels = [self._label(buffer) for buffer in self._shown()]
        return Content(" " * _GAP).join(labels) if labels else parts(("Editor", "bold"))

    def _shown(self) -> list[Buffer]:
        """The tabs that fit, from the left unless the active one would be out of view."""
        shown = list(self._buffers.open)
        while len(shown) > 1 and sum(self._label(b).cell_length + _GAP for b in shown) > self.size.width:
            if shown[0].path == self._buffers.active:
                shown.pop()
            else:
                shown.pop(0)
        return shown

    def _label(self, buffer: Buffer) -> Content:
        name = self._title_of(buffer.path)
        mark = ("!" if buffer.clash else "●", "$warning") if buffer.unsaved or buffer.clash else ("", "")
        front = buffer.path == self._buffers.active
        return parts((name, "bold" if front else "$muted"), " " if mark[0] else "", mark)

    def _title_of(self, path: str) -> str:
        """The file's name, with its folder where two open files share it."""
        name = PurePosixPath(path).name
        twins = [b for b in self._buffers.open if PurePosixPath(b.path).name == name]
        return name if len(twins) < 2 else "/".join(PurePosixPath(path).parts[-2:])

    def on_click(self, event: events.Click) -> None:
        x = event.get_content_offset_capture(self).x
        for buffer in self._shown():
            x -= self._label(buffer).cell_length + _GAP
            if x < 0:
                self.post_message(self.FilePressed(buffer.path))
                return


FindMode = Literal["find", "line"]


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
        self._mode: FindMode = "find"
        self._editor: Editor | None = None

    def compose(self) -> Iterable[Widget]:
        yield Static("", id="find-what", markup=False)
        yield Input(id="find-words", compact=True)
        yield Static("", id="find-none", markup=False)

    def open_for(self, mode: FindMode, editor: Editor) -> None:
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
        count = self._editor.count(self.query_one(Input).value)
        said = (f"{count} found", "$muted") if found else ("not there", "$warning")
        self.query_one("#find-none", Static).update(parts(said))

    def _close(self) -> None:
        self.display = False
        self.post_message(self.Closed())
