"""Other programs of this kind, and how each is started so that it talks to a provider on loopback.

What they need is written as their documentation has it; who adds one tries it with `make bench ARGS=feel PEERS=NAME`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KEY = "sk-ant-bench-0123456789abcdefghij"


@dataclass(frozen=True)
class Peer:
    """`words` start it, and `{url}` in them is the provider's address. `mark` is drawn once its screen is there.

    `variables` and `files` (below a home of its own) are made from the address, the home and the workspace.
    """

    name: str
    words: Sequence[str]
    mark: str
    variables: Callable[[str, Path], Mapping[str, str]] = lambda url, home: {}
    files: Callable[[str, Path], Mapping[str, str]] = field(default=lambda url, workspace: {})

    def command(self, url: str) -> list[str]:
        return [word.replace("{url}", url) for word in self.words]

    def prepare(self, url: str, home: Path, workspace: Path) -> dict[str, str]:
        """Write its files; the variables that it is started with."""
        for name, text in self.files(url, workspace).items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        places = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "OPENAI_API_KEY": KEY}
        return {**kept, **places, **self.variables(url, home)}


def _codex(url: str, workspace: Path) -> Mapping[str, str]:
    lines = (
        'model = "bench"\nmodel_provider = "bench"\n\n[model_providers.bench]\nname = "bench"',
        f'base_url = "{url}"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n',
        f'[projects."{workspace}"]\ntrust_level = "trusted"\n',
    )
    return {".codex/config.toml": "\n".join(lines)}


def _claude(url: str, workspace: Path) -> Mapping[str, str]:
    told = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(workspace): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    return {".claude.json": json.dumps(told)}


def _opencode(url: str, workspace: Path) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": KEY},
        "models": {"bench": {}},
    }
    told = {"provider": {"bench": provider}, "model": "bench/bench", "autoupdate": False}
    return {".config/opencode/opencode.json": json.dumps(told)}


PEERS = (
    Peer("codex", ("codex",), "Ask Codex", files=_codex),
    Peer(
        "claude",
        ("claude",),
        r"\?",
        lambda url, home: {
            "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        _claude,
    ),
    Peer("opencode", ("opencode",), "Ask", files=_opencode),
    Peer("toad", ("toad", "acp", "opencode acp", "."), "Toad|toad|OpenCode", files=_opencode),
    Peer("aider", ("aider", "--model", "openai/bench", "--openai-api-base", "{url}", "--yes-always"), ">"),
)


def asked_for(names: str) -> tuple[list[Peer], list[str]]:
    """The peers that a list of names (parted by blanks or commas, or `all`) asks for: those that are installed, and
    the names of those that are not. Raises `SystemExit` for a name that nobody knows."""
    wanted = set(names.replace(",", " ").split())
    unknown = wanted - {peer.name for peer in PEERS} - {"all"}
    if unknown:
        known = ", ".join(peer.name for peer in PEERS)
        raise SystemExit(f"there is no peer {', '.join(sorted(unknown))}: PEERS takes {known}, or all")
    asked = [peer for peer in PEERS if wanted & {peer.name, "all"}]
    missing = [peer.name for peer in asked if shutil.which(peer.words[0]) is None]
    return [peer for peer in asked if peer.name not in missing], missing
