"""Real agents that `make agents` installed, each with credentials of the test and hosts on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.strict.reply import Call, Reply, Say, View

from tui_agent.outside_agents.profiles import load_profile
from tui_agent.settings.folders import Folders

INSTALLED = Path(__file__).parents[2] / "build" / "agents"
#: Names of functions that run a command, and the form of their arguments.
SHELLS: Mapping[str, Callable[[str], dict[str, object]]] = {
    "Bash": lambda line: {"command": line, "description": "work"},
    "bash": lambda line: {"command": line},
    "exec_command": lambda line: {"cmd": line},
    "shell_command": lambda line: {"command": line},
    "shell": lambda line: {"command": ["bash", "-c", line]},
    "run_shell_command": lambda line: {"command": line, "description": "work"},
}


@dataclass(frozen=True)
class RealAgent:
    """An agent: its program below `INSTALLED`, the variable that names the test's authority, its credentials below
    the home and in the environment, and settings that the test adds to its profile."""

    name: str
    program: str
    host: str
    authority: str
    files: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    #: Hosts that it asks for besides those of its profile; it works without them.
    also_asks: frozenset[str] = frozenset()
    runs_commands: bool = True

    def set_up(self, folders: Folders, home: Path, authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Writes the credentials, and a profile that differs from the shipped one in the authority only."""
        for path, content in self.files.items():
            place = home / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content if isinstance(content, str) else json.dumps(content))
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        (home / "authority.pem").write_bytes(authority.read_bytes())
        shipped = load_profile(folders, self.name)
        trusted = {**shipped.variables, self.authority: str(home / "authority.pem")}
        fields = msgspec.to_builtins(shipped) | {
            "program": str(INSTALLED / self.program),
            "headless": [*self.arguments, *shipped.headless],
            "variables": trusted,
            "copied": [*shipped.copied, "authority.pem"],
        }
        del fields["name"]
        if shipped.acp:
            fields["acp"] = [
                str(INSTALLED / self.program).rpartition("/")[0] + f"/{shipped.acp[0]}",
                *shipped.acp[1:],
            ]
        profiles = folders.config / "agent-programs"
        profiles.mkdir(parents=True, exist_ok=True)
        lines = (f"{key} = {_toml(value)}" for key, value in fields.items())
        (profiles / f"{self.name}.toml").write_text("\n".join(lines))


AGENTS = (
    RealAgent(
        "claude",
        "node_modules/.bin/claude",
        "api.anthropic.com",
        "NODE_EXTRA_CA_CERTS",
        {
            ".claude/.credentials.json": {
                "claudeAiOauth": {
                    "accessToken": "test-key-anthropic",
                    "refreshToken": "none",
                    "expiresAt": 4102444800000,
                    "scopes": ["user:inference", "user:profile"],
                    "subscriptionType": "max",
                }
            }
        },
    ),
    RealAgent(
        "codex",
        "node_modules/.bin/codex",
        "api.openai.com",
        "SSL_CERT_FILE",
        {
            ".codex/auth.json": {"OPENAI_API_KEY": "test-key-openai"},
            ".codex/config.toml": 'model = "gpt-5.1-codex"\n',  # newer models call functions by JavaScript
        },
        also_asks=frozenset({"github.com", "api.github.com", "ab.chatgpt.com", "raw.githubusercontent.com"}),
    ),
    RealAgent(
        "opencode",
        "node_modules/.bin/opencode",
        "api.anthropic.com",
        "NODE_EXTRA_CA_CERTS",
        {
            ".local/share/opencode/auth.json": {"anthropic": {"type": "api", "key": "test-key-anthropic"}},
            ".config/opencode/opencode.json": {"model": "anthropic/claude-sonnet-4-5"},
        },
    ),
    RealAgent(
        "gemini",
        "node_modules/.bin/gemini",
        "generativelanguage.googleapis.com",
        "NODE_EXTRA_CA_CERTS",
        {".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}}},
        {"GEMINI_API_KEY": "test-key-gemini"},
        also_asks=frozenset({"play.googleapis.com"}),
    ),
    RealAgent(
        "vibe",
        "mistral-vibe/bin/vibe",
        "api.mistral.ai",
        "SSL_CERT_FILE",
        {".vibe/.env": "MISTRAL_API_KEY=test-key-mistral\n"},
        also_asks=frozenset({"chat.mistral.ai", "console.mistral.ai", "experiments.mistral.services"}),
    ),
    RealAgent(
        "aider",
        "aider-chat/bin/aider",
        "api.openai.com",
        "SSL_CERT_FILE",
        {},
        {"OPENAI_API_KEY": "test-key-openai"},
        ("--model", "openai/gpt-4o"),
        also_asks=frozenset({"raw.githubusercontent.com", "us.i.posthog.com"}),
        runs_commands=False,
    ),
)


@dataclass
class Works:
    """A model that runs the shell line whose mark is in the request, and says that it is done; in a chat without
    functions it answers with a text."""

    lines: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)
    #: Tools that were offered in a request without a known shell.
    unknown: list[list[str]] = field(default_factory=list)

    def __call__(self, view: View) -> Reply:
        if view.schema:
            return Reply((Say('{"complexity_reasoning": "simple", "complexity_score": 10}'),))
        said = json.dumps(view.body)
        mark = max(self.lines, key=said.rfind)
        if mark not in said:
            return Reply((Say("A title"),))
        if not view.tools:
            return Reply((Say(self.texts.get(mark, "Done.")),))
        if view.results:
            return Reply((Say("It is done."),))
        shell = next((name for name in view.tools if name in SHELLS), "")
        if not shell:
            self.unknown.append(view.tools)
            return Reply((Say("No shell"),))
        return Reply((Call(shell, SHELLS[shell](self.lines[mark])),))


def installed_agents(*names: str) -> list[Any]:
    """Parameters of a test, of all agents or of these; it is skipped for those that are not installed."""
    return [
        pytest.param(
            agent,
            id=agent.name,
            marks=pytest.mark.skipif(
                not (INSTALLED / agent.program).exists(),
                reason=f"{agent.name} is not installed: `make agents` installs it",
            ),
        )
        for agent in AGENTS
        if not names or agent.name in names
    ]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {json.dumps(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)
