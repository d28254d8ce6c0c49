"""Figures of the index over 100,000 files and 50,000 that are ignored; run it as a program.

python tests/benchmarks/bench_index.py [FILES [IGNORED]]
"""

from __future__ import annotations

import asyncio
import gc
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.trees import run_git

from tui_agent.answers.plans import FileAction
from tui_agent.planning.built_in_planner import read_words
from tui_agent.planning.chain import completed, try_patterns
from tui_agent.workspace.index import Index
from tui_agent.workspace.workspace import Workspace

NAMES = "src app core user order client util parse config view model handler service auth data page schema"
WORDS = NAMES.split()
TICK = 0.001


def build(root: Path, files: int, ignored: int) -> None:
    """A repository of that size, half of it tracked."""
    random.seed(7)
    for number in range(files):
        folder = root.joinpath(
            *(f"{random.choice(WORDS)}{random.randrange(9)}" for _ in range(random.randrange(1, 4)))
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{random.choice(WORDS)}_{number}.{random.choice(['py', 'ts', 'md'])}").touch()
        if number == files // 2:
            run_git(root, "init", "-q")
            run_git(root, "add", "-A")
            run_git(root, "commit", "-q", "-m", "half")
    for number in range(ignored):
        folder = root / "node_modules" / f"m{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}.js").touch()
    (root / ".gitignore").write_text("node_modules/\n")


def listing_alone(root: Path) -> float:
    """Seconds of `git ls-files` on its own: the best of three."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


async def longest_stall(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The longest time for which the loop could not do anything else while `work` ran, in seconds.

    Then the same in seconds of processor time that this process took meanwhile: what is left of a stall when
    the machine has other things to do.
    """
    worst = own = 0.0
    task = asyncio.ensure_future(work())
    while not task.done():
        began, used = time.perf_counter(), time.process_time()
        await asyncio.sleep(TICK)
        worst = max(worst, time.perf_counter() - began - TICK)
        own = max(own, time.process_time() - used)
    await task
    return worst, own


async def index_figures(root: Path) -> tuple[Index, list[tuple[str, str, str]]]:
    alone = await asyncio.to_thread(listing_alone, root)
    workspace = Workspace(root)
    began = time.perf_counter()

    async def settle() -> None:
        workspace.start()
        await workspace.ready()
        nonlocal ready
        ready = time.perf_counter() - began
        await asyncio.sleep(1)
        while workspace.busy:  # noqa: ASYNC110 as a person would see it, from outside
            await asyncio.sleep(0.05)

    ready = 0.0
    stall, own = await longest_stall(settle)
    began = time.perf_counter()
    await workspace.refresh()
    again = time.perf_counter() - began
    await workspace.close()
    return workspace.index, [
        ("git ls-files on its own", f"{alone * 1000:.0f} ms", ""),
        (
            "index ready, the child's start included",
            f"{ready * 1000:.0f} ms",
            f"{ready / alone:.2f} x, <= 1.5 x",
        ),
        ("index listed again, deleted files told", f"{again * 1000:.0f} ms", f"{again / alone:.2f} x"),
        ("longest stall while indexing", f"{stall * 1000:.1f} ms", ""),
        ("  of it, processor time of our own", f"{own * 1000:.1f} ms", "<= 16 ms"),
    ]


def memory_figures(paths: list[str]) -> list[tuple[str, str, str]]:
    gc.collect()
    tracemalloc.start()
    index = Index([str(path.encode(), "utf-8") for path in paths])
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [(f"memory of {len(index):,} paths", f"{size / 2**20:.0f} MB", "<= 60 MB")]


async def chain_figures(index: Index) -> list[tuple[str, str, str]]:
    hit = index.paths[len(index) // 2].rpartition("/")[2]
    miss = ("a/b.py", "**/nothere.py", "src1/**/*nothere*.py", "**/{x,y}.*", "**/*nothere*")
    figures = []
    for name, patterns, limit in (
        ("chain of five, the first pattern hits", (f"**/{hit}", *miss[1:]), 20),
        ("chain of five, none hits", miss, 200),
    ):
        began = time.perf_counter()
        async for _ in try_patterns(FileAction(name, patterns), index):
            pass
        taken = time.perf_counter() - began
        figures.append((name, f"{taken * 1000:.1f} ms", f"<= {limit} ms"))
    began = time.perf_counter()
    await asyncio.to_thread(read_words, "Fix src/orders_client.py, parseConfig and all tests in src1", index)
    figures.append(("built-in plan", f"{(time.perf_counter() - began) * 1000:.1f} ms", ""))
    wrong = [FileAction(f"f{n}", (f"src/{word}Service.py", "**/*x*")) for n, word in enumerate(WORDS)]
    began = time.perf_counter()
    await asyncio.to_thread(completed, wrong, index)
    taken = time.perf_counter() - began
    figures.append((f"plan of {len(wrong)} actions completed", f"{taken * 1000:.1f} ms", "in a thread"))
    stall, own = await longest_stall(lambda: _try_all(wrong, index))
    figures.append((f"longest stall while {len(wrong)} chains miss", f"{stall * 1000:.1f} ms", ""))
    figures.append(("  of it, processor time of our own", f"{own * 1000:.1f} ms", "<= 16 ms"))
    return figures


async def _try_all(actions: list[FileAction], index: Index) -> None:
    for action in actions:
        async for _ in try_patterns(action, index):
            pass


def picker_figures(index: Index) -> list[tuple[str, str, str]]:
    began = time.perf_counter()
    index.warm()
    figures = [("picker made ready", f"{(time.perf_counter() - began) * 1000:.1f} ms", "in a thread")]
    worst, query = 0.0, "srcuserhandler"
    for length in range(1, len(query) + 1):
        began = time.perf_counter()
        index.fuzzy(query[:length])
        worst = max(worst, time.perf_counter() - began)
    figures.append((f"picker, slowest of {len(query)} keys", f"{worst * 1000:.1f} ms", "<= 20 ms"))
    began = time.perf_counter()
    index.nearest("hadnler_500.py")
    figures.append(("nearest names", f"{(time.perf_counter() - began) * 1000:.1f} ms", "in a thread"))
    return figures


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    ignored = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        build(root, files, ignored)
        index, figures = asyncio.run(index_figures(root))
    figures += memory_figures(list(index.paths))
    figures += asyncio.run(chain_figures(index))
    figures += picker_figures(index)
    print(f"{files:,} files, {ignored:,} ignored")
    for name, value, limit in figures:
        print(f"  {name:<42} {value:>12}   {limit}")


if __name__ == "__main__":
    main()
