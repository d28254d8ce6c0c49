"""The mode beside the prompt, its key, and the key that carries out a plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import reply

from tui_agent.errors import RequestRejected
from tui_agent.store.session_events import GoalSet

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


async def test_a_goal_is_shown_beside_the_mode_and_given_up_by_a_word(workspace: Path) -> None:
    begun = reply("Begun.", message="GOAL: open", fileChanges=[CHANGE])
    refused = RequestRejected("The model declined", "ask again")
    replies = [begun, reply("Shall I go on?"), reply("Again.", fileChanges=[CHANGE]), refused]
    async with on_screen(workspace, replies) as it:
        shown: list[str] = []
        it.session.subscribe(lambda event, state: shown.append(state.input.goal))
        await it.press(*"/goal", "enter")
        await it.press(*"it says two", "enter")
        await it.shows("The goal is not reached, and the last turn made no progress: it says two")
        assert "it says two" in shown and it.session.state.turn.number == 2
        await it.session.journal.record(GoalSet("it says three and much more than that"))
        await it.shows("goal: it says three and much m… · /goal off")
        await it.press(*"/goal off", "enter")
        await it.shows("edit   Ctrl+Y apply, Ctrl+K skip: ")
        await it.press(*"/goal it ends", "enter")
        await it.shows("abandoned because its turn failed: it ends")
        assert it.session.state.turn.number == 4 and not it.session.state.turn.ok
        assert not it.pane("chat").prompt.text  # the program's own message does not return
