"""One editor on a screen, and what a terminal shows of it."""

from __future__ import annotations

import re
from typing import Any

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Label

from tests.support.panes import ThemedApp
from tui_agent.store.files import Buffer
from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.editor.documents import CodeDocument
from tui_agent.ui.textual_patches.spans import SpanCompositor


class RowScreen(Screen[None]):
    def __init__(self) -> None:
        super().__init__()
        self._compositor = SpanCompositor()


class Cells(dict[tuple[int, int], tuple[str, str]]):
    """What a terminal shows: by row and column a character and the escape sequence of its looks."""

    def draw(self, sequences: str) -> None:
        at, looks = (0, 0), ""
        for move, style, end, text in re.findall(
            r"\x1b\[([\d;]*)H|(\x1b\[[\d;]*m)|(\n)|([^\x1b\n]+)", sequences
        ):
            if style:
                looks = style
            elif end:
                at = at[0] + 1, 0
            elif text:
                for letter in text:
                    if width := cell_len(letter):
                        self[at] = letter, looks
                        for covered in range(1, width):
                            self.pop((at[0], at[1] + covered), None)
                    at = at[0], at[1] + width
            else:
                row, column = map(int, move.split(";"))
                at = row - 1, column - 1


class EditorApp(ThemedApp):
    def __init__(self, text: str, path: str = "long.py", cursor: tuple[int, int] = (1_500, 0)) -> None:
        super().__init__()
        self.shown = Cells()
        self.buffer = Buffer(path, text=text, cursor=cursor, anchor=cursor, revision=1)

    def get_default_screen(self) -> RowScreen:
        return RowScreen()

    def compose(self) -> ComposeResult:
        yield Label("above")
        self.editor = Editor(self.buffer)
        yield self.editor
        yield Label("below")

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if renderable is not None:
            self.shown.draw(renderable.render_segments(self.console))
        super()._display(screen, renderable)

    @property
    def seen(self) -> Cells:
        """What is shown where the screen is now."""
        width, height = self.size
        return Cells({at: cell for at, cell in self.shown.items() if at[0] < height and at[1] < width})

    def whole(self) -> Cells:
        """The screen drawn from its beginning."""
        self.editor.notify_style_update()
        self.editor._styles_cache.clear()
        cells = Cells()
        cells.draw(self.screen._compositor.render_full_update().render_segments(self.console))
        return cells

    def on_mount(self) -> None:
        self.editor.take(self.buffer)
        self.editor.focus()


async def parsed(pilot: Pilot[None], editor: Editor) -> CodeDocument:
    document = editor.document
    assert isinstance(document, CodeDocument)
    for _ in range(200):
        if document.parsed == document.edits:
            return document
        await pilot.pause(0.02)
    raise AssertionError("it was never parsed again")
