"""Sub-tasks that run at once in a repository of 10,000 files, through the model process and a server on loopback."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_subtasks import FILES, build
from figures import Figure, show
from programs import HERE, OUR_MARK, TUI_AGENT, home
from support.provider import Answer, Provider, Request
from terminal import Terminal

EIGHT, ROUNDS = 8, 3
#: What each answer of a sub-task takes, in seconds.
TAKES = 2.0
AUTO = ("--set", "autonomy=auto", "--set", f"subtasks.max_parallel={EIGHT}", "--set", "protocol=structured")


def main() -> None:
    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as folder:
        repo = build(Path(folder) / "repo")
        one, eight = [], []
        for _ in range(ROUNDS):
            one.append(run(repo, 1))
            eight.append(run(repo, EIGHT))
        alone = statistics.median(one)
        share = statistics.median(many / single for single, many in zip(one, eight, strict=True))
        note = f"{statistics.median(eight):.2f} s against {alone:.2f} s, {ROUNDS} pairs"
        show(
            [
                Figure(
                    f"{EIGHT} sub-tasks at once against one, answers of {TAKES:g} s", share, 1.5, " x", note
                ),
                Figure(
                    f"what a sub-task takes beside its answer, {FILES:,} files",
                    (alone - TAKES) * 1000,
                    500,
                    " ms",
                ),
                *stalls(repo),
            ]
        )


def run(repo: Path, parts: int) -> float:
    """Seconds from the beginning of the first sub-task to the end of the last."""
    with Provider() as provider, home(provider.url) as env:
        provider.answer(split(parts), *[part] * parts)
        command = [*TUI_AGENT, "run", "--json", *AUTO, "Split it"]
        began = ended = 0.0
        with subprocess.Popen(command, cwd=repo, env=env, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            done = 0
            for line in process.stdout:
                told = json.loads(line)
                if told["type"] == "subtask":
                    began = began or (time.monotonic() if told["state"] == "running" else 0.0)
                    done += told["state"] == "completed"
                    ended = time.monotonic() if told["state"] == "completed" else ended
        assert done == parts, f"{done} of {parts} came to their end"
    return ended - began


def stalls(repo: Path) -> list[Figure]:
    """The longest stall of the interface while eight run."""
    with Provider() as provider, home(provider.url) as env, TemporaryDirectory() as folder:
        provider.answer(split(EIGHT), *[part] * EIGHT)
        beats = Path(folder) / "beats.json"
        command = [sys.executable, str(HERE / "beating.py"), str(beats), *AUTO, "."]
        with Terminal(command, repo, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.settle(quiet=5)
            terminal.press("Split it\r")
            begun = provider.wait_for(1)[0].at
            provider.wait_for(1 + EIGHT)
            terminal.settle(quiet=3)
            gaps = [gap for gap in json.loads(beats.read_text()) if gap[0] > begun]
    longest = max((late for _, late, _ in gaps), default=0.0)
    busiest = max((work for _, _, work in gaps), default=0.0)
    return [
        Figure(f"longest stall of the interface while {EIGHT} run", longest * 1000, 50, " ms"),
        Figure("  most work of the process in one stall", busiest * 1000, None, " ms", "processor time"),
    ]


def split(parts: int) -> Answer:
    tasks = [
        {
            "id": f"t{n}",
            "goal": f"Part {n}",
            "files": [f"package{n}/part{n}/module_{100 * n + n}.py"],
            "autoExecute": True,
        }
        for n in range(parts)
    ]
    return Answer(json.dumps({"summary": "Split.", "subTasks": tasks}))


def part(request: Request) -> Answer:
    number = next(n for n in range(EIGHT) if f"\nPart {n}\n" in request.last_text)
    change = {"path": f"made/part{number}.py", "content": f"# part {number}\n"}
    return Answer(json.dumps({"summary": f"Did part {number}.", "fileChanges": [change]}), delay=TAKES)


if __name__ == "__main__":
    main()
