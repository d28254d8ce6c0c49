"""`tui-agent mcp`: servers are listed, tested, switched on and taken over from other agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run_here
from support.tool_servers import ORDINARY, program

from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import load


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "person").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


def test_servers_of_other_agents_are_shown_and_then_written(
    work: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = work.parent / "person"
    table = {**program(work.parent / "servers", ORDINARY), "env": {"KEY": "${env:MY_KEY}"}}
    old = {"type": "sse", "url": "https://example.com/sse"}
    of_editor = {"source": "extension", "settings": {}}  # A program that only the editor knows.
    servers = {"my sums": table, "old": old, "of-editor": of_editor}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text('[mcp_servers.notes]\nurl = "https://example.com/mcp"\n')
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text("{broken")
    shown = run_here(capfd, ["mcp", "import"])
    assert shown.status == 0 and "my-sums" in shown.out and "notes" in shown.out
    assert "of-editor" not in shown.out and "neither a command nor a url" in shown.err
    assert "SSE" in shown.err and ".cursor/mcp.json is left out" in shown.err and "--yes" in shown.err
    assert load(user_folders()).settings.mcp.servers == {}
    assert run_here(capfd, ["mcp", "import", "--yes", "my-sums"]).status == 0
    loaded = load(user_folders())
    assert not loaded.faults and list(loaded.settings.mcp.servers) == ["my-sums"]
    found = loaded.settings.mcp.servers["my-sums"]
    assert list(found.args) == table["args"] and found.env == {"KEY": "${MY_KEY}"}
    assert "already exists" in run_here(capfd, ["mcp", "import", "--yes", "my-sums"]).out


def test_servers_are_imported_from_the_layouts_of_other_agents(
    work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also Claude Code's servers of one workspace, in a file with much history."""
    local = {"type": "stdio", "command": "npx", "args": ["-y", "local"], "env": {}}
    history = [{"display": "x" * 1_000}] * 3_000
    claude = {
        "projects": {
            str(work): {"mcpServers": {"local": local}, "history": history},
            "/other": {"mcpServers": {"foreign": local}},
        },
        "mcpServers": {"everywhere": {"type": "http", "url": "https://example.com/mcp"}},
    }
    codex = """[mcp_servers.figma]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = {"X-Region" = "eu"}
env_http_headers = {"X-User" = "USER_NAME"}
[mcp_servers.docs]
command = "npx"
env_vars = ["DOCS_KEY", 3]
startup_timeout_sec = 20
"""
    zed = """// Zed settings
{
  "theme": "One // Dark", /* a comment */
  "context_servers": {
    "old": {"source": "custom", "command": {"path": "uvx", "args": ["old,]"], "env": {"A": "1"}}},
  },
}
"""
    code = """{ // of the user
  "servers": {"files": {"command": "npx", "args": ["files", "${workspaceFolder}", "${input:api-key}"]},},
}"""
    files = {
        ".claude.json": json.dumps(claude),
        ".codex/config.toml": codex,
        ".config/zed/settings.json": zed,
        ".config/Code/User/mcp.json": code,
        ".gemini/settings.json": '{"mcpServers": {"g": {"httpUrl": "https://g.example", "headers": {"K": "$G_KEY"}}}}',
        ".config/opencode/opencode.jsonc": '{"mcp": {"o": {"type": "local", "command": ["bun", "x"]},}}',
        ".config/amp/settings.json": '{"amp.mcpServers": {"a": {"command": "amp-server"}}}',
        ".copilot/mcp-config.json": '{"mcpServers": {"c": {"type": "local", "command": "c", "tools": ["*"]}}}',
    }
    for name, text in files.items():
        path = work.parent / "person" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = run_here(capfd, ["mcp", "import", "--yes"])
    assert run.status == 0 and not run.err, run.err
    loaded = load(user_folders())
    servers = loaded.settings.mcp.servers
    assert not loaded.faults and set(servers) == {
        *"goac",
        "local",
        "everywhere",
        "figma",
        "docs",
        "old",
        "files",
    }
    assert servers["figma"].headers == {
        "X-Region": "eu",
        "X-User": "${USER_NAME}",
        "Authorization": "Bearer ${FIGMA_TOKEN}",
    }
    assert servers["docs"].env == {"DOCS_KEY": "${DOCS_KEY:-}"} and servers["g"].headers == {"K": "${G_KEY}"}
    old = servers["old"]
    assert (old.command, old.args, old.env) == ("uvx", ("old,]",), {"A": "1"})
    assert servers["files"].args == ("files", ".", "${API_KEY}") and servers["o"].args == ("x",)
    monkeypatch.setenv("API_KEY", "k")
    listed = run_here(capfd, ["mcp", "list"])
    assert "local" in listed.out and "the variable G_KEY is not set" in listed.err


def test_a_server_of_the_workspace_is_trusted_switched_on_and_tested(
    work: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = program(work.parent / "servers", ORDINARY)
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"sums": found, "../x\x1b": found}}))
    refused = run_here(capfd, ["mcp", "on", "sums"])
    assert refused.status == 2 and "is not trusted" in refused.sentence
    assert ".mcp.json" in run_here(capfd, ["trust", "--yes"]).out
    listed = run_here(capfd, ["mcp", "list"])
    assert "sums" in listed.out and "off" in listed.out and "\x1b" not in listed.out + listed.err
    assert "is off" in run_here(capfd, ["mcp", "test", "sums"]).sentence
    assert run_here(capfd, ["mcp", "on", "sums"]).status == 0
    tested = run_here(capfd, ["mcp", "test"])
    assert tested.status == 0 and "sums: 5 tools, 1 prompts, 1 resources" in tested.out
    assert "sums__add  Adds two numbers." in tested.out and "@sums:note://today" in tested.out
    assert run_here(capfd, ["mcp", "off", "sums"]).status == 0
    assert [
        json.loads(line)["on"] for line in run_here(capfd, ["mcp", "list", "--json"]).out.splitlines()
    ] == [False]


def test_keys_of_servers_are_not_shown(
    work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = user_folders().config
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text(
        '[mcp.servers.one]\ncommand = "one"\nargs = ["--key=${MY_KEY}"]\n'
        'env = {KEY = "written-out", OTHER = "${MY_KEY}"}\n'
    )
    monkeypatch.setenv("MY_KEY", "from-the-environment")
    said = run_here(capfd, ["mcp", "list"]).out + run_here(capfd, ["config", "show"]).out
    assert "--key=${MY_KEY}" in said and '"OTHER" = "${MY_KEY}"' in said
    assert "written-out" not in said and "from-the-environment" not in said


def test_a_wrong_name_and_a_wrong_kind_are_sentences(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = user_folders().config
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text(
        '[mcp.servers.both]\ncommand = "a"\nurl = "https://example.com"\n'
        '[mcp.servers.key]\nurl = "https://example.com/${NO_SUCH_VARIABLE}"\n'
        '[mcp.servers.plain]\ncommand = "false"\n'
    )
    listed = run_here(capfd, ["mcp", "list"])
    assert listed.out.split() == ["plain", "on", "false"]
    assert "either a command or a url" in listed.err and "NO_SUCH_VARIABLE is not set" in listed.err
    assert "program without a login" in run_here(capfd, ["mcp", "login", "plain"]).err
    ended = run_here(capfd, ["mcp", "test", "plain"])
    assert ended.status == 1 and "ended with status 1" in ended.sentence
