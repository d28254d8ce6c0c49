"""The first run, with no model configured: the screen says what it found and which key chooses, and asks no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.local_servers import WireModel, local_server
from support.screens import on_screen
from support.sessions import model_of, open_session, reply

from tui_agent.model.discovery import Suggestion
from tui_agent.model.local import LocalModels
from tui_agent.model.servers import ServerMemory
from tui_agent.ui.widgets.prompt_lines import no_model_words

FOUND = (
    Suggestion("openai/gpt-5", "OPENAI_API_KEY is set"),
    Suggestion("lm_studio/a", "LM Studio answers on port 1234", {"LM_STUDIO_API_BASE": "http://here"}),
    Suggestion("lm_studio/b", "LM Studio answers on port 1234", {"LM_STUDIO_API_BASE": "http://here"}),
)


def test_each_place_is_named_once() -> None:
    said = no_model_words(FOUND, "F12")
    assert "OPENAI_API_KEY is set · LM Studio answers on port 1234: F12 chooses a model\n" in said
    server = Suggestion("lm_studio/a", "a server answers on port 1234")
    assert no_model_words([server], "F12").startswith("A server answers on port 1234: F12 uses it\n")
    assert "No API key or local server was found." in no_model_words((), "Ctrl+O M")


async def test_the_choice_is_offered_and_made_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(memory: object) -> tuple[Suggestion, ...]:
        return FOUND

    monkeypatch.setattr("tui_agent.model.discovery.discover", found)
    async with on_screen(tmp_path, [reply()], overrides=["model="]) as it:
        reached: dict[str, str] = {}

        async def reach(environment: dict[str, str]) -> None:
            reached.update(environment)

        monkeypatch.setattr(it.session.models.model, "reach", reach, raising=False)
        await it.shows("1  use openai/gpt-5      OPENAI_API_KEY is set")
        assert "3  use lm_studio/b" in it.text and "4  log in to an account" in it.text
        await it.press("down")  # to all others
        await it.shows("or type provider/model")
        await it.press("escape")
        await it.until(lambda: "or type provider/model" not in it.text)
        await it.shows("Choose a model by its digit")
        await it.press(*"Hi")  # behind which a digit is a letter
        await it.shows("Who answers? Enter asks you, then sends the message")
        await it.press("down")
        await it.shows("or type provider/model")
        await it.press("escape", "enter")  # which opens the list and says no more
        await it.shows("or type provider/model")
        assert not it.session.state.notices.items
        await it.press(*"o/b", "enter")
        await it.until(lambda: it.session.state.model.name == "lm_studio/b")
        await it.until(lambda: "No model is chosen yet" not in it.text)
        assert reached == {"LM_STUDIO_API_BASE": "http://here"}
        await it.until(lambda: model_of(it.session).requests, "the message sent")
        assert ["Hi" in str(request.messages) for request in model_of(it.session).requests] == [True]


async def test_a_model_that_is_set_is_named_before_it_is_asked(tmp_path: Path) -> None:
    async with on_screen(tmp_path, [reply()], overrides=["model=some/model"]) as it:
        assert not it.session.state.model.name
        await it.shows("Model  some/model")
        assert "none yet" not in it.text and "no model" not in it.text


async def test_a_model_that_was_chosen_is_there_after_a_quit(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with open_session(work, overrides=["model="], services=False) as session:
        await session.models.choose("some/model")
        name = session.state.session.id
    async with open_session(work, overrides=["model="], session=name, services=False) as session:
        assert session.models.name == "some/model"


async def test_a_digit_and_enter_lead_from_an_empty_home_to_the_first_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(messages: list[dict[str, Any]]) -> str:
        return json.dumps({"summary": "It fetches pages."})

    async with local_server("llama.cpp", window=32_768, answer=answer) as server:
        monkeypatch.setattr("tui_agent.model.discovery.discover.__defaults__", (None, (server.port,), None))
        async with on_screen(tmp_path, [reply()], overrides=["model=", "protocol=auto"]) as it:
            it.session.models.model = LocalModels(WireModel(), ServerMemory(tmp_path / "state"), 32_768)
            await it.shows(f"1  use llamafile/tiny    llama.cpp answers on port {server.port}")
            await it.press("1")
            await it.until(lambda: it.session.state.model.name == "llamafile/tiny")
            await it.press(*"What is this")
            await it.press("enter")
            await it.until(lambda: "It fetches pages." in it.text)
            assert it.session.state.turn.request == "What is this"


async def test_setup_shows_the_model_in_use_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(memory: object) -> tuple[Suggestion, ...]:
        return FOUND

    monkeypatch.setattr("tui_agent.model.discovery.discover", found)
    async with on_screen(tmp_path, [reply()], overrides=["model=some/model"]) as it:
        await it.press(*"/setup", "enter")
        await it.shows("Model   use some/model  in use")
        await it.shows("        use openai/gpt-5  OPENAI_API_KEY is set")
