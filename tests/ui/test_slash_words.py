"""Words of other agents in the prompt: lists about the session, instructions that are proposed, Vim keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import model_of, reply

from tui_agent.model.parts import text_of
from tui_agent.session.session import INIT, Session
from tui_agent.settings.folders import user_folders
from tui_agent.ui.actions import SLASH
from tui_agent.ui.host import Choice
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.widgets.prompt import Prompt, command_rows


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"one": {"command": "one"}}}')
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}')
    return tmp_path


@pytest.mark.parametrize(
    ("word", "title", "typed", "row"),
    [
        ("config", "Settings", "subtasks.b", '"ticked"'),
        ("status", "Status", "session", "0 tokens in"),
        ("mcp", "MCP servers", "trusted", "defines untrusted MCP servers in .mcp.json"),
        ("agents", "Agents: prompts", "codex", "api.openai.com"),
        ("hooks", "Hooks", "trusted", "defines untrusted hooks"),
        ("skills", "Skills", "write", "write .agents/skills/NAME/SKILL.md"),
        ("stats", "Statistics of this folder's sessions", "questions", "questions about files"),
        ("doctor", "Installation", "packages python", "Python 3"),
    ],
)
async def test_a_word_shows_a_list_that_narrows(
    workspace: Path, word: str, title: str, typed: str, row: str
) -> None:
    size = (80, 24) if len(word) % 2 else (160, 48)
    async with on_screen(workspace, size=size) as it:
        await it.press(*f"/{word}", "enter")
        await it.shows(title)
        await it.press(*typed.split()[-1])
        await it.shows(row)
        await it.press(*"qqqq")
        await it.until(lambda: row not in it.text, "nothing that matches")
        await it.press("escape")
        await it.until(lambda: title not in it.text, "the dialog closed")


async def test_memory_opens_an_instruction_file(workspace: Path) -> None:
    async with on_screen(workspace, [reply("Hello.")]) as it:
        await it.press(*"Hello", "enter")
        await it.until(lambda: it.session.state.instructions and not it.session.state.turn.running, "a turn")
        await it.press(*"/memory", "enter")
        await it.shows("Instructions of the model")
        await it.press("enter")
        await it.until(lambda: it.session.state.buffers.active == "AGENTS.md", "the file")


async def test_a_chosen_skill_is_put_into_the_prompt(workspace: Path) -> None:
    folder = user_folders().config / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n")
    async with on_screen(workspace) as it:
        await it.press(*"/skills", "enter")
        await it.shows("Greets people.")
        await it.press("enter")
        await it.until(lambda: it.session.state.input.draft == "/greet ", "the skill in the prompt")
        await it.shows("/greet")


@pytest.mark.parametrize("word", ["clear", "compact", "diff", "rewind"])
async def test_a_word_with_arguments_that_it_has_not_is_not_sent(workspace: Path, word: str) -> None:
    async with on_screen(workspace, [reply("Hello.")]) as it:
        await it.press(*f"/{word} a b", "escape", "enter")
        await it.shows(f"/{word} has no arguments")
        assert not model_of(it.session).requests and it.session.state.input.draft in ("", f"/{word} a b")


async def test_model_with_a_name_chooses_it(workspace: Path) -> None:
    async with on_screen(workspace, [reply("Hello.")]) as it:
        await it.press(*"/model openai/gpt-4o-mini", "enter")
        await it.until(lambda: it.session.state.model.name == "openai/gpt-4o-mini", "the model")
        await it.shows("The model is openai/gpt-4o-mini")
        assert not model_of(it.session).requests


async def test_init_is_an_ordinary_turn(workspace: Path) -> None:
    change = {"path": "AGENTS.md", "content": "Run make test.\n"}
    (workspace / "AGENTS.md").unlink()  # no question about it is asked
    async with on_screen(workspace, [reply("Proposed.", fileChanges=[change])]) as it:
        await it.press(*"/init", "enter")
        await it.until(lambda: it.session.state.review.open, "the proposal")
        assert INIT in text_of(model_of(it.session).requests[0].messages[-1])
        assert not (workspace / "AGENTS.md").exists()


async def test_vim_switches_the_keys_and_back_and_keeps_the_text(workspace: Path) -> None:
    async with on_screen(workspace) as it:
        it.screen.ready = False  # as after the first frame: the word waits, and is not lost
        await it.press(*"/vim", "enter")
        assert not it.app.keys.modal
        it.screen.ready = True
        await it.until(lambda: it.app.keys.modal and it.screen.ready, "the keys")
        for modal in (False, True, False):
            await it.press(*"/vim", "enter")
            await it.until(lambda modal=modal: it.app.keys.modal == modal and it.screen.ready, "the keys")
            await it.pilot.pause()
        await it.press(*"/vim", "enter")
        await it.until(lambda: it.app.keys.modal and it.screen.ready, "the keys")
        await it.press(*"ends", "escape")
        await it.shows("NORMAL")
        await it.press("x")
        await it.shows("end")


async def test_rewind_goes_on_in_a_copy_with_the_message_in_the_prompt(workspace: Path) -> None:
    replies = [reply("Hello."), reply("Changed.", fileChanges=[{"path": "b.txt", "content": "b\n"}])]
    async with on_screen(workspace, replies) as it:
        for turn, words in enumerate(("Say hello", "Write b"), 1):
            await it.press(*words, "enter")
            await it.until(lambda turn=turn: _ended(it.session, turn), "the turn")
        await it.session.review.apply()
        it.app.reopen = _unused
        await it.press(*"/rewind", "enter")
        await it.shows("turn 2")
        await it.press("enter")
        await it.until(lambda: it.app.next is not None, "the copy")
        assert it.app.next is not None and it.app.next.draft == "Write b" and it.app.next.session
        assert not (workspace / "b.txt").exists()


def _ended(session: Session, turn: int) -> bool:
    return session.state.turn.number == turn and not session.state.turn.running


async def _unused(choice: Choice) -> Session:
    raise AssertionError("the program opens it")


async def test_a_side_question_is_shown_with_its_answer(workspace: Path) -> None:
    async with on_screen(workspace, ["The answer is **7**."]) as it:
        await it.press(*"/btw", "enter")
        await it.until(lambda: it.one(Prompt).text == "/btw ", "the word in the prompt")
        await it.press(*"how many?", "enter")
        await it.shows("Side question: how many?")
        await it.shows("The answer is 7.")
        assert not it.session.state.turn.number and it.one(Prompt).text == ""


def test_the_words_of_other_agents_are_there() -> None:
    first = "clear init cost diff config status memory agents hooks mcp skills"
    words = f"{first} vim btw goal login stats rewind exit doctor".split()
    assert [word for word in words if word not in SLASH] == []


def test_the_key_of_the_mode_is_beside_its_command() -> None:
    rows = dict(command_rows("mode", load_keys()))
    assert "Shift+Tab" in rows["mode"].plain
