"""The model is chosen on the screen: from what was found, or by any name that is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import reply

from tui_agent.model.discovery import Suggestion
from tui_agent.ui.dialogs.questions import model_rows

FOUND = (
    Suggestion("openai/gpt-5", "OPENAI_API_KEY is set"),
    Suggestion("ollama_chat/qwen3", "Ollama runs here"),
)


def test_rows_are_what_was_found_and_what_is_typed() -> None:
    assert [row.value for row in model_rows("", FOUND)] == ["openai/gpt-5", "ollama_chat/qwen3"]
    assert [row.value for row in model_rows("qwen", FOUND)] == ["ollama_chat/qwen3", "qwen"]
    assert [row.value for row in model_rows("openai/gpt-5", FOUND)] == ["openai/gpt-5"]


async def test_a_typed_name_answers_from_the_next_request_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing_found(memory: object) -> tuple[Suggestion, ...]:
        return ()

    monkeypatch.setattr("tui_agent.model.discovery.discover", nothing_found)
    async with on_screen(tmp_path, [reply("Done.")]) as it:
        await it.press("ctrl+o", "M")
        await it.shows("type a litellm name")
        await it.press(*"some/model", "enter")
        await it.until(lambda: it.session.state.model.name == "some/model")
        await it.session.chat.submit("Hello")
        await it.session.chat.finished()
        assert it.session.state.conversation.model == "some/model"
