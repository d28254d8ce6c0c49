from __future__ import annotations

import pytest
from support.panes import ThemedApp
from textual.app import ComposeResult

from tui_agent.ui import textual_patches
from tui_agent.ui.themes import load_palette, theme_of
from tui_agent.ui.widgets.line_view import Line, LineView, Piece, Row, Rows


class RowsApp(ThemedApp):
    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.first = rows
        self.said: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        yield Rows()

    def on_mount(self) -> None:
        self.rows.set_rows(self.first)
        self.rows.focus()

    @property
    def rows(self) -> Rows:
        return self.query_one(Rows)

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        self.said.append((type(event).__name__, event.key))

    on_line_view_chosen = on_line_view_marked = on_line_view_moved


def numbered(count: int) -> list[Row]:
    return [Row(f"k{n}", Line((Piece(f"row {n}"),))) for n in range(count)]


async def test_the_cursor_starts_on_the_first_row_that_can_have_it():
    app = RowsApp([Row("", Line((Piece("heading"),))), *numbered(2)])
    async with app.run_test(size=(20, 5)):
        assert app.rows.cursor == "k0"


async def test_keys_move_the_cursor_and_it_is_scrolled_to():
    app = RowsApp(numbered(100))
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("down", "down")
        assert app.rows.cursor == "k2"
        await pilot.press("end")
        assert app.rows.cursor == "k99" and "row 99" in app.text
        await pilot.press("pageup")
        assert app.rows.cursor == "k95"
        await pilot.press("home")
        assert app.rows.cursor == "k0" and "row 0" in app.text
        assert app.said[-1] == ("Moved", "k0")


async def test_the_cursor_stays_on_its_row_when_others_come_before_it():
    app = RowsApp(numbered(3))
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("down")
        app.rows.set_rows([Row("new", Line((Piece("new"),))), *numbered(3)])
        assert app.rows.cursor == "k1"


async def test_a_cursor_that_nobody_moved_stays_on_the_first_row_and_scrolls_nothing():
    """Otherwise it is on the row that was drawn first, which depends on the machine's speed."""
    app = RowsApp(numbered(9))
    async with app.run_test(size=(20, 5)) as pilot:
        app.set_focus(None)
        rows = Rows()
        await app.mount(rows)
        rows.set_rows(numbered(9)[2:])
        assert rows.cursor == "k2"
        await pilot.pause()
        rows.scroll_to(y=3)
        rows.set_rows(numbered(9))
        await pilot.pause()
        assert rows.cursor == "k0" and rows.scroll_offset.y == 3
        rows.move_to("k4")
        rows.set_rows(numbered(9)[1:])
        assert rows.cursor == "k4"
        rows.set_rows(numbered(9)[5:])
        assert rows.cursor == "k8"  # the nearest to its position


async def test_the_cursor_goes_to_the_nearest_row_when_its_own_is_gone():
    app = RowsApp(numbered(3))
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("end")
        app.rows.set_rows(numbered(2))
        assert app.rows.cursor == "k1"
        app.rows.set_rows([])
        assert app.rows.cursor == ""


async def test_a_row_that_wraps_takes_as_many_lines_as_it_needs():
    app = RowsApp([Row("", Line((Piece("one two three four"),)), wraps=True, hang=2), *numbered(1)])
    async with app.run_test(size=(12, 6)) as pilot:
        lines = [line.rstrip() for line in app.text.split("\n")]
        assert lines[:4] == [" one two", "   three", "   four", "▌row 0"]
        await pilot.resize_terminal(40, 6)
        await pilot.pause()
        assert app.text.split("\n")[0].strip() == "one two three four"


async def test_the_mouse_moves_chooses_and_presses_marks():
    rows = [Row(key, Line((Piece("○"), Piece(" "), Piece("text"))), marked=True) for key in ("a", "b")]
    app = RowsApp(rows)
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.click(Rows, offset=(6, 1))
        await pilot.click(Rows, offset=(6, 1))
        await pilot.click(Rows, offset=(1, 0))
        await pilot.pause()
        assert app.said == [("Moved", "b"), ("Chosen", "b"), ("Marked", "a")]


async def test_only_visible_rows_are_drawn(monkeypatch):
    app = RowsApp(numbered(50_000))
    drawn: list[int] = []
    render = Rows.render_line
    monkeypatch.setattr(Rows, "render_line", lambda self, y: drawn.append(y) or render(self, y))
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        assert app.rows.cursor == "k49999"
        assert max(drawn) < 5


async def test_the_style_of_a_meaning_is_worked_out_when_it_is_first_drawn_and_again_with_other_colours():
    textual_patches.apply()
    app = RowsApp(numbered(2))
    async with app.run_test(size=(20, 5)) as pilot:
        assert set(app.rows._component_styles) == {"ink--accent", "ground--cursor"}
        before = app.rows.ink("accent").color, app.rows.ink("failed").color
        app.register_theme(theme_of(load_palette("light")))
        app.theme = "light"
        await pilot.pause()
        assert (app.rows.ink("accent").color, app.rows.ink("failed").color) != before
        with pytest.raises(KeyError):
            app.rows.get_component_styles("ink--unknown")
