"""A long file in the editor: a key costs what its line costs, whatever the length of the text."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.document._document import Document
from textual.document._wrapped_document import WrappedDocument
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Label, TextArea

from tests.support.panes import ThemedApp
from tui_agent.edits.search import Occurrence
from tui_agent.store.files import Buffer
from tui_agent.ui.compositor import SpanCompositor
from tui_agent.ui.themes import editor_theme
from tui_agent.ui.widgets import documents
from tui_agent.ui.widgets import editor as editor_module
from tui_agent.ui.widgets.documents import CodeDocument
from tui_agent.ui.widgets.editor import Editor
from tui_agent.ui.widgets.text_area import SEARCHED_LINES

LINES = [f"value_{number} = compute({number}, 'text')" for number in range(3_000)]


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
                    self[at] = letter, looks
                    at = at[0], at[1] + cell_len(letter)
            else:
                row, column = map(int, move.split(";"))
                at = row - 1, column - 1


class EditorApp(ThemedApp):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown, self.drawn = Cells(), 0
        self._buffer = Buffer("long.py", text=text, cursor=(1_500, 0), anchor=(1_500, 0), revision=1)

    def get_default_screen(self) -> RowScreen:
        return RowScreen()

    def compose(self) -> ComposeResult:
        yield Label("above")
        self.editor = Editor(self._buffer, editor_theme(self.theme, self.theme_variables))
        yield self.editor
        yield Label("below")

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if renderable is not None:
            self.shown.draw(renderable.render_segments(self.console))
        super()._display(screen, renderable)

    def whole(self) -> Cells:
        """The screen drawn from its beginning."""
        self.editor._line_cache.clear()
        self.editor._styles_cache.clear()
        cells = Cells()
        cells.draw(self.screen._compositor.render_full_update().render_segments(self.console))
        return cells

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
            ours, fresh = app.editor.wrapped_document, WrappedDocument(other.editor.document)
            for name in (
                "_offset_to_line_info",
                "_line_index_to_offsets",
                "_wrap_offsets",
                "_tab_width_cache",
            ):
                assert list(getattr(ours, name)) == getattr(fresh, name), name


async def test_only_the_lines_of_a_key_are_drawn_and_the_screen_is_that_of_a_whole_drawing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 0.02)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await parsed(pilot, app.editor)
        drawn: list[int] = []
        render = Editor.render_line
        monkeypatch.setattr(Editor, "render_line", lambda editor, y: drawn.append(y) or render(editor, y))
        for key, most in (
            ("x", 1),
            ("(", 1),
            ("left", 1),
            ("up", 3),
            ("backspace", 1),
            ("delete", 1),
            ("enter", 28),
            ("y", 1),
            ("shift+down", 2),
            ("shift+up", 2),
            ("tab", 1),
            ("#", 1),
            ('"', 1),
            ("pageup", 28),
            ("ctrl+z", 28),
        ):
            drawn.clear()
            await pilot.press(key)
            await pilot.pause()
            # a line is drawn again where its colours became others
            assert len({*drawn}) <= most or key in ("(", "#", '"', "enter"), (key, drawn)
            assert app.shown == app.whole(), key
            await parsed(pilot, app.editor)
            await pilot.pause()
            assert app.shown == app.whole(), f"{key}, once it was parsed"


async def test_lines_that_only_move_are_not_drawn_from_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor_module, "PARSED_AFTER", 60.0)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        app.editor.mark([Occurrence(1_503, 0, 5)])
        await pilot.pause()
        drawn: list[int] = []
        render = TextArea._render_line
        monkeypatch.setattr(TextArea, "_render_line", lambda area, y: drawn.append(y) or render(area, y))
        for key, most in (("enter", 4), ("backspace", 4), ("backspace", 4), ("enter", 4)):
            drawn.clear()
            await pilot.press(key)
            await pilot.pause()
            assert drawn and len(drawn) <= most, (key, drawn)
            assert app.shown == app.whole(), key


async def test_the_other_bracket_is_found_and_not_looked_for_in_the_whole_text() -> None:
    far = ["("] + ["x"] * SEARCHED_LINES + [")"]
    app = EditorApp("\n".join(["f(a[1], {", "  2: (3),", "})", *far, "] )"]))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        last = app.editor.document.line_count - 1
        for cursor, other in (
            ((0, 1), (2, 1)),
            ((2, 1), (0, 1)),
            ((0, 8), (2, 0)),
            ((1, 5), (1, 7)),
            ((1, 7), (1, 5)),
            ((0, 5), (0, 3)),
            ((3, 0), None),
            ((last - 1, 0), None),
            ((last, 0), None),
        ):
            app.editor.move_cursor(cursor)
            assert app.editor.matching_bracket_location == other, cursor


async def test_a_text_that_takes_long_to_parse_keeps_no_key_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of so many comments are looked for again at each of them."""
    monkeypatch.setattr(documents, "GIVEN_UP_AFTER", 0.8)
    app = EditorApp("value = 1\n" + "# (\n" * 20_000)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("x")
        document = app.editor.document
        assert isinstance(document, CodeDocument)
        assert document.get_line(1_500) == "x# (" and not document.given_up, (
            "it is shown and takes keys at once"
        )
        rounds = 0
        while not document.given_up:
            await asyncio.sleep(0.001)
            rounds += 1
        assert rounds > 20, "the loop went on meanwhile"
        await pilot.press("y")
        assert document.get_line(1_500) == "xy# ("


async def test_a_long_text_has_its_colours_once_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "AT_ONCE", 0.0)
    app = EditorApp("\n".join(LINES))
    async with app.run_test(size=(100, 30)) as pilot:
        await parsed(pilot, app.editor)
        await pilot.pause()
        assert all(app.editor._highlights[row] for row in range(1_490, 1_510))
        assert app.shown == app.whole()
