"""Logins as requests use them: kept, refreshed by one at a time, refused, and never shown."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.login_servers import (
    ACCOUNT,
    GITHUB_TOKEN,
    REFRESH_TOKEN,
    ROUTER_KEY,
    LoginServer,
    copilot_token,
    web_token,
)
from support.privileges import unprivileged

from tui_agent.debug_log import redacted
from tui_agent.errors import BadKey, FileError, LoginEnded, LoginFailed, RequestRejected, Unreachable
from tui_agent.model import litellm_client
from tui_agent.model.client import ModelRequest, RetryChunk
from tui_agent.model.completion import Refusals, complete
from tui_agent.model.direct_client import DirectTransport
from tui_agent.model.event_stream import Wire
from tui_agent.model.login import flow
from tui_agent.model.login.access import Logins, missing
from tui_agent.model.login.copilot import _own_address
from tui_agent.model.login.flow import WebAnswer
from tui_agent.model.login.openrouter import code_in
from tui_agent.model.login.store import FILE, Login, LoginStore
from tui_agent.model.provider_errors import with_retries
from tui_agent.settings.loading import environment_layer

COPILOT, CHATGPT, ROUTER = "github_copilot/gpt-5.4", "chatgpt/gpt-5.4", "openrouter/any"
EXPIRED = {
    "copilot": Login(GITHUB_TOKEN, copilot_token(0), expires=1.0),
    "chatgpt": Login(REFRESH_TOKEN, web_token(0, -100), expires=1.0, account=ACCOUNT),
}
MODELS = {"copilot": COPILOT, "chatgpt": CHATGPT}
REFRESHES = {"copilot": "/copilot_internal/v2/token", "chatgpt": "/oauth/token"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginServer]:
    with LoginServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server
        assert not server.violations


@pytest.fixture
def store(tmp_path: Path) -> LoginStore:
    return LoginStore(tmp_path / "state")


@pytest.mark.parametrize("name", EXPIRED)
async def test_those_who_refresh_at_once_make_one_request(
    server: LoginServer, store: LoginStore, name: str
) -> None:
    store.put(name, EXPIRED[name])
    logins = [Logins(LoginStore(store.folder)) for _ in range(5)]
    found = await asyncio.gather(*(one.variables(MODELS[name], {}) for one in logins))
    assert server.count(REFRESHES[name]) == 1
    assert all(one == found[0] for one in found)
    kept = store.get(name)
    assert kept is not None and kept.access in found[0].values() and kept.access != EXPIRED[name].access


@pytest.mark.parametrize("name", EXPIRED)
def test_processes_that_refresh_at_once_make_one_request(
    server: LoginServer, store: LoginStore, name: str
) -> None:
    store.put(name, EXPIRED[name])
    program = f"""
import asyncio, pathlib, sys
from tui_agent.model.login.access import Logins
from tui_agent.model.login.store import LoginStore
logins = Logins(LoginStore(pathlib.Path({str(store.folder)!r})))
sys.stdin.readline()
print(sorted(asyncio.run(logins.variables({MODELS[name]!r}, {{}})).values()))
"""
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True)
        for _ in range(3)
    ]
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [one.communicate(timeout=60)[0] for one in started]
    assert said[0] and said == said[:1] * 3
    assert server.count(REFRESHES[name]) == 1


async def test_a_token_that_another_has_refreshed_is_used(server: LoginServer, store: LoginStore) -> None:
    store.put("copilot", Login(GITHUB_TOKEN, "newer", expires=time.time() + 900))
    assert await Logins(store).variables(COPILOT, {}, refused="older") == {"GITHUB_COPILOT_TOKEN": "newer"}
    assert server.asked == []


@pytest.mark.parametrize("name", EXPIRED)
async def test_a_refused_refresh_ends_the_login_for_good(
    server: LoginServer, store: LoginStore, name: str
) -> None:
    store.put(name, EXPIRED[name])
    server.refreshes = [401]
    for _ in range(2):
        with pytest.raises(LoginEnded, match=f"has expired: run `tui-agent login {name}`"):
            await Logins(store).variables(MODELS[name], {})
    assert server.count(REFRESHES[name]) == 1
    assert store.names()[name] == Login(ended=True)
    why = missing(MODELS[name], {}, store)
    assert isinstance(why, LoginEnded)


@pytest.mark.parametrize("name", EXPIRED)
async def test_a_server_with_a_fault_does_not_end_a_login(
    server: LoginServer, store: LoginStore, name: str
) -> None:
    store.put(name, EXPIRED[name])
    server.refreshes = [503]
    with pytest.raises(Unreachable, match="status 503"):
        await Logins(store).variables(MODELS[name], {})
    assert store.get(name) == EXPIRED[name]
    assert await Logins(store).variables(MODELS[name], {})


async def test_an_account_without_copilot_is_told_so(server: LoginServer, store: LoginStore) -> None:
    store.put("copilot", EXPIRED["copilot"])
    server.refreshes = [403]
    with pytest.raises(BadKey, match="gives this account no access to Copilot"):
        await Logins(store).variables(COPILOT, {})
    assert store.get("copilot") == EXPIRED["copilot"]


@pytest.mark.parametrize("token", ["", "two words", "a\r\nX-Evil: 1", "é", 7])
async def test_a_token_that_may_be_in_no_header_is_garbage(
    server: LoginServer, store: LoginStore, token: object
) -> None:
    store.put("copilot", EXPIRED["copilot"])
    server.copilot_access = lambda number: token
    with pytest.raises(Unreachable, match="cannot be used"):
        await Logins(store).variables(COPILOT, {})


async def test_nothing_answers(store: LoginStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_LOGIN_GITHUB", "http://127.0.0.1:9")
    store.put("copilot", EXPIRED["copilot"])
    with pytest.raises(Unreachable, match="cannot be reached"):
        await Logins(store).variables(COPILOT, {})


async def test_a_key_of_the_environment_counts_more(store: LoginStore) -> None:
    store.put("openrouter", Login(ROUTER_KEY, ROUTER_KEY))
    logins = Logins(store)
    assert await logins.variables(ROUTER, {}) == {"OPENROUTER_API_KEY": ROUTER_KEY}
    assert await logins.variables(ROUTER, {"OPENROUTER_API_KEY": "mine"}) == {}
    assert await logins.variables("openai/gpt-5", {}) == {}
    with pytest.raises(LoginEnded):
        await logins.variables(ROUTER, {}, refused=ROUTER_KEY)


async def test_only_what_needs_a_login_is_refused_without_one(store: LoginStore) -> None:
    assert missing(ROUTER, {}, store) is None and await Logins(store).variables(ROUTER, {}) == {}
    assert missing("openai/gpt-5", {}, store) is None
    assert "run `tui-agent login chatgpt`" in str(missing(CHATGPT, {}, store))
    with pytest.raises(BadKey, match="requires a login to GitHub Copilot"):
        await Logins(store).variables(COPILOT, {})


async def test_the_address_of_a_token_is_used_unless_the_person_set_one(
    server: LoginServer, store: LoginStore
) -> None:
    server.api = server.url
    store.put("copilot", EXPIRED["copilot"])
    found = await Logins(store).variables(COPILOT, {})
    assert found["GITHUB_COPILOT_API_BASE"] == server.url
    assert "GITHUB_COPILOT_API_BASE" not in await Logins(store).variables(
        COPILOT, {"GITHUB_COPILOT_API_BASE": "x"}
    )


@pytest.mark.parametrize(
    ("api", "used"),
    [
        ("https://api.individual.githubcopilot.com/", "https://api.individual.githubcopilot.com"),
        ("https://copilot-api.corp.ghe.com", "https://copilot-api.corp.ghe.com"),
        ("https://evil.example", ""),
        ("https://evilgithubcopilot.com", ""),
        ("http://api.githubcopilot.com", ""),
        (None, ""),
    ],
)
def test_a_token_goes_to_hosts_of_copilot_only(api: object, used: str) -> None:
    assert _own_address(api) == used


async def test_a_home_that_cannot_be_written_keeps_what_was_refreshed_in_memory(server: LoginServer) -> None:
    with unprivileged() as folder:
        store = LoginStore(folder / "state")
        store.put("chatgpt", EXPIRED["chatgpt"])
        (folder / "state").chmod(0o500)
        with pytest.raises(FileError, match="no login can be stored in"):
            store.check()
        logins = Logins(store)
        first = await logins.variables(CHATGPT, {})
        assert await logins.variables(CHATGPT, {}) == first  # the refresh token is good for one time
        assert server.count("/oauth/token") == 1


def test_the_file_is_for_the_person_alone(store: LoginStore) -> None:
    os.umask(0)
    try:
        store.put("copilot", EXPIRED["copilot"])
    finally:
        os.umask(0o022)
    path = store.folder / "logins.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert store.get("copilot") == EXPIRED["copilot"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"copilot": 3}', b"\xff"])
def test_a_damaged_file_is_no_login(store: LoginStore, content: bytes) -> None:
    store.folder.mkdir()
    (store.folder / "logins.json").write_bytes(content)
    assert store.names() == {} and store.get("copilot") is None
    store.put("copilot", EXPIRED["copilot"])
    assert store.get("copilot") == EXPIRED["copilot"]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_keyring_holds_the_tokens_if_it_gives_them_back(
    store: LoginStore, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    held: dict[tuple[str, str], str] = {}
    package = ModuleType("keyring")
    package.set_password = lambda service, name, key: held.__setitem__((service, name), key)  # ty: ignore
    package.get_password = lambda service, name: None if forgets else held.get((service, name))  # ty: ignore
    package.delete_password = lambda service, name: held.pop((service, name))  # ty: ignore
    package.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "keyring", package)
    store.put("copilot", EXPIRED["copilot"])
    assert (GITHUB_TOKEN in (store.folder / "logins.json").read_text()) == forgets
    assert store.get("copilot") == EXPIRED["copilot"]
    assert store.names()["copilot"].in_keyring != forgets
    held_before = dict(held)
    assert store.remove("copilot") and store.get("copilot") is None
    assert forgets or (held_before and not held)


@pytest.mark.parametrize(
    "token",
    [GITHUB_TOKEN, REFRESH_TOKEN, ROUTER_KEY, copilot_token(), web_token()],
    ids=["github", "refresh", "router", "copilot", "web"],
)
def test_tokens_are_masked_in_the_debug_log(token: str) -> None:
    said = redacted(
        f"the request failed with Bearer {token} in it; token={token}, {json.dumps({'t': token})}"
    )
    assert token not in said and token[8:30] not in said


def test_errors_of_servers_hold_no_token() -> None:
    body = {"error": "invalid", "error_description": f"the token {GITHUB_TOKEN} is not valid\x1b[31m"}
    said = str(WebAnswer(400, body, "github.com").garbage())
    assert GITHUB_TOKEN not in said and "\x1b" not in said and "status 400" in said


@pytest.mark.parametrize("code", ["", "A" * 50, "AB\x1b[31m", "AB\nCD", "Ж"])
def test_a_code_that_cannot_be_shown_is_garbage(code: str) -> None:
    with pytest.raises(LoginFailed):
        flow.shown_code(WebAnswer(200, {}, "x"), code, "https://github.com/login/device")


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "file:///etc/passwd", "https://x/\x1b]0;a\a"])
def test_a_page_that_cannot_be_opened_is_garbage(url: str) -> None:
    with pytest.raises(LoginFailed):
        flow.shown_code(WebAnswer(200, {}, "x"), "CODE", url)


async def test_slow_down_raises_the_interval_by_what_the_standard_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(flow.asyncio, "sleep", sleep)
    answers: Iterator[flow.SlowDown | str | None] = iter(
        [flow.SlowDown(), None, flow.SlowDown(30.0), "token"]
    )

    async def ask() -> flow.SlowDown | str | None:
        return next(answers)

    steps = [step async for step in flow.approval(ask, 0.0, 0.0, "X")]
    assert slept == [5.0, 10.0, 10.0, 30.0] and steps[-1] == "token"


@pytest.mark.parametrize(
    ("pasted", "code"),
    [
        ("abc", "abc"),
        (" abc\n", "abc"),
        ("http://localhost:4/x?code=abc&y=1", "abc"),
        ("http://localhost:4/x?error=no", ""),
    ],
)
def test_a_pasted_code(pasted: str, code: str) -> None:
    assert code_in(pasted) == code


def test_addresses_for_tests_are_no_settings() -> None:
    with LoginServer() as server:
        assert not environment_layer(server.environment).faults


@pytest.mark.parametrize("model", [COPILOT, CHATGPT, "GitHub_Copilot/gpt-5.4"])
async def test_litellm_is_not_asked_for_a_model_of_a_login(model: str) -> None:
    """It would begin a login of its own, whatever it is asked."""
    transport = litellm_client.LitellmTransport()
    for asked in (
        transport.abilities(model),
        transport.open(ModelRequest(model, ()), Wire(), None),
        litellm_client.upload(model, "a", "b"),
        litellm_client.delete(model, ["a"]),
    ):
        with pytest.raises(RequestRejected, match="tui-agent login"):
            await asked


@pytest.mark.parametrize("name", EXPIRED)
async def test_a_request_waits_for_a_service_that_refreshes_nothing_now(
    server: LoginServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path))
    LoginStore().put(name, EXPIRED[name])
    server.refreshes = [503, 429]
    request, waits = ModelRequest(MODELS[name], ({"role": "user", "content": "Hi"},)), []

    async def slept(seconds: float) -> None: ...

    with pytest.raises(Unreachable, match="even after 1 retry"):
        transport = DirectTransport()
        async for chunk in with_retries(lambda: complete(transport, request, Refusals()), 1, slept):
            waits.append(chunk)  # noqa: PERF401
    assert server.count(REFRESHES[name]) == 2
    assert isinstance(waits[0], RetryChunk) and "status 503" in waits[0].why


async def test_a_token_that_still_serves_is_used_if_nothing_is_refreshed_now(
    server: LoginServer, store: LoginStore
) -> None:
    store.put("copilot", Login(GITHUB_TOKEN, "still-good", expires=time.time() + 30))
    server.refreshes = [503]
    assert await Logins(store).variables(COPILOT, {}) == {"GITHUB_COPILOT_TOKEN": "still-good"}
    assert server.count(REFRESHES["copilot"]) == 1


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_a_pipe_or_a_device_in_place_of_the_logins_holds_none(
    store: LoginStore, make: Callable[[Path], None]
) -> None:
    store.folder.mkdir()
    make(store.folder / FILE)
    assert store.names() == {}
