"""A login on the screen: its row in the list of models, the page and the code, and the model that goes on."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from support.login_servers import CODE, GITHUB_TOKEN, ROUTER_KEY, LoginServer
from support.privileges import unprivileged
from support.screens import Driven, on_screen
from support.sessions import reply
from textual import events

from tui_agent.model.discovery import Suggestion
from tui_agent.model.login.services import CHATGPT, COPILOT, OPENROUTER
from tui_agent.model.login.store import Login, LoginStore
from tui_agent.ui.dialogs.chooser import Chooser
from tui_agent.ui.dialogs.models import LOGIN, LoginDialog


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginServer]:
    async def nothing_found(memory: object) -> tuple[Suggestion, ...]:
        return ()

    monkeypatch.setattr("tui_agent.model.discovery.discover", nothing_found)
    with LoginServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("GITHUB_COPILOT_TOKEN", "CHATGPT_ACCESS_TOKEN", "OPENROUTER_API_KEY", "OR_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        yield server
        assert not server.violations


async def opened(it: Driven, monkeypatch: pytest.MonkeyPatch, title: str) -> list[str]:
    """Open the dialog from the list of models; the texts that are copied from now on."""
    copied: list[str] = []
    monkeypatch.setattr(it.app, "copy_to_clipboard", copied.append)
    await it.press("ctrl+o", "M")
    await it.shows("log in to GitHub Copilot")
    await it.press(*f"log in to {title}".lower())
    await it.until(lambda: it.text.count(f"log in to {title}") == 1)
    while not cast("Chooser", it.app.screen).value.startswith(LOGIN):
        await it.press("down")
    await it.press("enter")
    await it.shows(f"Log in to {title}")
    return copied


async def test_a_login_leads_from_the_list_to_a_model_that_answers(
    server: LoginServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.decisions = ["authorization_pending"] * 10_000
    async with on_screen(tmp_path, [reply("Hello.")], overrides=["model="]) as it:
        copied = await opened(it, monkeypatch, COPILOT.title)
        await it.shows(CODE)
        await it.shows("https://github.com/login/device")
        await it.press("c", "u")
        assert copied == [CODE, "https://github.com/login/device"]
        server.decisions.clear()
        await it.until(lambda: it.session.state.model.name == COPILOT.suggestion)
        await it.shows("is chosen for this session")
        login = LoginStore(home / "state").get("copilot")
        assert login is not None and login.token == GITHUB_TOKEN
        assert GITHUB_TOKEN not in it.text
        await it.shows("is chosen for this session")
        await it.press("escape")
        await it.session.chat.submit("Hello")
        await it.session.chat.finished()
        assert it.session.state.conversation.model == COPILOT.suggestion
        await it.press("ctrl+o", "M", *"log in to")
        await it.shows("log in to ChatGPT")
        assert "log in to GitHub Copilot" not in it.text


async def test_a_first_message_needs_two_keys_with_a_login(
    server: LoginServer, home: Path, tmp_path: Path
) -> None:
    LoginStore(home / "state").put("copilot", Login(GITHUB_TOKEN))
    async with on_screen(tmp_path, [reply("Hello.")], overrides=["model="]) as it:
        await it.press(*"hello", "enter")
        await it.shows("github_copilot/")
        await it.press("enter")
        await it.until(lambda: it.session.state.turn.ok and it.session.state.turn.number == 1)
        assert it.session.state.model.name.startswith("github_copilot/")
        await it.shows("To use github_copilot/")


async def test_a_login_that_is_denied_can_be_tried_again(
    server: LoginServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.decisions = ["access_denied"]
    async with on_screen(tmp_path, overrides=["model="]) as it:
        await opened(it, monkeypatch, CHATGPT.title)
        await it.shows("was denied")
        server.decisions = []
        await it.press("r")
        await it.until(lambda: it.session.state.model.name == CHATGPT.suggestion)
        await it.shows("is chosen for this session")


async def test_a_home_that_cannot_be_written_is_a_sentence_before_anything_is_approved(
    server: LoginServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.decisions = ["authorization_pending"] * 10_000
    async with on_screen(tmp_path, overrides=["model="]) as it:  # where it is imported from nobody may read
        await opened(it, monkeypatch, COPILOT.title)
        server.decisions.clear()
        await it.until(lambda: it.session.state.model.name == COPILOT.suggestion)
        await it.shows("is chosen for this session")
    server.asked.clear()
    with unprivileged() as public:
        monkeypatch.setenv("TUI_AGENT_HOME", str(public / "home"))
        state, work = public / "home" / "state", public / "work"
        work.mkdir()
        LoginStore(state).put("openrouter", Login(ROUTER_KEY))
        for path in (*(public / "home").rglob("*"), public / "home"):
            path.chmod(0o500 if path.is_dir() else 0o400)
        async with on_screen(work, overrides=["model="], size=(160, 48)) as it:
            await it.press(*"half typed")
            await opened(it, monkeypatch, COPILOT.title)
            await it.shows("no login can be stored in")
            await it.shows("(permission")
            await it.press("escape")
            await it.until(lambda: not isinstance(it.app.screen, LoginDialog))
            assert it.session.state.input.draft == "half typed"
            assert not it.session.models.name
        assert server.asked == []
        assert {name: login.token for name, login in LoginStore(state).names().items()} == {
            "openrouter": ROUTER_KEY
        }


async def test_esc_ends_the_questions(
    server: LoginServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.decisions = ["authorization_pending"] * 10_000
    async with on_screen(tmp_path, overrides=["model="]) as it:
        await opened(it, monkeypatch, COPILOT.title)
        await it.shows(CODE)
        await it.press("escape")
        await it.until(lambda: not isinstance(it.app.screen, LoginDialog))
        await it.app.workers.wait_for_complete([w for w in it.app.workers if w.group == "login"])
        asked = len(server.asked)
        await asyncio.sleep(0)
        assert len(server.asked) == asked and LoginStore(home / "state").names() == {}


@pytest.mark.parametrize("pasted", [True, False], ids=["pasted", "by the browser"])
async def test_openrouter_comes_back_from_the_browser(
    server: LoginServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pasted: bool
) -> None:
    async with on_screen(tmp_path, overrides=["model="]) as it:
        copied = await opened(it, monkeypatch, OPENROUTER.title)
        await it.shows("Waiting for the browser")
        await it.press("c")
        callback = server.approve(copied[0])
        if pasted:
            it.app.post_message(events.Paste(callback))
        else:
            await asyncio.to_thread(lambda: urllib.request.urlopen(callback).read())
        await it.until(lambda: it.session.state.model.name == OPENROUTER.suggestion)
        await it.shows("is chosen for this session")
        assert LoginStore(home / "state").get("openrouter") == Login(ROUTER_KEY, ROUTER_KEY)


async def test_a_command_of_the_prompt_leads_to_the_services(server: LoginServer, tmp_path: Path) -> None:
    async with on_screen(tmp_path, overrides=["model="]) as it:
        await it.press(*"/login", "enter")
        await it.shows("log in to GitHub Copilot")
        await it.press("enter")
        await it.until(lambda: it.session.state.model.name == COPILOT.suggestion)
