"""`tui-agent login`: each flow from the code to the token, what can go wrong, and turns with a login."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.login_servers import ACCOUNT, CODE, GITHUB_TOKEN, REFRESH_TOKEN, ROUTER_KEY, LoginServer
from support.privileges import unprivileged
from support.program import run, started
from support.strict.reply import Call, Reply, Say, View
from support.strict.server import StrictServer

from tui_agent import cli
from tui_agent.model.login.store import Login, LoginStore

DEVICE = ("copilot", "chatgpt")
TITLES = {"copilot": "GitHub Copilot", "chatgpt": "ChatGPT"}
FILE = "state/logins.json"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginServer]:
    with LoginServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("GITHUB_COPILOT_TOKEN", "CHATGPT_ACCESS_TOKEN", "OPENROUTER_API_KEY", "OR_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        yield server
        assert not server.violations


def everything_below(folder: Path) -> str:
    """The text of all files but that of the logins."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "logins.json")
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


def secrets_in(text: str) -> list[str]:
    forms = (GITHUB_TOKEN, REFRESH_TOKEN, ROUTER_KEY, "tid=", "eyJ")
    return [form for form in forms if form in text]


@pytest.mark.parametrize("name", DEVICE)
@pytest.mark.parametrize(
    "decisions",
    [[], ["authorization_pending", "slow_down", "authorization_pending"]],
    ids=["at once", "slow"],
)
def test_a_code_is_shown_and_an_approval_waited_for(
    server: LoginServer, home: Path, tmp_path: Path, name: str, decisions: list[str]
) -> None:
    server.decisions = list(decisions)
    done = run("login", name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"enter the code {CODE}" in done.stdout and f"Logged in to {TITLES[name]}" in done.stdout
    assert re.search(r"^Open https?://\S+$", done.stdout, re.MULTILINE)
    kept = home / FILE
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not secrets_in(done.stdout + done.stderr + everything_below(home))
    said = run("login", "status", "--json", folder=tmp_path)
    lines = {line["name"]: line for line in map(json.loads, said.stdout.splitlines())}
    assert lines[name]["state"] == "logged in" and lines[name]["kept"] == "file"
    assert not secrets_in(said.stdout)


@pytest.mark.parametrize("name", DEVICE)
@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("access_denied", "was denied"),
        ("expired_token", "has expired"),
        ("garbage", "sent an answer that cannot be used"),
        ("unsupported_grant_type", "sent an answer that cannot be used"),
    ],
)
def test_a_login_that_is_refused_ends_with_a_sentence(
    server: LoginServer, home: Path, tmp_path: Path, name: str, decision: str, words: str
) -> None:
    server.decisions = ["authorization_pending", decision]
    done = run("login", name, folder=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
    assert json.loads((home / FILE).read_text()) == {}


@pytest.mark.parametrize("name", DEVICE)
def test_a_code_that_nobody_approves_expires(server: LoginServer, tmp_path: Path, name: str) -> None:
    server.decisions = ["authorization_pending"] * 10_000
    server.code_lasts = 0.2
    done = run("login", name, folder=tmp_path)
    assert done.returncode == 1 and "has expired" in done.stderr


def test_a_login_at_openrouter_ends_with_the_browser(server: LoginServer, home: Path, tmp_path: Path) -> None:
    with started("login", "openrouter", folder=tmp_path) as program:
        page = the_page(program)
        callback = server.approve(page)
        with pytest.raises(urllib.error.HTTPError):  # another program of this machine that guesses
            urllib.request.urlopen(re.sub(r"/[^/?]+\?code=.*", "/guess?code=evil", callback))
        assert "You are logged in" in urllib.request.urlopen(callback).read().decode()
        out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert "Logged in to OpenRouter" in out and ROUTER_KEY in (home / FILE).read_text()
    assert not secrets_in(out + err + everything_below(home))


@pytest.mark.parametrize("whole", [True, False], ids=["address", "code"])
def test_a_code_of_openrouter_is_pasted(server: LoginServer, tmp_path: Path, whole: bool) -> None:
    with started("login", "openrouter", folder=tmp_path) as program:
        callback = server.approve(the_page(program))
        pasted = callback if whole else callback.partition("?code=")[2]
        out, err = program.communicate(f"\n{pasted}\n", timeout=60)
    assert program.returncode == 0, err
    assert "Logged in to OpenRouter" in out


@pytest.mark.parametrize(
    ("pasted", "words"), [("wrong", "refused the code"), ("http://x/?error=no", "was denied")]
)
def test_openrouter_refuses_or_the_person_does(
    server: LoginServer, tmp_path: Path, pasted: str, words: str
) -> None:
    done = run("login", "openrouter", folder=tmp_path, stdin=f"{pasted}\n")
    assert done.returncode == 1 and words in done.stderr


@pytest.mark.parametrize("name", [*DEVICE, "openrouter"])
def test_a_home_that_cannot_be_written_is_a_sentence_before_anything_is_approved(
    server: LoginServer,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    server.decisions = ["access_denied"]
    assert cli.main(["login", DEVICE[0]]) == 1  # where it is imported from nobody may read
    server.asked.clear()
    capsys.readouterr()
    with unprivileged() as folder:
        monkeypatch.setenv("TUI_AGENT_HOME", str(folder / "home"))
        store = LoginStore(folder / "home" / "state")
        store.put("chatgpt", Login(REFRESH_TOKEN))
        for path in (*(folder / "home").rglob("*"), folder / "home"):
            path.chmod(0o500 if path.is_dir() else 0o400)
        assert cli.main(["login", name]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(
            r"tui-agent: no login can be stored in \S+ \(permission denied\): give .*\n", err
        ), err
        assert server.asked == []
        assert {one: login.token for one, login in store.names().items()} == {"chatgpt": REFRESH_TOKEN}


def test_an_interrupt_ends_a_login(server: LoginServer, tmp_path: Path) -> None:
    server.decisions = ["authorization_pending"] * 10_000
    with started("login", "copilot", folder=tmp_path) as program:
        assert program.stderr is not None
        while "Waiting" not in program.stderr.readline():
            pass
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=60)
    assert program.returncode == 130 and "interrupted" in err


def test_a_home_that_cannot_be_written_is_said_before_anybody_approves(
    server: LoginServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = run(
        "login", "copilot", folder=tmp_path, environment={"TUI_AGENT_HOME": str(tmp_path / "file" / "home")}
    )
    assert done.returncode == 1
    assert "no login can be stored in" in done.stderr and "TUI_AGENT_HOME" in done.stderr
    assert server.asked == []


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_other_subscriptions_are_for_their_own_programs(tmp_path: Path, name: str) -> None:
    done = run("login", name, folder=tmp_path)
    assert done.returncode == 2
    assert "can be used only in" in done.stderr and "own programs: use" in done.stderr


def test_a_login_needs_neither_the_screen_nor_litellm(server: LoginServer, tmp_path: Path) -> None:
    program = """
import sys
from tui_agent import cli
assert cli.main(["login", "copilot"]) == 0
assert not {"textual", "litellm", "tiktoken"} & sys.modules.keys()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_doctor_names_the_logins(server: LoginServer, tmp_path: Path) -> None:
    assert run("login", "chatgpt", folder=tmp_path).returncode == 0
    assert json.loads(run("doctor", "--json", folder=tmp_path).stdout)["model"]["logins"] == ["chatgpt"]


def test_a_logout_removes_the_token(server: LoginServer, home: Path, tmp_path: Path) -> None:
    assert run("login", "copilot", folder=tmp_path).returncode == 0
    assert "Logged out" in run("logout", "copilot", folder=tmp_path).stdout
    assert GITHUB_TOKEN not in (home / FILE).read_text()
    assert "You were not logged in" in run("logout", "copilot", folder=tmp_path).stdout


def answering(view: View) -> Reply:
    return Reply((Say("All is well."),))


def environment_of(models: StrictServer) -> dict[str, str]:
    return {"CHATGPT_API_BASE": models.url, "GITHUB_COPILOT_API_BASE": models.url}


def ask(
    model: str, models: StrictServer, folder: Path, transport: str = "auto"
) -> subprocess.CompletedProcess[str]:
    words = (
        "run",
        "--set",
        f"models.transport={transport}",
        "--model",
        model,
        "--planner-model",
        "none",
        "--protocol",
        "tools",
        "Say that all is well",
    )
    return run(*words, folder=folder, environment=environment_of(models))


@pytest.mark.parametrize(
    ("name", "model", "transport"),
    [
        ("chatgpt", "gpt-5.4", "auto"),
        ("chatgpt", "gpt-5.4", "litellm"),
        ("github_copilot", "gpt-4.1", "litellm"),
        ("github_copilot", "gpt-5.4", "auto"),
    ],
)
def test_a_turn_uses_the_login(
    server: LoginServer, home: Path, tmp_path: Path, name: str, model: str, transport: str
) -> None:
    """litellm, if it is chosen for all, would begin a login of its own."""
    work = tmp_path / "work"
    work.mkdir()
    with StrictServer("openai", brain=answering, model=model) as models:
        server.chatgpt_access = server.copilot_access = lambda number: models.key
        login = "chatgpt" if name == "chatgpt" else "copilot"
        before = ask(f"{name}/{model}", models, work, transport)
        assert before.returncode == 3
        assert f"requires a login to {TITLES[login]}: run `tui-agent login {login}`" in before.stderr
        assert run("login", login, folder=work).returncode == 0
        done = ask(f"{name}/{model}", models, work, transport)
        assert done.returncode == 0, done.stderr
        assert "All is well." in done.stdout and not models.violations
        headers, body = models.requests[-1].headers, models.requests[-1].body
    if name == "chatgpt":
        assert headers["chatgpt-account-id"] == ACCOUNT and headers["originator"] == "codex_cli_rs"
        assert body["instructions"] and body["store"] is False
        assert not {"max_output_tokens", "temperature", "metadata"} & body.keys()
    else:
        assert headers["copilot-integration-id"] == "vscode-chat" and headers["x-initiator"] == "user"
        assert ("input" in body) == (model == "gpt-5.4")
    assert models.key not in done.stdout + done.stderr + everything_below(home)


@pytest.mark.parametrize("login", DEVICE)
@pytest.mark.parametrize("refused", [False, True], ids=["refreshed", "refused"])
def test_a_token_that_is_revoked_in_the_middle_of_a_turn(
    server: LoginServer, tmp_path: Path, login: str, refused: bool
) -> None:
    tokens = ["first-token-1", "second-token-2"]
    work = tmp_path / "work"
    work.mkdir()
    with StrictServer("openai", brain=lambda view: brain(view), model="gpt-5.4") as models:

        def accept(token: str) -> None:
            for dialect in models.dialects:
                dialect.key = token

        def brain(view: View) -> Reply:
            if view.turns:
                return answering(view)
            accept(tokens[1])
            return Reply((Call("list_directory", {"requests": [{"path": "."}]}),))

        server.chatgpt_access = server.copilot_access = lambda number: tokens[number - 1]
        accept(tokens[0])
        assert run("login", login, folder=work).returncode == 0
        server.refreshes = [401] if refused else []
        provider = "chatgpt" if login == "chatgpt" else "github_copilot"
        done = ask(f"{provider}/gpt-5.4", models, work)
        asked = server.count("/oauth/token" if login == "chatgpt" else "/copilot_internal/v2/token")
        assert asked == 2  # the login's own, and one refresh
        if not refused:
            assert done.returncode == 0, done.stderr
            assert "All is well." in done.stdout
            return
        ended = f"The login to {TITLES[login]} has expired: run `tui-agent login {login}`"
        assert done.returncode == 3 and ended in done.stderr
        assert "has expired" in run("login", "status", folder=work).stdout
        again = ask(f"{provider}/gpt-5.4", models, work)
        assert again.returncode == 3 and ended in again.stderr
        asked_later = server.count("/oauth/token" if login == "chatgpt" else "/copilot_internal/v2/token")
        assert asked_later == asked  # the service is not asked again


def the_page(program: subprocess.Popen[str]) -> str:
    """The address that the program shows."""
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line.startswith("Open http"), line
    return line.removeprefix("Open ").strip()
