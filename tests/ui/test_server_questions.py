"""Servers of tools on the screen: their questions as dialogs, and completion of resources, prompts and skills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.screens import on_screen
from support.sessions import calls, open_session
from support.tool_servers import ASKS, BARE, ORDINARY, program

from tui_agent.ui.widgets.prompt import CompletionList, Prompt

ALLOWED = 'permissions.allow=["*__*"]'


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    skill = tmp_path / "person/.agents/skills/release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to release.\n---\nBump it.\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("one = 1\n")
    return tmp_path / "work"


async def listed(workspace: Path, source: str) -> str:
    """The setting of a server whose list an earlier session kept."""
    table = program(workspace.parent / "servers", source)
    set_up = f"mcp.servers={json.dumps({'sums': table})}"
    async with open_session(workspace, protocol="tools", overrides=(set_up,)) as session:
        await session.mcp.ready()
        await session.mcp.tools_of("sums")
    return set_up


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_fields_of_a_question_are_dialogs(workspace: Path, size: tuple[int, int]) -> None:
    set_up = await listed(workspace, BARE % ASKS)
    replies = [calls(("sums__plain", {})), calls(text="Done.")]
    more: dict[str, Any] = {"protocol": "tools", "interactive": True, "overrides": (set_up, ALLOWED)}
    async with on_screen(workspace, replies, size=size, **more) as it:
        await it.press(*"Go", "enter")
        await it.until(lambda: it.session.state.asked is not None, "the question")
        await it.press("enter")
        await it.shows("sums asks: What do you order?")
        assert "The server sums receives the answer." in it.text
        await it.press(*"Tea", "enter")
        await it.until(
            lambda: (asked := it.session.state.asked) and "colour" in asked.preview, "the next field"
        )
        await it.press("enter")
        await it.shows("green")
        await it.press("down", "enter")
        await it.until(
            lambda: (asked := it.session.state.asked) and "sure" in asked.preview, "the last field"
        )
        await it.press("enter")
        await it.shows("Do not answer")
        await it.press("enter")
        await it.until(lambda: not it.session.state.turn.running, "the end of the turn")
        (call,) = [one for message in it.session.state.chat.messages for one in message.calls][:1]
        order = {"colour": "green", "name": "Tea", "sure": True}
        assert json.loads(call.details) == {"action": "accept", "content": order}


async def test_resources_of_a_server_are_completed(workspace: Path) -> None:
    set_up = await listed(workspace, ORDINARY)
    async with on_screen(workspace, protocol="tools", overrides=(set_up,)) as it:
        await it.session.mcp.read()
        await it.press(*"see @sums:to")
        await it.until(lambda: it.one(CompletionList).display, "the list")
        await it.press("tab")
        await it.until(lambda: it.one(Prompt).text == "see @sums:note://today ", "the mention")


async def test_skills_and_prompts_are_in_the_list_and_in_the_palette(workspace: Path) -> None:
    set_up = await listed(workspace, ORDINARY)
    replies = [calls(text="Done.")]
    more: dict[str, Any] = {"protocol": "tools", "overrides": (set_up,), "size": (80, 24)}
    async with on_screen(workspace, replies, **more) as it:
        await it.session.extensions.read()
        await it.press(*"/relea")
        await it.shows("/release  skill, yours")
        await it.press("tab")
        await it.until(lambda: it.one(Prompt).text == "/release ", "the name")
        it.one(Prompt).set_value("")
        await it.press(*"/sums:r")
        await it.shows("prompt of sums")
        await it.press("tab")
        await it.until(lambda: it.one(Prompt).text == "/sums:review ", "the name of the prompt")
        it.one(Prompt).set_value("")
        await it.press("ctrl+p", *"/release")
        await it.shows("skill, yours")
        await it.press("enter")
        await it.until(lambda: it.one(Prompt).text == "/release ", "the name from the palette")
        it.one(Prompt).set_value("")
        await it.press(*"/release")
        await it.shows("/release  skill, yours")
        await it.press("enter")
        await it.until(lambda: it.session.state.turn.request == "/release", "the message")
