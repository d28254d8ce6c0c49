"""The person's own prompts and schemas are what the model is sent; a trusted workspace adds sections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.sessions import model_of, open_session, reply
from support.subtasks import GoalModel, working

from tui_agent.model.parts import text_of
from tui_agent.settings.folders import user_folders
from tui_agent.store.graph import SubTask


@pytest.mark.parametrize("trust", [False, True])
async def test_own_words_are_sent_and_those_of_a_trusted_workspace_are_added(
    tmp_path: Path, trust: bool
) -> None:
    config, brought = user_folders().config, tmp_path / ".tui-agent"
    for folder, sections in (
        (config, [{"id": "role", "text": "You are MINE."}, {"id": "more", "text": "MORE of it."}]),
        (brought, [{"id": "role", "text": "You are THEIRS."}, {"id": "theirs", "text": "ADDED here."}]),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "system-prompt.json").write_text(json.dumps({"sections": sections}))
    shape = {"properties": {"mood": {"type": "string", "description": "how it GOES"}}}
    (config / "response-schema.json").write_text(json.dumps(shape))
    (config / "planning-prompt.json").write_text("broken")
    async with open_session(tmp_path, [reply()], trust=trust, services=False) as session:
        session.workspace._indexed.set()
        await session.chat.submit("Hello")
        await session.chat.finished()
        sent = text_of(model_of(session).requests[-1].messages[0])
        assert "You are MINE." in sent and "MORE of it." in sent and "how it GOES" in sent
        assert "THEIRS" not in sent and ("ADDED here." in sent) is trust
        assert any("planning-prompt.json: it is not valid JSON" in str(it) for it in session.prompts.faults)


async def test_a_sub_task_is_told_what_its_session_is(tmp_path: Path) -> None:
    brought = tmp_path / "work" / ".tui-agent"
    brought.mkdir(parents=True)
    words = {"sections": [{"id": "theirs", "text": "ADDED here."}]}
    (brought / "system-prompt.json").write_text(json.dumps(words))
    (brought.parent / ".gitignore").write_text(".tui-agent/\n")
    model = GoalModel({"Say hello": [reply()]})
    async with working(brought.parent, model, [SubTask("hello", "Say hello")], trust=True) as session:
        await session.subtasks.run("hello")
        await session.subtasks.settled()
    (asked,) = [request for request in model.requests if request.purpose == "subtask"]
    assert "ADDED here." in text_of(asked.messages[0])
