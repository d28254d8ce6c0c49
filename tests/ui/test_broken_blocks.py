"""A fault while a block of the chat is drawn: the block says so, and the program goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import reply

from tui_agent.ui.markdown import message_text
from tui_agent.ui.markdown import text_lines as markdown_lines
from tui_agent.ui.safe_text import coloured
from tui_agent.ui.widgets import command_output, error_guard
from tui_agent.ui.widgets.command_output import CommandOutput


def fails(*_: object, **__: object) -> None:
    raise ZeroDivisionError


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.mark.parametrize("code", ["9" * 5000, "1;" * 5000, "38;5;" + "9" * 5000, "38;2;" + "9;" * 5000])
def test_a_code_of_5000_digits_is_no_colour(code: str) -> None:
    assert coloured(f"\x1b[{code}mtext").plain == "text"


async def test_a_command_with_such_a_code_unfolds(work: Path) -> None:
    (work / "a.txt").write_text(f"\x1b[{'9' * 5000}mred\x1b[0m\n")
    async with on_screen(work) as it:
        await it.press(*"!cat a.txt", "enter")
        await it.shows("✓ cat a.txt")
        it.app.screen.query_one(CommandOutput).focus()
        await it.press("enter")
        await it.until(lambda: "red" in it.text.partition("▾")[2], "the output")


async def test_a_command_that_cannot_be_drawn_says_so(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_screen(work) as it:
        await it.press(*"!echo one", "enter")
        await it.shows("✓ echo one")
        monkeypatch.setattr(command_output, "coloured", fails)
        it.app.screen.query_one(CommandOutput).focus()
        await it.press("enter")
        await it.shows("This block cannot be shown")
        monkeypatch.undo()
        await it.press("enter")
        await it.shows("✓ echo one")


@pytest.mark.parametrize("where", ["read", "height", "rows"])
async def test_a_message_that_cannot_be_drawn_says_so(
    work: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "read":
        monkeypatch.setattr(message_text.Reading, "read", fails)
    else:
        monkeypatch.setattr(markdown_lines.TextLine, where, fails)
    logged: list[object] = []
    monkeypatch.setattr(error_guard.debug_log, "fault", lambda _, error: logged.append(error))
    async with on_screen(work, [reply("Done.", message="some *words* here")]) as it:
        await it.press(*"hello", "enter")
        await it.until(lambda: bool(logged) and not it.session.state.turn.running, "the fault")
        await it.press(*"still")
        await it.shows("still")
