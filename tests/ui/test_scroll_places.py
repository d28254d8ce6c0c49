"""What was in view is in view again when a session is resumed, at any size: in the editor and in the transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import Driven, on_screen

from tui_agent.ui.widgets.editor import Editor

SIZES = ((160, 48), (80, 24))


def the_editor(it: Driven) -> Editor:
    return next(iter(it.screen.query(Editor)))


@pytest.mark.parametrize(("before", "after"), [SIZES, SIZES[::-1]], ids=["to narrow", "to wide"])
async def test_the_editor_shows_the_lines_that_it_showed(
    tmp_path: Path, before: tuple[int, int], after: tuple[int, int]
) -> None:
    (tmp_path / "long.py").write_text("".join(f"line_{number} = {'x' * 300}\n" for number in range(1, 500)))
    async with on_screen(tmp_path, size=before) as it:
        await it.session.open_file("long.py", 40)
        await it.press("f4")
        await it.shows("line_40 ")
        the_editor(it).scroll_to(12, 300, animate=False)
        await it.until(lambda: it.session.state.buffers.open[0].scroll == (300, 12), "the place to be kept")
    async with on_screen(tmp_path, size=after, session="last") as it:
        await it.until(lambda: the_editor(it).scroll_place == (300, 12), "the place")
        await it.pane("buffers").flush()
        assert it.session.state.buffers.open[0].scroll == (300, 12)
        assert the_editor(it).place == ((39, 0), (39, 0)), "the cursor is where it was too"
        await it.session.open_file("long.py", 20)
        await it.shows("line_20 ")
