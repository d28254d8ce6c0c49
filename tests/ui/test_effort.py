"""Effort on the screen: `/effort` with and without words, ← and → among the models, the status line, thinking."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.provider import Answer, Provider
from support.screens import Driven, on_screen
from support.sessions import model_of, open_session, reply

from tui_agent.model.client import EndChunk, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.discovery import Suggestion
from tui_agent.session.models import make_model
from tui_agent.session.session import Session
from tui_agent.turn.model_choice import in_short, split_effort, with_effort
from tui_agent.ui.dialogs.models import ModelChooser
from tui_agent.ui.slash_commands import text_command
from tui_agent.ui.widgets.messages import Reasoning
from tui_agent.ui.widgets.prompt import Prompt

O3 = ["model=openai/o3"]
SMALL = (80, 24)


def test_an_effort_in_front_of_a_message_is_read_and_written() -> None:
    assert split_effort("/effort high Fix it\nall") == ("high", "Fix it\nall")
    assert split_effort("/effort  HIGH\tFix it") == ("high", "Fix it")
    for text in ("/effort high", "/effort high ", "/effort deep Fix it", " /effort high Fix it", "Fix it"):
        assert split_effort(text) == (None, text)
    assert with_effort("high", "Fix it") == "/effort high Fix it"
    assert with_effort(None, "Fix it") == "Fix it"


def test_only_names_of_the_table_are_commands_with_words() -> None:
    assert text_command("/effort high  ") == ("effort", "high")
    assert text_command("/effort ") == ("effort", "")
    for text in ("/effort", "/tmp/x is broken", "/models some words", "an /effort high"):
        assert text_command(text) == ("", text)


def test_an_effort_in_a_few_letters() -> None:
    assert in_short("high", "high") == "high"
    assert in_short("high", "medium") == "high→medium"
    assert in_short("auto", "medium") == in_short("high", "") == ""


async def said(it: Driven, text: str) -> None:
    await it.press(*text, "enter")


async def turn_ended(it: Driven, number: int) -> None:
    await it.until(
        lambda: it.session.state.turn.number == number and not it.session.state.turn.running, f"turn {number}"
    )


async def test_the_request_carries_the_effort_of_the_session_and_of_one_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def real(session: Session) -> None:
        session.models.model, _ = make_model(session.loaded.settings, None, None, session.journal.store)

    with Provider() as provider:
        for name, value in provider.environment.items():
            monkeypatch.setenv(name, value)
        provider.otherwise = Answer('{"summary": "Done."}')
        async with on_screen(tmp_path, overrides=O3, prepare=real, size=SMALL) as it:
            await said(it, "/effort low")
            await it.until(lambda: it.session.state.model.efforts == {"openai/o3": "low"})
            await said(it, "one")
            await turn_ended(it, 1)
            await said(it, "/effort high two")
            await turn_ended(it, 2)
            await said(it, "three")
            await turn_ended(it, 3)
            assert it.session.state.turn.request == "three"
        asked = [it.body for it in provider.requests if it.path.endswith("/chat/completions")]
        assert [body["reasoning_effort"] for body in asked] == ["low", "high", "low"]
        assert "/effort" not in str(asked)


async def test_a_level_is_chosen_from_those_of_the_model_and_kept(tmp_path: Path) -> None:
    async with on_screen(tmp_path, overrides=["model=openai/gpt-5.4"], size=SMALL) as it:
        await said(it, "/effort")
        await it.shows("max     xhigh at openai/gpt-5.4")
        assert "auto    medium at openai/gpt-5.4      in use" in it.text
        await it.press(*"hi", "enter")
        await it.shows("Effort high is used from now on")
        await it.shows("openai/gpt-5.4 high ")
        await it.press("ctrl+o", "+")
        await it.shows("Effort of openai/gpt-5.4")
        await it.press("down", "enter")  # it begins on the level in use
        await it.shows("openai/gpt-5.4: max")
        await it.shows("openai/gpt-5.4 max→xhigh")
        name = it.session.state.session.id
    async with open_session(tmp_path, overrides=["model=openai/gpt-5.4"], session=name) as session:
        assert session.models.effort() == "max"
        assert session.models.effort("openai/o3") == "auto"


async def test_what_cannot_be_set_is_said_and_comes_back(tmp_path: Path) -> None:
    async with on_screen(tmp_path, overrides=O3, size=SMALL) as it:
        await said(it, "/effort deep")
        await it.shows("There is no effort “deep”: write auto, none, low, medium,")
        assert it.one(Prompt).text == "/effort deep" and it.session.state.turn.number == 0
        it.one(Prompt).set_value("")
        await said(it, "/delegate claude")
        await it.shows("A task is missing")
        assert it.one(Prompt).text == "/delegate claude"
        it.one(Prompt).set_value("")
        await said(it, "/effort none")
        await it.shows("openai/o3 has no")  # the rest is on the next line
        await it.shows("openai/o3 none→low")
    async with on_screen(tmp_path, size=SMALL) as it:
        await said(it, "/effort ")
        await it.shows("scripted has no effort levels")
        await said(it, "/effort high")
        await it.until(lambda: "scripted has no effort levels" in it.session.state.notices.items[-1].text)
        assert "scripted high" not in it.text


async def test_a_level_that_the_model_lacks_is_said_once_in_a_session(tmp_path: Path) -> None:
    overrides = [*O3, "effort=max"]
    async with open_session(tmp_path, [reply(), reply()], overrides=overrides) as session:
        for words in ("one", "two"):
            await session.chat.submit(words)
            await session.chat.finished()
        assert [notice.text for notice in session.state.notices.items] == ["openai/o3: max is high"]
        name = session.state.session.id
    async with open_session(tmp_path, [reply(), reply()], overrides=overrides, session=name) as session:
        await session.chat.submit("three")
        await session.chat.finished()
        await session.chat.submit("four", (), "none")
        await session.chat.finished()
        told = [notice.text for notice in session.state.notices.items]
        assert told == ["openai/o3: max is high", "openai/o3 has no effort none: low is used instead"]


async def test_an_effort_waits_in_the_queue_with_its_message(tmp_path: Path) -> None:
    replies = [reply(), reply(), reply()]
    async with open_session(tmp_path, replies, overrides=O3) as session:
        await session.chat.submit("one")
        await session.chat.submit("two")
        await session.chat.submit("three", (), "high")
        assert session.state.input.queue == ("two", "/effort high three")
        await session.chat.finished()
        assert [request.effort for request in model_of(session).requests] == ["auto", "auto", "high"]
        assert session.state.turn.request == "three" and session.models.effort() == "auto"


async def test_a_message_that_failed_comes_back_with_its_effort(tmp_path: Path) -> None:
    async with on_screen(tmp_path, [RuntimeError("no"), reply()], overrides=O3) as it:
        await said(it, "/effort high fix it")
        await it.until(lambda: it.one(Prompt).text == "/effort high fix it")
        await it.press("ctrl+o", ",")
        await turn_ended(it, 1)
        await it.shows("Done.")
        assert [request.effort for request in model_of(it.session).requests] == ["high", "high"]
        assert it.one(Prompt).text == ""


async def test_arrows_change_the_effort_of_a_model_before_it_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(memory: object) -> tuple[Suggestion, ...]:
        return Suggestion("openai/gpt-5.4", "OPENAI_API_KEY is set"), Suggestion("ollama_chat/a", "runs here")

    monkeypatch.setattr("tui_agent.model.discovery.discover", found)
    async with on_screen(tmp_path, overrides=O3, size=SMALL) as it:
        await it.press("ctrl+o", "M")
        await it.shows("openai/o3   in use")
        await it.shows("effort ‹ auto ›   ← → change it")
        await it.press("left", "right")
        await it.shows("effort ‹ none→low ›")
        await it.press("down")
        await it.shows("effort ‹ auto ›")
        await it.press(*["right"] * 7)
        await it.shows("effort ‹ max→xhigh ›")
        await it.press("down")
        await it.until(lambda: "effort ‹" not in it.text, "no effort of a model without levels")
        await it.press("right", "up")
        await it.shows("effort ‹ max→xhigh ›")
        await it.press("enter")
        await it.until(lambda: it.session.state.model.efforts == {"openai/gpt-5.4": "max"})
        await it.shows("openai/gpt-5.4 max→xhigh")
        await it.press("escape", "ctrl+o", "M")
        await it.until(lambda: isinstance(it.app.screen, ModelChooser), "the models again")
        await it.shows("effort ‹ max→xhigh ›")


async def test_thinking_is_folded_with_its_tokens(tmp_path: Path) -> None:
    def answer(
        *chunks: ReasoningChunk, counted: int
    ) -> list[ReasoningChunk | TextChunk | UsageChunk | EndChunk]:
        said = TextChunk('{"summary": "So."}')
        return [*chunks, said, UsageChunk(10, 1300, thinking=counted), EndChunk("stop")]

    deep = ReasoningChunk("deep thoughts about it")
    answers = [answer(deep, counted=1234), answer(deep, counted=0), answer(counted=77), answer(counted=0)]
    async with on_screen(tmp_path, answers, size=(100, 40)) as it:
        for words in ("one", "two", "three", "four"):
            await said(it, words)
            await it.session.chat.finished()
        shown = ("▸ thinking 1,234 tokens", "▸ thinking ~6 tokens", "  thinking 77 tokens")
        for words in shown:
            await it.shows(words)
        assert "deep thoughts" not in it.text
        await it.press("ctrl+o", "6")
        await it.shows("▾ thinking 1,234 tokens")
        assert it.text.count("deep thoughts about it") == 2
        counted = [message.thinking for message in it.session.state.chat.messages if message.kind == "agent"]
        assert counted == [1234, 0, 77, 0]
        name = it.session.state.session.id
    async with on_screen(tmp_path, session=name) as it:
        for words in shown:
            await it.shows(words)
        assert len(it.screen.query(Reasoning)) == 3
