"""The thirty tasks with a real model: `python -m tests.tasks --model M [--runs N] [--peer P] [--only NAME]`.

Prints a table and writes it to build/tasks/. Keys are those of the environment. Each task gets one message. What the
model writes is run by the hidden tests with your rights: use a container for a model that you do not trust.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from tests.proofs.tally import markdown
from tests.tasks.all_tasks import TASKS
from tests.tasks.peers import PEERS, at_task
from tests.tasks.runs import Outcome, one_task

ROOT = Path(__file__).parents[2]
HEAD = ("task", "solved", "tokens in", "tokens out", "cost", "seconds", "wrong edits", "questions")


def main(words: Sequence[str] | None = None) -> int:
    asked = _arguments(words)
    peer = PEERS.get(asked.peer)
    if peer is not None and not peer.command:
        print(f"{asked.peer} is not installed: `make agents` installs it in build/agents", file=sys.stderr)
        return 2
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary, "home")
        home.mkdir()
        for run in range(asked.runs):
            for repository, task in TASKS:
                if asked.only not in f"{repository.name}/{task.name}":
                    continue
                folder = Path(temporary, str(run), task.name)
                folder.mkdir(parents=True)
                root = repository.write(folder)
                if peer is not None:
                    outcome = at_task(peer, repository, task, root, asked.model, os.environ)
                else:
                    outcome = Outcome(repository.name, task.name)
                    one_task(repository, task, root, home, asked.model, "auto", {}, outcome, most=1)
                outcomes.append(outcome)
                print(" · ".join(_row(task.name, [outcome])), *outcome.faults[:1], flush=True)
    by = {
        name: [one for one in outcomes if one.task == name]
        for name in dict.fromkeys(one.task for one in outcomes)
    }
    rows = [*(_row(name, ones) for name, ones in by.items()), _row("all", outcomes)]
    agent = asked.peer or "tui-agent"
    table = f"{agent} with {asked.model}, each task run {asked.runs} times\n\n{markdown(HEAD, rows)}\n"
    target = ROOT / "build" / "tasks" / f"{agent}-{asked.model.replace('/', '-')}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(table)
    print(f"\n{table}\nwritten to {target.relative_to(ROOT)}")
    return 0 if outcomes else 2


def _row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    judged = [one for one in outcomes if one.solved is not None]
    costs = [one.cost for one in outcomes]
    known = [cost for cost in costs if cost is not None]
    return (
        name,
        f"{sum(one.solved is True for one in judged)} of {len(judged)}" if judged else "not judged",
        f"{sum(one.tokens_in for one in outcomes):,}",
        f"{sum(one.tokens_out for one in outcomes):,}",
        f"${sum(known):.4f}" if len(known) == len(costs) else "unknown",
        f"{sum(one.seconds for one in outcomes):.0f}",
        str(sum(len(one.wrong) for one in outcomes)),
        str(sum(one.questions for one in outcomes)),
    )


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.tasks")
    parser.add_argument("--model", required=True, help="a litellm name, such as openai/gpt-5.4")
    parser.add_argument("--runs", type=int, default=1, help="how often each task is run")
    parser.add_argument(
        "--peer", default="", choices=["", *PEERS], help="an installed agent instead of tui-agent"
    )
    parser.add_argument("--only", default="", help="tasks whose repository/name contains this")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
