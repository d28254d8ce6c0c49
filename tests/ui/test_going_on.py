"""What the model is reminded of when the person asks to go on: seen before it is sent, and edited."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import model_of, open_session, reply

from tui_agent.errors import SessionError
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.widgets.prompt import Prompt


async def test_it_is_shown_before_it_is_sent_and_the_edited_words_go_out(tmp_path: Path) -> None:
    async with on_screen(tmp_path, [reply("Half of it."), reply("All of it.")]) as it:
        await it.session.chat.submit("Write the parser")
        await it.session.chat.finished()
        it.one(Prompt).set_value("continue")
        await it.shows("your progress is sent, too · Ctrl+O C edits it")
        await it.press("ctrl+o", "C")
        await it.until(lambda: isinstance(it.app.screen, TextDialog), "the memory")
        await it.shows("Last summary: Half of it.")
        await it.press(*"Yes. ", "ctrl+g")
        await it.until(lambda: it.session.state.turn.number == 2)
        await it.session.chat.finished()
        asked = model_of(it.session).requests[-1].messages[-1]["content"]
        assert "## AI Memory (Continuation Context)\nYes. Turn: 2\n" in asked
        assert asked.count("Last summary: Half of it.") == 1
        assert asked.endswith("<user_query>\ncontinue\n</user_query>")
        await it.shows("Yes. Turn: 2")
        await it.until(lambda: "is sent, too" not in it.text)


async def test_one_that_is_left_sends_nothing(tmp_path: Path) -> None:
    async with on_screen(tmp_path, [reply()]) as it:
        await it.press("ctrl+o", "C")
        await it.shows("There is nothing to continue yet")
        await it.session.chat.submit("Write the parser")
        await it.session.chat.finished()
        await it.press(*"no", "ctrl+o", "C")
        await it.shows("Request for “continue”")
        await it.press("escape")
        assert it.one(Prompt).value == "no"
        assert it.session.state.turn.number == 1


async def test_the_words_outlive_a_quit_and_no_other_turn(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with open_session(work, [reply()]) as session:
        await session.chat.submit("Write the parser")
        await session.chat.finished()
        session.models.name = ""
        await session.chat.go_on("continue", "My own words.")
        await session.chat.finished()
        assert session.state.input.memory == "My own words."
        name = session.state.session.id
    async with open_session(work, [reply(), reply()], session=name) as session:
        assert await session.chat.memory() == "My own words."
        await session.chat.submit("go on")
        await session.chat.finished()
        assert (
            "(Continuation Context)\nMy own words." in model_of(session).requests[-1].messages[-1]["content"]
        )
        assert session.state.input.memory == ""
        await session.chat.submit("Something else")
        await session.chat.finished()
        assert "Something else" in await session.chat.memory()


async def test_it_is_not_told_while_a_turn_runs(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply()]) as session:
        await session.chat.submit("Write the parser")
        with pytest.raises(SessionError):
            await session.chat.memory()
        await session.chat.finished()
