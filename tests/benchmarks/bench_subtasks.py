"""Sub-tasks: the copies of a repository of 10,000 files that they work in."""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_index import longest_stall
from figures import Figure, show
from support.repositories import git

from tui_agent.workspace.workspace import Workspace

T = TypeVar("T")
FILES, AT_ONCE, ROUNDS = 10_000, 8, 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        show(asyncio.run(copies(Path(folder))))


async def copies(folder: Path) -> list[Figure]:
    repo = build(folder / "repo")
    began = time.perf_counter()
    git(repo, "worktree", "add", "-q", "--detach", str(folder / "theirs"), "HEAD")
    theirs = time.perf_counter() - began
    workspace = Workspace(repo, watched=False)
    workspace.start()
    await workspace.ready()
    while workspace.busy:  # noqa: ASYNC110 as a person would see it, from outside
        await asyncio.sleep(0.05)
    try:
        return [
            *await worktrees(workspace, folder / "copies", theirs),
            await plain(workspace, folder / "plain"),
        ]
    finally:
        await workspace.close()


async def worktrees(workspace: Workspace, folder: Path, theirs: float) -> list[Figure]:
    make, remove = workspace.copies.make, workspace.copies.remove
    snapshot, snapped = await timed(workspace.copies.snapshot())
    _, ahead = await timed(workspace.copies.prepare(folder))
    first, begun = await timed(make(folder / "first", snapshot))
    making, removing = [], []
    for number in range(ROUNDS):
        copy, seconds = await timed(make(folder / f"one{number}", snapshot))
        making.append(seconds)
        removing.append((await timed(remove(copy)))[1])
    at_once, together = 0.0, 0.0
    made = []

    async def eight() -> None:
        nonlocal at_once, together, made
        made, at_once = await timed(
            asyncio.gather(*(make(folder / f"t{n}", snapshot) for n in range(AT_ONCE)))
        )
        _, together = await timed(asyncio.gather(*map(remove, made)))

    stall, own = await longest_stall(eight)
    await remove(first)
    one, away = statistics.median(making), statistics.median(removing)
    return [
        _ms(f"snapshot of {FILES:,} files", snapped),
        _ms("what copies share, made beforehand", ahead, note=f"git worktree add: {theirs * 1000:.0f} ms"),
        _ms("the first work copy", begun),
        _ms(f"each further one, made, median of {ROUNDS}", one),
        _ms("  and removed", away),
        _ms("  both: what a sub-task waits for its copy", one + away, 500),
        _ms(f"{AT_ONCE} at once, made", at_once, note=f"{at_once / AT_ONCE * 1000:.0f} ms each"),
        _ms("  and removed", together, note=f"{together / AT_ONCE * 1000:.0f} ms each"),
        _ms("  longest stall meanwhile", stall, 50, note=f"{own * 1000:.1f} ms of it our own"),
    ]


async def plain(workspace: Workspace, folder: Path) -> Figure:
    copy, seconds = await timed(workspace.copies.make(folder, ""))
    await workspace.copies.remove(copy)
    return _ms("a plain copy, as without git", seconds)


def build(root: Path, files: int = FILES) -> Path:
    """A repository of that many small files, all in its first commit."""
    chance = random.Random(7)
    for number in range(files):
        file = root / f"package{number // 100}" / f"part{number % 10}" / f"module_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"value_{n} = {chance.random()}\n" for n in range(40)))
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "--all")
    git(root, "commit", "-q", "-m", "First")
    return root


async def timed(work: Awaitable[T]) -> tuple[T, float]:
    began = time.perf_counter()
    return await work, time.perf_counter() - began


def _ms(name: str, seconds: float, limit: float | None = None, note: str = "") -> Figure:
    return Figure(name, seconds * 1000, limit, " ms", note)


if __name__ == "__main__":
    main()
