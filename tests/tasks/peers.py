"""Other agents at the same tasks: the command of one message, and the tokens and dollars that they print."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.real_agents import INSTALLED

from tests.tasks.runs import PATIENCE_SECONDS, Outcome
from tests.tasks.task import Repository, Task, judged, wrong_edits
from tui_agent.log.stats import asks_for_a_file

_AIDER = re.compile(r"Tokens: ([\d.]+)(k?) sent,.*?([\d.]+)(k?) received\.(?: Cost: \$([\d.]+) message)?")


@dataclass(frozen=True)
class Spent:
    """The last words of an agent, tokens, and dollars (None if it prints none)."""

    said: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class Peer:
    """`program` is below build/agents; one of that name on the path is used if it is missing."""

    program: str
    words: Callable[[str, str, Repository], list[str]]
    spent: Callable[[str], Spent]

    @property
    def command(self) -> str:
        installed = INSTALLED / self.program
        return str(installed) if installed.exists() else shutil.which(installed.name) or ""


def at_task(
    peer: Peer, repository: Repository, task: Task, root: Path, model: str, environment: Mapping[str, str]
) -> Outcome:
    """One message to an agent in a copy of the repository, with the agent's own rights."""
    outcome, begun = Outcome(repository.name, task.name, turns=1), time.monotonic()
    command = [peer.command, *peer.words(model, task.prompt, repository)]
    try:
        done = subprocess.run(
            command, cwd=root, env={**environment, "PWD": str(root)}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        outcome.faults.append(f"stopped after {PATIENCE_SECONDS:.0f} s")
        return outcome
    outcome.seconds = time.monotonic() - begun
    if done.returncode:
        outcome.faults.append(f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    spent = peer.spent(done.stdout)
    outcome.tokens_in, outcome.tokens_out, outcome.cost = spent.tokens_in, spent.tokens_out, spent.cost
    outcome.questions = int(asks_for_a_file(spent.said))
    outcome.solved = judged(repository, task, root)
    outcome.wrong = [path for path in wrong_edits(repository, task, root) if not path.startswith(".")]
    return outcome


def _lines(output: str) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _claude(output: str) -> Spent:
    result = next((one for one in _lines(output) if one.get("type") == "result"), {})
    usage = result.get("usage", {})
    read = sum(
        usage.get(name, 0)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Spent(
        str(result.get("result", "")), read, usage.get("output_tokens", 0), result.get("total_cost_usd")
    )


def _codex(output: str) -> Spent:
    said, tokens_in, tokens_out = "", 0, 0
    for event in _lines(output):
        item = event.get("item") or {}
        if item.get("type") == "agent_message":
            said = item.get("text", "")
        if event.get("type") == "turn.completed":
            tokens_in += event["usage"]["input_tokens"]
            tokens_out += event["usage"]["output_tokens"]
    return Spent(said, tokens_in, tokens_out)


def _opencode(output: str) -> Spent:
    said, tokens_in, tokens_out, cost = "", 0, 0, None
    for event in _lines(output):
        part = event.get("part") or {}
        if event.get("type") == "text":
            said = part.get("text", "")
        if event.get("type") == "step_finish":
            tokens = part.get("tokens", {})
            cache = tokens.get("cache", {})
            tokens_in += tokens.get("input", 0) + cache.get("read", 0) + cache.get("write", 0)
            tokens_out += tokens.get("output", 0) + tokens.get("reasoning", 0)
            cost = (cost or 0.0) + part.get("cost", 0.0)
    return Spent(said, tokens_in, tokens_out, cost)


def _aider(output: str) -> Spent:
    counts = [(_number(*one[:2]), _number(*one[2:4]), one[4]) for one in _AIDER.findall(output)]
    cost = (
        sum(float(price) for *_, price in counts) if counts and all(price for *_, price in counts) else None
    )
    return Spent(output, sum(one[0] for one in counts), sum(one[1] for one in counts), cost)


def _number(digits: str, thousand: str) -> int:
    return round(float(digits) * (1000 if thousand else 1))


PEERS = {
    "aider": Peer(
        "aider-chat/bin/aider",
        lambda model, prompt, repository: [
            *(
                "--model",
                model,
                "--yes-always",
                "--no-auto-commits",
                "--no-check-update",
                "--analytics-disable",
            ),
            *("--no-show-model-warnings", "--no-gitignore", "--no-detect-urls"),
            *(() if repository.git else ("--no-git",)),
            *("--message", prompt),
        ],
        _aider,
    ),
    "opencode": Peer(
        "node_modules/.bin/opencode",
        lambda model, prompt, _: ["run", "--format", "json", "-m", model, prompt],
        _opencode,
    ),
    "codex": Peer(
        "node_modules/.bin/codex",
        lambda model, prompt, _: [
            *("exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"),
            *("-m", model.removeprefix("openai/"), prompt),
        ],
        _codex,
    ),
    "claude": Peer(
        "node_modules/.bin/claude",
        lambda model, prompt, _: [
            *("-p", prompt, "--model", model.removeprefix("anthropic/"), "--output-format", "json"),
            *("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
        ],
        _claude,
    ),
}
