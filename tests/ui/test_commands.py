"""Commands in the prompt: `!` runs in a trial view, `!!` in the real folder after a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen

from tui_agent.ui.widgets.prompt import Prompt


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    return work


async def test_a_command_is_one_line_in_the_chat_and_unfolds(work: Path) -> None:
    async with on_screen(work) as it:
        await it.press(*"!cat a.txt; echo x > b.txt; exit 3", "enter")
        await it.shows("✗ cat a.txt")
        await it.shows("exit 3")
        await it.shows("1 file changed, thrown away")
        assert "▾" not in it.text
        block = it.app.screen.query_one("CommandOutput")
        await it.pilot.click(block)
        await it.until(
            lambda: "\n" in it.text and "▾" in it.text and "one" in it.text.split("▾")[1], "the output"
        )
        await it.press("ctrl+o", "D")
        await it.until(
            lambda: "ended with 3" in it.app.screen.query_one("#prompt", Prompt).text, "the output"
        )
        await it.press("ctrl+o", "W")
        await it.shows("1 file from `cat a.txt")
        assert [change.path for change in it.session.state.review.open] == ["b.txt"]
        await it.press("ctrl+o", ".")
        await it.until(lambda: len(it.session.state.commands.results) == 2, "the second run")
    assert not (work / "b.txt").exists()


async def test_a_command_in_the_real_folder_is_asked_about_and_then_writes(work: Path) -> None:
    async with on_screen(work) as it:
        await it.press(*"!!echo x > b.txt", "enter")
        await it.shows("Run in the real folder")
        await it.press("enter")
        await it.until(
            lambda: it.app.screen.query_one("#prompt", Prompt).text == "!!echo x > b.txt", "the text again"
        )
        assert not (work / "b.txt").exists()
        await it.press("enter")
        await it.shows("Run in the real folder")
        await it.press("down", "down", "enter")
        await it.shows("✓ echo x > b.txt")
        assert (work / "b.txt").read_text() == "x\n"
        await it.press(*"!!echo y > b.txt", "enter")
        await it.shows("✓ echo y > b.txt")
        assert (work / "b.txt").read_text() == "y\n"


async def test_a_running_command_is_told_and_stopped_by_key(work: Path) -> None:
    async with on_screen(work) as it:
        await it.press(*"!echo begun; sleep 600", "enter")
        await it.until(lambda: "0 s  begun" in it.text or "1 s  begun" in it.text, "the last line")
        await it.press("f10")
        await it.shows("stopped")
        assert not it.session.state.commands.running
