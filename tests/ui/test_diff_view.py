from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style
from support.panes import HOSTILE, ThemedApp
from support.scenes import scene
from textual.app import ComposeResult

from tui_agent.edits.change import Diff, Hunk
from tui_agent.ui.diff.diff_lines import DiffLines
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.themes import Depth


def sample(lines: int = 200, every: int = 50) -> Diff:
    """A file of that many lines where every so many one word is another."""
    base = tuple(f"value_{n} = {n}\n" for n in range(lines))
    hunks = tuple(Hunk(n, (base[n],), (f"value_{n} = old\n",)) for n in range(every // 2, lines, every))
    return Diff("f.py", base, hunks)


class DiffApp(ThemedApp):
    def __init__(self) -> None:
        super().__init__()
        self.clicked: list[int] = []

    def compose(self) -> ComposeResult:
        yield DiffView()

    @property
    def view(self) -> DiffView:
        return self.query_one(DiffView)

    def on_diff_view_hunk_clicked(self, event: DiffView.HunkClicked) -> None:
        self.clicked.append(event.hunk)


async def test_lines_have_numbers_and_signs_and_the_current_hunk_a_bar():
    app = DiffApp()
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.show_diff(sample(), current=0)
        await pilot.pause()
        assert app.line_with("value_25 = 25") == "▌   26     - value_25 = 25"
        assert app.line_with("value_25 = old") == "▌       26 + value_25 = old"
        assert app.line_with("value_24") == "    25  25   value_24 = 24"
        assert app.line_with("unchanged").strip() == "⋯   22 unchanged lines"


async def test_another_current_hunk_is_scrolled_to():
    app = DiffApp()
    async with app.run_test(size=(60, 10)) as pilot:
        diff = sample()
        app.view.show_diff(diff, current=0)
        await pilot.pause()
        app.view.show_diff(diff, current=3)
        await pilot.pause()
        assert app.line_with("value_175 = old").startswith("▌")


async def test_decided_hunks_carry_their_mark():
    app = DiffApp()
    async with app.run_test(size=(60, 40)) as pilot:
        app.view.show_diff(sample(), ["applied", "skipped", "pending", "pending"], current=2)
        await pilot.pause()
        assert app.line_with("value_25 = 25").startswith(" ✓ ")
        assert app.line_with("value_75 = 75").startswith(" – ")
        assert app.line_with("value_125 = 125").startswith("▌  126     -")
        # what was applied keeps its colour without the ground; what was skipped is grey
        removed, muted = (app.view.ink(name).color for name in ("removed", "muted"))
        applied, skipped, pending = (last_ink(app, f"- value_{n}") for n in (25, 75, 125))
        assert applied.color == removed != muted == skipped.color
        assert applied.bgcolor == skipped.bgcolor != pending.bgcolor


def last_ink(app: DiffApp, text: str) -> Style:
    """How the end of the first line that holds the text is drawn."""
    strips = app.screen._compositor.render_strips()
    strip = next(strip for strip in strips if text in "".join(segment.text for segment in strip))
    return next(segment.style for segment in reversed(list(strip)) if segment.text.strip() and segment.style)


async def test_the_mouse_chooses_hunks_and_opens_folds():
    app = DiffApp()
    async with app.run_test(size=(60, 40)) as pilot:
        app.view.show_diff(sample(), current=0)
        await pilot.pause()
        await pilot.click(DiffView, offset=(10, 4))
        assert app.clicked == [0]
        await pilot.click(DiffView, offset=(10, 0))
        await pilot.pause()
        assert "value_0 = 0" in app.text


async def test_enter_shows_all_lines_and_folds_them_again():
    app = DiffApp()
    async with app.run_test(size=(60, 40)) as pilot:
        app.view.show_diff(sample(), current=0)
        app.view.focus()
        await pilot.press("enter")
        assert app.view.virtual_size.height == 204
        await pilot.press("enter")
        assert app.view.virtual_size.height < 60


async def test_long_lines_go_on_below_with_nothing_left_out():
    app = DiffApp()
    async with app.run_test(size=(31, 8)) as pilot:
        diff = Diff("f", (), (Hunk(0, (), ("x" * 50 + "END\n", "x" + "日本" * 20 + "\n")),))
        app.view.show_diff(diff, current=0)
        await pilot.pause()
        rows = [line.rstrip() for line in app.text.split("\n")]
        assert rows[:3] == ["▌  1 + " + "x" * 23, "▌      " + "x" * 23, "▌      xxxxEND"]
        assert sum(row.count("日") for row in rows) == 20
        await pilot.resize_terminal(71, 8)
        await pilot.pause()
        assert app.line_with("END") == "▌    1 + " + "x" * 50 + "END"


async def test_text_from_outside_stays_text():
    app = DiffApp()
    async with app.run_test(size=(80, 6)) as pilot:
        app.view.show_diff(Diff("f", (), (Hunk(0, (), (HOSTILE.replace("\n", ""),)),)), current=0)
        await pilot.pause()
        assert "[red]x[/red] [@click=app.quit]␛[31m␇    日本語" in app.text
        app.view.show_words(HOSTILE)
        await pilot.pause()
        assert "[red]x[/red]" in app.text and "\x1b" not in app.text


async def test_only_visible_lines_are_drawn_however_long_the_diff(monkeypatch):
    drawn: list[object] = []
    text = DiffLines.text
    monkeypatch.setattr(DiffLines, "text", lambda self, line: drawn.append(line) or text(self, line))
    app = DiffApp()
    async with app.run_test(size=(80, 20)) as pilot:
        lines = tuple(f"line {n}\n" for n in range(20_000))
        app.view.show_diff(Diff("f", (), (Hunk(0, (), lines),)), current=0)
        await pilot.pause()
        assert 0 < len(drawn) <= 20
        app.view.scroll_to(y=10_000)
        await pilot.pause()
        assert "line 10000" in app.text and len(drawn) <= 40
        app.view.scroll_to(y=10_001)
        await pilot.pause()
        assert len(drawn) <= 41


async def test_colours_that_come_late_are_not_laid_over_the_next_diff():
    app = DiffApp()
    async with app.run_test(size=(60, 10)) as pilot:
        first, second = sample(40, 10), sample(400, 300)
        app.view.show_diff(first)
        await pilot.pause()
        app.view.display = False  # the next diff is not drawn before those colours come
        app.view._awaited = first
        app.view.show_diff(second, current=0)
        await app.view._colour(first)
        app.view.display = True
        await pilot.pause()
        assert "value_150" in app.text


@pytest.mark.parametrize(("depth", "differs"), [("colors-16", True), ("colors", False)])
async def test_the_proposed_side_of_a_conflict_has_a_colour_if_it_has_no_ground(
    tmp_path: Path, depth: Depth, differs: bool
) -> None:
    async with scene("conflict", tmp_path, (120, 40), depth) as it:
        await it.shows("+     return 3")
        strips = it.screen._compositor.render_strips()

        def ink(words: str) -> object:
            found = (one.style for strip in strips for one in strip if words in one.text and one.style)
            return next(style.color for style in found)

        assert (ink("+     return 3") != ink("return 2")) is differs
