"""Tabs of the open files, above the editor."""

from __future__ import annotations

from pathlib import PurePosixPath

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.ui.safe_text import parts

_GAP = 3


class FileTabs(Widget):
    """One tab per open file. A click activates the file."""

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
        #: File under the pressed mouse button; its tab may move before the release.
        self._pressed = ""

    def show(self, buffers: BuffersSlice) -> None:
        before, self._buffers = self.render(), buffers
        self.set_class(not buffers.open, "-empty")
        if not self.render().is_same(before):
            self.refresh()

    def render(self) -> Content:
        labels = [self._label(buffer) for buffer in self._shown()]
        return Content(" " * _GAP).join(labels) if labels else parts(("Editor", "bold"))

    def _shown(self) -> list[Buffer]:
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
        name = PurePosixPath(path).name
        twins = [b for b in self._buffers.open if PurePosixPath(b.path).name == name]
        return name if len(twins) < 2 else "/".join(PurePosixPath(path).parts[-2:])

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = ""
        x = event.get_content_offset_capture(self).x
        for buffer in self._shown():
            x -= self._label(buffer).cell_length + _GAP
            if x < 0:
                self._pressed = buffer.path
                return

    def on_click(self) -> None:
        if self._pressed:
            self.post_message(self.FilePressed(self._pressed))
