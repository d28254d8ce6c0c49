from __future__ import annotations

from support.panes import HOSTILE, ThemedApp
from textual.app import ComposeResult

from tui_agent.edits.change import Diff, Hunk
from tui_agent.ui.diff.diff_lines import DiffLines
from tui_agent.ui.diff.diff_view import DiffSides, pairs

BASE = tuple(f"line {n}\n" for n in range(60))
DIFF = Diff(
    "f.txt",
    BASE,
    (Hunk(10, BASE[10:12], ("ten\n",)), Hunk(40, (), ("one\n", "two\n")), Hunk(50, BASE[50:51], ())),
)


class SidesApp(ThemedApp):
    def compose(self) -> ComposeResult:
        yield DiffSides()

    @property
    def view(self) -> DiffSides:
        return self.query_one(DiffSides)


def test_each_line_stands_beside_what_it_became() -> None:
    shown = DiffLines(DIFF)
    found = [
        tuple("" if n is None else shown.text(shown.lines[n]) for n in pair)
        for pair in pairs(shown)
        if shown.lines[next(n for n in pair if n is not None)].hunk >= 0
    ]
    assert found == [("line 10", "ten"), ("line 11", ""), ("", "one"), ("", "two"), ("line 50", "")]


async def test_both_sides_are_seen_and_the_current_hunk_is_scrolled_to() -> None:
    app = SidesApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.view.show_diff(DIFF, current=0)
        await pilot.pause()
        row = app.line_with("ten")
        left, right = row.split("│")
        assert "- line 10" in left and "+ ten" in right
        assert "line 9" in app.line_with("line 9").split("│")[1]
        app.view.show_diff(DIFF, current=2)
        await pilot.pause()
        assert "- line 50" in app.line_with("line 50").split("│")[0]


async def test_long_and_hostile_lines_go_on_below_on_their_own_side() -> None:
    app = SidesApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.view.show_diff(Diff("f", (HOSTILE,), (Hunk(0, (HOSTILE,), ("abc " * 12 + "end",)),)), current=0)
        await pilot.pause()
        assert "\x1b" not in app.text and "[red]" in app.text
        assert "end" in "".join(line.split("│")[-1].strip() for line in app.text.split("\n"))
