"""Commands in the prompt: `!` runs in a trial view, `!!` in the real folder after a question."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support.screens import PATIENCE, on_screen
from textual.content import Content

from tui_agent.sandbox.isolation import WITHOUT
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.widgets.command_output import CommandOutput
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
        await it.shows("1 file changed, discarded")
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
        await it.press("y")
        await it.until(lambda: it.session.state.commands.results, "the end of the first run")
        assert (work / "b.txt").read_text() == "x\n"
        await it.press(*"!!echo z > b.txt", "enter")
        await it.shows("Run in the real folder")  # yes was for one run
        await it.press("down", "down", "enter")
        await it.shows("✓ echo z > b.txt")
        await it.press(*"!!echo y > b.txt", "enter")
        await it.shows("✓ echo y > b.txt")
        assert (work / "b.txt").read_text() == "y\n"


async def test_output_keeps_its_colours_and_leads_to_the_files(work: Path) -> None:
    (work / "b.py").write_text("\n" * 40 + "here = 1\n" + "\n" * 40)
    async with on_screen(work) as it:
        words = r"printf '\033[31mred\033[0m \033]0;title\007\033[2Jb.py:41: wrong\n10%%\r100%%\n'; exit 1"
        await it.press(*f"!{words}", "enter")
        await it.shows("✗ printf")
        (block,) = it.app.screen.query("CommandOutput")
        assert isinstance(block, CommandOutput)
        block.focus()
        await it.press("enter")
        await it.shows("red b.py:41: wrong")
        assert "\n100%" in (result := it.session.state.commands.results[-1]).output
        assert result.coloured.startswith("\x1b[31mred\x1b[0m b.py")
        content = block.visual
        assert isinstance(content, Content)
        at = content.plain.index("red b.py")
        assert any(span.start == at and "$error" in str(span.style) for span in content.spans), content.spans
        await it.press("o")
        await it.until(lambda: it.session.state.buffers.active == "b.py", "the file")
        await it.until(lambda: "here = 1" in it.text, "the line")
        buffer = it.session.state.buffers.get("b.py")
        assert buffer is not None
        assert buffer.cursor[0] == 40


async def test_the_commands_that_ran_are_listed_and_opened(work: Path) -> None:
    async with on_screen(work) as it:
        await it.press(*"!echo first; exit 4", "enter")
        await it.shows("✗ echo first")
        await it.press(*"!sleep 600", "enter")
        await it.until(lambda: "● sleep 600 " in it.text.splitlines()[-1], "the status line")
        await it.press("ctrl+o", "H")
        await it.shows("Commands: Enter shows the output")
        await it.until(lambda: "exit 4" in it.text and "● sleep 600" in it.text, "the list")
        read, commands = threading.Event(), it.session.commands
        whole = commands.whole_output
        commands.whole_output = lambda number: whole(number) if read.wait(2 * PATIENCE) else ""
        await it.press(*"first", "enter")
        await it.until(lambda: isinstance(it.app.screen, TextDialog), "its window, for the next keys")
        read.set()
        await it.shows("Output")
        await it.shows("first")
        await it.press("x")
        assert "Esc back" in it.text and "Ctrl+G" not in it.text
        await it.press("escape", "escape", "f10")
        await it.shows("stopped")


async def test_a_weaker_view_is_asked_about(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITHOUT, "overlay,bubblewrap")
    async with on_screen(work) as it:
        await it.press(*"!cat a.txt", "enter")
        await it.shows("Run cat a.txt")
        await it.shows("which is weaker")
        await it.press("enter")
        await it.until(lambda: it.one(Prompt).text == "!cat a.txt", "the text again")
        assert not it.session.state.commands.results
        await it.press("enter")
        await it.shows("Run cat a.txt")
        await it.press("down", "enter")
        await it.shows("✓ cat a.txt")
        await it.until(lambda: "(Landlock)" in it.text, "what it ran in")
        await it.press("ctrl+o", "I")
        await it.shows("with the network of this machine")


async def test_a_running_command_is_told_and_stopped_by_key(work: Path) -> None:
    async with on_screen(work) as it:
        await it.press(*"!echo begun; sleep 600", "enter")
        await it.until(lambda: "s · Esc stops  begun" in it.text, "the last line")
        await it.press("f10")
        await it.shows("stopped")
        assert not it.session.state.commands.running


async def test_the_first_lines_of_an_output_are_seen_or_the_last_if_it_failed(work: Path) -> None:
    async with on_screen(work, size=(80, 24)) as it:
        await it.press(*"!seq 10000", "enter")
        await it.shows("… 9,992 more · Ctrl+O y walks to them")
        rows = [row.strip(" ▎") for row in it.text.splitlines()]
        at = rows.index("1")
        assert rows[at : at + 8] == [str(number) for number in range(1, 9)]
        assert "exit 0" in rows[at - 1] and "10000 lines" in rows[at - 1]
        await it.press(*"!seq 12; false", "enter")
        await it.shows("… 4 more above")
        rows = [row.strip(" ▎") for row in it.text.splitlines()]
        at = rows.index("12")
        assert rows[at - 7 : at + 1] == [str(number) for number in range(5, 13)]
        assert "exit 1" in rows[at - 8]


async def test_a_long_line_is_seen_with_its_end(work: Path) -> None:
    async with on_screen(work, size=(80, 24)) as it:
        await it.press(*"!printf begins%9000dends 7", "enter")
        await it.shows("characters left out]")
        shown = "".join(row.strip(" ▎") for row in it.text.splitlines())
        assert "7ends" in shown


async def test_a_question_about_a_weaker_view_is_said_once_and_y_answers_it(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WITHOUT, "overlay,bubblewrap")
    async with on_screen(work) as it:
        await it.press(*"!cat a.txt", "enter")
        await it.shows("y runs it, Enter selects")
        assert "there is no full trial view here" in " ".join(it.text.split())
        assert not it.app._notifications, "a toast would say the same"
        await it.press("y")
        await it.until(lambda: it.session.state.commands.results, "the end of the run")
        assert it.session.state.commands.results[-1].isolated == "landlock"
        assert not [one for one in it.app._notifications if "full trial view" in one.message]
