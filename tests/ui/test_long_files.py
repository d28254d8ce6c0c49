"""A long file in the editor: a key costs what its line costs, whatever the length of the text."""

from __future__ import annotations

import pytest
from textual.app import ComposeResult
from textual.document._document import Document
from textual.pilot import Pilot

from tests.support.panes import ThemedApp
from tui_agent.store.files import Buffer
from tui_agent.ui.themes import editor_theme
from tui_agent.ui.widgets import editor as editor_module
from tui_agent.ui.widgets.editor import Editor
from tui_agent.ui.widgets.text_area import CodeDocument

LINES = [f"value_{number} = compute({number}, 'text')" for number in range(3_000)]


class EditorApp(ThemedApp):
    def __init__(self, text: str) -> None:
        super().__init__()
        self._buffer = Buffer("long.py", text=text, cursor=(1_500, 0), anchor=(1_500, 0), revision=1)

    def compose(self) -> ComposeResult:
        self.editor = Editor(self._buffer, editor_theme(self.theme, self.theme_variables))
        yield self.editor

    def on_mount(self) -> None:
        self.editor.take(self._buffer)
        self.editor.focus()


async def parsed(pilot: Pilot[None], editor: Editor) -> CodeDocument:
    document = editor.document
    assert isinstance(document, CodeDocument)
    for _ in range(200):
        if document.parsed == document.edits:
            return document
        await pilot.pause(0.02)
    raise AssertionError("it was never parsed again")


def colours(editor: Editor) -> list[object]:
    return [sorted(editor._highlights[row]) for row in range(1_490, 1_520)]


async def test_a_key_joins_no_text_measures_its_line_and_parses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        joined, measured = [], []
        text, widest = Document.text, editor_module.widest
        assert isinstance(text, property) and text.fget is not None
        join = text.fget

        def measure(lines: list[str], tab: int) -> int:
            measured.append(len(lines))
            return widest(lines, tab)

        monkeypatch.setattr(Document, "text", property(lambda document: joined.append(1) or join(document)))
        monkeypatch.setattr(editor_module, "widest", measure)
        monkeypatch.setattr(editor_module, "PARSED_AFTER", 60.0)
        for key in ("x", "enter", "y", "backspace"):
            await pilot.press(key)
        assert not joined
        assert measured and max(measured) <= 2
        assert (
            app.editor.document.get_line(1_501) == LINES[1_500] and app.editor.document.get_line(1_500) == "x"
        )
        assert app.editor.wrapped_document.height == app.editor.document.line_count == 3_001
        monkeypatch.undo()
        await pilot.press("ctrl+z", "ctrl+z", "ctrl+z", "ctrl+z")
        assert app.editor.text == "\n".join(LINES), "all can be undone"


async def test_colours_and_rows_are_those_of_the_text_once_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 0.02)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        for key in ("é", "enter", "tab", '"', "a", "up", "end", "#", "ü"):
            await pilot.press(key)
        app.editor.replace("one\ntwo = 'x'\n\n", (1_495, 2), (1_499, 3))
        document = await parsed(pilot, app.editor)
        app.editor.scroll_to(0, 1_490, animate=False, immediate=True)
        await pilot.pause()
        picture, found = app.text, colours(app.editor)
        other = EditorApp(document.text)
        async with other.run_test(size=(100, 30)) as again:
            other.editor.move_cursor(app.editor.cursor_location)
            await again.pause()
            other.editor.scroll_to(0, 1_490, animate=False, immediate=True)
            await again.pause()
            assert colours(other.editor) == found
            assert other.text == picture
            ours, fresh = app.editor.wrapped_document, other.editor.wrapped_document
            for name in (
                "_offset_to_line_info",
                "_line_index_to_offsets",
                "_wrap_offsets",
                "_tab_width_cache",
            ):
                assert getattr(ours, name) == getattr(fresh, name), name
