"""The model is chosen on the screen: from what was found, by any name, or with a key that is put in."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from support.panes import NotedSession
from support.screens import Driven, on_screen
from support.sessions import model_of, open_session, reply

from tui_agent.errors import TimedOut
from tui_agent.model.discovery import Suggestion
from tui_agent.model.login import store
from tui_agent.model.model_table import suggestion, today
from tui_agent.session.session import Session
from tui_agent.settings.files import save
from tui_agent.store.state import State
from tui_agent.ui.dialogs.models import _keep_key, provider_rows
from tui_agent.ui.panes.status import facts_line
from tui_agent.ui.widgets.prompt import Prompt


def test_each_provider_says_what_it_needs_unless_its_key_is_there() -> None:
    rows = provider_rows("", {"OPENAI_API_KEY": "k"})
    assert "needs ANTHROPIC_API_KEY" in str(rows[0].words)
    assert "provider:openai" not in [row.value for row in rows]


def test_a_setting_is_saved_and_every_other_line_stays(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    save(tmp_path, "model", "a/b")
    assert file.read_text() == 'model = "a/b"\n'
    file.write_text('theme = "light"\n# mine\nmodel = "old"\n\n[checks]\nmodel = "no"\n')
    save(tmp_path, "model", "a/b")
    assert file.read_text() == 'theme = "light"\n# mine\nmodel = "a/b"\n\n[checks]\nmodel = "no"\n'


def test_a_model_that_is_set_is_named_before_it_is_ready() -> None:
    assert "no model" in str(facts_line(State(), 80))
    assert str(facts_line(State(), 80, "openai/gpt-5")).startswith("openai/gpt-5")


async def nothing_found(memory: object) -> tuple[Suggestion, ...]:
    return ()


async def test_a_typed_name_answers_from_the_next_request_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.model.discovery.discover", nothing_found)
    async with on_screen(tmp_path, [reply("Done.")]) as it:
        await it.press("ctrl+o", "M")
        await it.shows("or type provider/model")
        await it.press(*"some/model", "enter")
        await it.until(lambda: it.session.state.model.name == "some/model")
        await it.session.chat.submit("Hello")
        await it.session.chat.finished()
        assert it.session.state.conversation.model == "some/model"


def a_keyring(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """The package `keyring`, as far as it is used, over a table."""
    kept: dict[tuple[str, str], str] = {}
    package = ModuleType("keyring")
    package.set_password = lambda service, name, key: kept.__setitem__((service, name), key)  # ty: ignore
    package.get_password = lambda service, name: kept.get((service, name))  # ty: ignore
    package.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "keyring", package)
    return kept


def files_with(folder: Path, words: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


async def without_a_model(it: Driven, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the model is reached by, as it is told."""
    reached: dict[str, str] = {}

    async def reach(environment: dict[str, str]) -> None:
        reached.update(environment)

    monkeypatch.setattr(model_of(it.session), "reach", reach, raising=False)
    return reached


async def test_a_first_message_leads_to_a_key_a_test_and_a_default(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.model.discovery.discover", nothing_found)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    kept = a_keyring(monkeypatch)
    async with on_screen(tmp_path, [reply("OK"), reply("Hello.")], overrides=["model="], size=(80, 24)) as it:
        reached = await without_a_model(it, monkeypatch)
        await it.press(*"hello", "enter")
        await it.shows("needs OPENAI_API_KEY")
        assert it.one(Prompt).text == "hello" and it.session.state.turn.number == 0
        await it.press(*"openai", "up", "enter")
        await it.shows("Key for openai")
        await it.press(*"sk-9f8e7d6c", "enter")
        await it.shows("Test it with one tiny request")
        assert "sk-9f8e7d6c" not in it.text and reached == {"OPENAI_API_KEY": "sk-9f8e7d6c"}
        await it.press("enter")
        await it.shows("works: answered in")
        assert "120 tokens, $0.001000" in it.text
        await it.press("enter")
        await it.shows("is now the default")
        assert (
            f'model = "{suggestion("openai", today())}"'
            in (it.session.folders.config / "settings.toml").read_text()
        )
        await it.press("enter")
        await it.until(lambda: it.session.state.turn.number == 1 and not it.session.state.turn.running)
        assert it.session.state.turn.request == "hello"
    assert kept == {("tui-agent", "OPENAI_API_KEY"): "sk-9f8e7d6c"}
    assert store.stored_keys("openai/gpt-5", {}) == {"OPENAI_API_KEY": "sk-9f8e7d6c"}
    assert store.stored_keys("openai/gpt-5", {"OPENAI_API_KEY": "other"}) == {}
    assert files_with(home, "sk-9f8e7d6c") == []


async def test_a_key_that_no_keyring_takes_is_kept_for_this_run_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = NotedSession()
    monkeypatch.setattr(store, "keyring_available", lambda: False)
    await _keep_key(cast(Session, session), "OPENAI_API_KEY", "sk-9f8e7d6c")
    monkeypatch.setattr(store, "keyring_available", lambda: True)
    monkeypatch.setattr(store, "store_key", lambda name, key: False)
    await _keep_key(cast(Session, session), "OPENAI_API_KEY", "sk-9f8e7d6c")
    said = [words[0] for words in session.named("notice")]
    assert "this run only; `pip install keyring`" in said[0] and "rejected OPENAI_API_KEY" in said[1]
    assert "sk-9f8e7d6c" not in str(said)


async def test_a_message_that_was_not_answered_comes_back(tmp_path: Path) -> None:
    async with on_screen(
        tmp_path, [TimedOut("The model was silent for 120 s", "try again"), reply("Hi."), reply("Ho.")]
    ) as it:
        await it.press(*"hello", "enter")
        await it.until(lambda: not it.session.state.turn.ok)
        await it.until(lambda: it.one(Prompt).text == "hello")
        await it.press("enter")
        await it.shows("Hi.")
        assert it.one(Prompt).text == "" and it.session.state.turn.number == 1
        await it.session.chat.finished()  # otherwise the next message is queued
        await it.session.chat.submit("and")
        assert it.session.state.turn.number == 2
        await it.session.chat.finished()


async def test_a_key_that_is_missing_is_said_before_a_turn_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    async with open_session(
        tmp_path, overrides=["model=mistral/mistral-large-latest"], services=False
    ) as session:
        session.models.check()  # a recording needs no key
        monkeypatch.setattr(model_of(session), "reach", lambda environment: None, raising=False)
        with pytest.raises(Exception, match="needs MISTRAL_API_KEY"):
            session.models.check()
        monkeypatch.setenv("MISTRAL_API_KEY", "k")
        session.models.check()
