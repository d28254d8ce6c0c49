"""Sub-tasks that run at once, through the model process and a server on loopback; what one takes beside its answer."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from bench_subtasks import FILES, build
from figures import Figure, show
from programs import HERE, OUR_MARK, home
from support.provider import Answer, Provider, Request
from support.trees import until
from terminal import Terminal

from tui_agent.session.opening import Opening, open_session
from tui_agent.settings.folders import user_folders

EIGHT, ROUNDS, USUAL = 8, 3, 600
#: What each answer of a sub-task takes, in seconds.
TAKES = 2.0
PATIENCE = 120.0
SETTINGS = (f"subtasks.max_parallel={EIGHT}", "protocol=structured")
AUTO = ("--set", "subtasks.begin=auto", *(word for setting in SETTINGS for word in ("--set", setting)))


def main() -> None:
    with TemporaryDirectory(prefix="tui-agent-bench-", ignore_cleanup_errors=True) as folder:
        large, usual = (build(Path(folder) / str(files), files) for files in (FILES, USUAL))
        show([at_once(usual, USUAL, 1.5), beside(large), at_once(large, FILES, None)])
        show(stalls(large))


def at_once(repo: Path, files: int, limit: float | None) -> Figure:
    """Eight against one, from the person's approval to the end of the last."""
    one, eight = [], []
    for _ in range(ROUNDS):
        one.append(run(repo, 1))
        eight.append(run(repo, EIGHT))
    share = statistics.median(many / single for single, many in zip(one, eight, strict=True))
    note = f"{statistics.median(eight):.2f} s against {statistics.median(one):.2f} s, {ROUNDS} pairs"
    return Figure(
        f"{EIGHT} sub-tasks at once against one, answers of {TAKES:g} s, {files:,} files",
        share,
        limit,
        " x",
        note,
    )


def beside(repo: Path) -> Figure:
    """What a sub-task takes beside its answer, approved when the proposal has been looked at for a while."""
    took = [run(repo, 1) - TAKES for _ in range(ROUNDS)]
    return Figure(
        f"what a sub-task takes beside its answer, {FILES:,} files",
        statistics.median(took) * 1000,
        500,
        " ms",
    )


def run(repo: Path, parts: int) -> float:
    """Seconds from the approval to the end of the last sub-task, with nothing of its copy left."""
    with Provider() as provider, home(provider.url) as environment, mock.patch.dict(os.environ, environment):
        provider.answer(split(parts), *[part] * parts)
        return asyncio.run(approved(repo, parts))


async def approved(repo: Path, parts: int) -> float:
    session = await open_session(Opening(repo, overrides=SETTINGS))
    try:
        await session.start_services()
        await session.files.ready()
        await session.chat.submit("Split it")
        await session.chat.finished()
        await until(lambda: list((user_folders().data / "worktrees").glob("*/.seed.index")))
        await asyncio.sleep(1)
        began = time.monotonic()
        await session.subtasks.run_ticked()
        await session.subtasks.settled()
        took = time.monotonic() - began
        assert {task.state for task in session.state.subtasks.tasks} == {"completed"}
        assert len(session.state.review.open) == parts
        return took
    finally:
        await session.close()


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
            deadline = time.monotonic() + PATIENCE
            while len(provider.requests) < 1 + EIGHT and time.monotonic() < deadline:
                terminal.read(0.2)  # a terminal that nobody reads holds up whoever writes to it
            assert len(provider.requests) == 1 + EIGHT
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
        {"id": f"t{n}", "goal": f"Part {n}", "files": [f"made/part{n}.py"], "autoExecute": True}
        for n in range(parts)
    ]
    return Answer(json.dumps({"summary": "Split.", "subTasks": tasks}))


def part(request: Request) -> Answer:
    number = next(n for n in range(EIGHT) if f"\nPart {n}\n" in request.last_text)
    change = {"path": f"made/part{number}.py", "content": f"# part {number}\n"}
    return Answer(json.dumps({"summary": f"Did part {number}.", "fileChanges": [change]}), delay=TAKES)


if __name__ == "__main__":
    main()
