"""The comparison with a model: both sides run a task against a scripted server, and the table has their counts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.agent_hosts import HostServer
from support.real_agents import RealAgent, Works, installed_agents
from support.strict.server import StrictServer

from tests.tasks import __main__ as compare
from tests.tasks.all_tasks import NO_GIT
from tests.tasks.model import ScriptedModel
from tests.tasks.peers import PEERS, at_task

PERCENT = next(task for task in NO_GIT.tasks if task.name == "percent")
LINE = "sed -i 's,return free / total,return 100 * free / total,' monitor/disk.py"
BLOCK = (
    "monitor/disk.py\n```\n<<<<<<< SEARCH\n    return free / total\n=======\n    return 100 * free / total\n"
    ">>>>>>> REPLACE\n```\n"
)
PROVIDERS = {"claude": ("anthropic", "claude-sonnet-4-5"), "codex": ("openai", "gpt-5.1-codex")}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("agent", installed_agents("claude", "codex", "opencode", "aider"))
def test_a_peer_solves_a_task_and_its_counts_are_read(agent: RealAgent, tmp_path: Path) -> None:
    provider, model = PROVIDERS.get(agent.name, ("openai", "openai/gpt-4.1"))
    root, home = tmp_path / "work", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    with HostServer(provider, Works({"percent_free": LINE}, {"percent_free": BLOCK}), None) as server:
        options = {"baseURL": server.url, "apiKey": server.key}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PWD": str(home),
            "ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": server.key,
            "OPENAI_API_BASE": server.url,
            "OPENAI_API_KEY": server.key,
            "CODEX_API_KEY": server.key,
            "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"openai": {"options": options}}}),
        }
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(f'openai_base_url = "{server.url}"\n')
        outcome = at_task(PEERS[agent.name], NO_GIT, PERCENT, NO_GIT.write(root), model, environment)
        assert outcome.solved, outcome
        assert (outcome.wrong, outcome.questions, outcome.faults) == ([], 0, [])
        assert outcome.tokens_in > 0 and outcome.tokens_out > 0
        assert len(server.requests) >= 1


def test_a_model_is_compared_in_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "ROOT", tmp_path)
    with StrictServer("openai", brain=ScriptedModel(NO_GIT.tasks, 1), model="gpt-4.1") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        assert compare.main(["--model", "openai/gpt-4.1", "--runs", "2", "--only", "no_git/percent"]) == 0
        assert server.violations == [] and server.counted
        tokens = sum(one["input"] for one in server.counted)
    table = (tmp_path / "build" / "tasks" / "tui-agent-openai-gpt-4.1.md").read_text()
    assert f"| percent | 2 of 2 | {tokens:,} |" in table and table in capsys.readouterr().out


def test_a_peer_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.tasks.peers.INSTALLED", Path("/absent"))
    monkeypatch.setenv("PATH", "/absent")
    assert compare.main(["--model", "x", "--peer", "aider"]) == 2
    assert "make agents" in capsys.readouterr().err
