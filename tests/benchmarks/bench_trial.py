"""Trial runs: what a view costs over the command alone, with many files and pending changes; stopping; a flood."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show

from tui_agent.sandbox.environment import variables
from tui_agent.sandbox.hidden_files import HiddenFiles
from tui_agent.sandbox.isolation import runner_for
from tui_agent.sandbox.run import FolderRunner, Run, RunResult
from tui_agent.sandbox.view_plan import Seed, ViewPlan, plan

TIMES = 15
MANY = 100_000


async def median(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds, the median of several."""
    taken = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def tree(root: Path, count: int) -> None:
    for number in range(count):
        folder = root / f"d{number // 100}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        (folder / f"f{number}.txt").write_text("x\n")


async def run(made: ViewPlan, *argv: str, run: Run | None = None) -> RunResult:
    chosen, _ = variables(made.root, made.places, os.environ)
    return await (run or Run()).alone(runner_for(made), argv, chosen)


async def alone() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()


async def stopped(root: Path) -> float:
    """Milliseconds from the request to stop to the end, of a command that does not want to."""
    begun = asyncio.Event()
    one = Run(told=lambda _: begun.set())
    words = "trap '' INT TERM; echo x; while :; do sleep 1; done"
    task = asyncio.create_task(run(plan(root), "sh", "-c", words, run=one))
    await begun.wait()
    at = time.perf_counter()
    one.stop()
    await task
    return (time.perf_counter() - at) * 1000


async def flood(root: Path) -> tuple[float, float]:
    """While a command prints 1 GB: the longest time for which the loop did nothing else, and megabytes more."""
    longest, last, before = 0.0, time.perf_counter(), resident()
    most = before

    async def look() -> None:
        nonlocal longest, last, most
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last, most = max(longest, now - last), now, max(most, resident())

    planned = plan(root)  # which the program does in a thread
    looking = asyncio.create_task(look())
    await run(planned, "sh", "-c", "head -c 1000000000 /dev/zero | tr '\\0' 'x' | fold -w 80")
    looking.cancel()
    return longest * 1000, most - before


def tests(root: Path) -> None:
    """2,000 of them in 200 files, each with a folder of its own."""
    root.mkdir()
    for number in range(200):
        words = (f"def test_{n}(tmp_path):\n    assert not list(tmp_path.iterdir())\n" for n in range(10))
        (root / f"test_{number}.py").write_text("".join(words))


async def tested(root: Path) -> float:
    """How much longer 2,000 tests take in a view, as a ratio: the least of three, the two ways in turn."""
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0")
    made = plan(root)
    inside: list[float] = []
    outside: list[float] = []
    for _ in range(3):
        inside.append((await run(made, *argv)).seconds)
        outside.append((await Run().alone(FolderRunner(str(root)), argv, os.environ)).seconds)
    return min(inside) / min(outside)


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measured(root: Path) -> list[Figure]:
    small, large = root / "small", root / "large"
    tree(small, 1000)
    tree(large, MANY)
    tests(root / "tested")
    pending = [Seed(f"d{n}/f{n * 100}.txt", "file", b"pending\n" * 200) for n in range(10)]
    pending += [Seed(f"new/f{n}.txt", "file", b"pending\n" * 200) for n in range(40)]
    bare = await median(alone)
    few = await median(lambda: run(plan(small), "true"))
    many = await median(lambda: run(plan(large), "true"))
    seeded = await median(lambda: run(plan(small, seeds=pending), "true"))
    hidden = HiddenFiles(str(large))
    hidden.paths()
    looked = await median(lambda: asyncio.to_thread(hidden.paths))
    stops = [await stopped(small) for _ in range(5)]
    stall, grown = await flood(small)
    ratio = await tested(root / "tested")
    return [
        Figure("a view around `true`, over `true` alone, 1,000 files", few - bare, 60, "ms"),
        Figure(f"the same, {MANY:,} files", many - bare, 60, "ms"),
        Figure("50 pending files more", seeded - few, 30, "ms"),
        Figure(f"looking for secrets again, {MANY:,} files", looked, None, "ms"),
        Figure("from stop to the end, slowest of five", max(stops), 500, "ms"),
        Figure("longest stall while 1 GB is printed", stall, 16, "ms"),
        Figure("memory that this takes", grown, 20, "MB"),
        Figure("2,000 tests of pytest in a view, over outside", ratio, 1.1, "×"),
    ]


def main() -> None:
    with TemporaryDirectory(prefix="tui-agent-bench-") as folder:
        show(asyncio.run(measured(Path(os.path.realpath(folder)))))


if __name__ == "__main__":
    main()
