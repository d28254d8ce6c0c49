"""The person's own prompts and schemas are what the model is sent; a trusted workspace adds sections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.sessions import model_of, open_session, reply

from tui_agent.model.parts import text_of
from tui_agent.settings.folders import user_folders


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
        assert any("planning-prompt.json: it is not valid JSON" in it for it in session.prompt_faults)
