"""A child has what its kind needs of our environment, by name, and no key that is another's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import (
    WHOLE_PATH,
    avoid_programs_in,
    for_any,
    for_models,
    for_workspace,
    search_path,
)

ROOT = Path(__file__).parents[2]


def words(text: str) -> list[str]:
    return text.split()


NOBODYS = words("""
    GITHUB_TOKEN NPM_TOKEN DATABASE_URL PGPASSWORD STRIPE_SECRET_KEY SSH_AUTH_SOCK GPG_AGENT_INFO MY_PASSWORD
    SECRET GIT_ASKPASS GIT_SSH_COMMAND LD_PRELOAD DYLD_INSERT_LIBRARIES PYTHONSTARTUP PYTHONBREAKPOINT
    PYTHONINSPECT VAULT_TOKEN DOCKER_AUTH_CONFIG NODE_OPTIONS BASH_ENV ENV SLACK_BOT_TOKEN REDIS_PASSWORD
""")
PROVIDERS = words("""
    OPENAI_API_KEY OPENAI_API_BASE OPENAI_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN GEMINI_API_KEY
    AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AWS_BEARER_TOKEN_BEDROCK
    GOOGLE_APPLICATION_CREDENTIALS AZURE_API_KEY AZURE_CLIENT_SECRET VERTEXAI_PROJECT VERTEX_LOCATION
    OLLAMA_API_BASE HTTPS_PROXY no_proxy SSL_CERT_FILE REQUESTS_CA_BUNDLE TUI_AGENT_HOME HF_TOKEN
    REPLICATE_API_TOKEN
""")


def test_what_each_kind_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [*NOBODYS, *PROVIDERS, "PATH", "HOME", "LC_ALL", "PYTHONUTF8", "COV_CORE_SOURCE", "PYTHONPATH"]
    environ = {**dict.fromkeys(names, "value"), "PATH": "/usr/bin"}
    monkeypatch.setattr(os, "environ", environ)
    any_child, models, workspace = for_any(), for_models(), for_workspace()
    assert set(any_child) == {"PATH", "HOME", "LC_ALL", "PYTHONUTF8", "COV_CORE_SOURCE", "PYTHONPATH"}
    assert any_child["PYTHONPATH"] == str(ROOT)
    assert set(models) == set(PROVIDERS)
    assert workspace == {WHOLE_PATH: "/usr/bin"}


@pytest.mark.parametrize("kind", ["any", "workspace", "model"])
async def test_a_child_finds_no_key_that_is_not_for_it(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    for name in (*NOBODYS, *PROVIDERS):
        if not name.startswith("LD_"):
            monkeypatch.setenv(name, "canary-value")
    more = {"any": {}, "workspace": for_workspace(), "model": for_models()}[kind]
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    child = ChildProcess("support.child_program", env={**more, "PYTHONPATH": path})
    found = await child.ask("environment")
    await child.close()
    leaked = {name for name, value in found.items() if value == "canary-value"}
    assert leaked == (set(PROVIDERS) if kind == "model" else set())


def test_no_program_is_looked_for_in_a_folder_that_others_fill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(work / "bin")
    whole = os.pathsep.join(
        ["", ".", "bin", str(work / "bin"), str(tmp_path / "link"), str(work), "/usr/bin"]
    )
    avoid_programs_in(str(work))
    monkeypatch.setenv("PATH", whole)
    told = {**for_any(), **for_workspace()}
    assert told["PATH"] == "/usr/bin"
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert search_path() == "/usr/bin"
    trusted = search_path(trusted=True).split(os.pathsep)
    assert str(work / "bin") in trusted and "." not in trusted
