"""The mode beside the prompt, its key, and the key that carries out a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import reply

CHANGE = {"path": "a.py", "edits": [{"search": "one", "replace": "two"}]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("one\n")
    return tmp_path


async def test_shift_tab_in_the_prompt_goes_through_the_modes(workspace: Path) -> None:
    async with on_screen(workspace, size=(80, 24)) as it:
        await it.shows("edit   Shift+Tab changes the mode")
        for mode in ("ask", "auto", "edit"):
            await it.press("shift+tab")
            await it.shows(f"{mode}   Shift+Tab changes the mode")
            assert it.session.mode == mode
        await it.press("ctrl+o", "shift+tab")
        await it.until(lambda: it.screen.arrangement.layout.focus != "chat", "the previous pane")
        focus = it.screen.arrangement.layout.focus
        await it.press("shift+tab")
        await it.until(lambda: it.screen.arrangement.layout.focus != focus, "the one before it")
        assert it.session.mode == "edit"


async def test_one_key_carries_out_a_plan(workspace: Path) -> None:
    replies = [reply("The plan is two."), reply("Did it.", fileChanges=[CHANGE])]
    async with on_screen(workspace, replies) as it:
        await it.press(*"/mode ask", "enter")
        await it.shows("ask   Shift+Tab changes the mode")
        await it.press(*"Plan it", "enter")
        await it.shows("ask   Ctrl+G carries out the plan")
        await it.press("ctrl+g")
        await it.until(lambda: it.session.state.review.open, "the change")
        assert it.session.mode == "edit"
