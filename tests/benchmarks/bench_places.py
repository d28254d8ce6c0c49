"""Places: what a command costs beyond the engine's own start, and a tree of 10,000 files on a host."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, show
from support.places import IMAGE, container_words
from support.ssh_server import PROGRAM, far_host

from tui_agent.places.contents import contents_of
from tui_agent.places.far_copy import FarCopy
from tui_agent.places.kept_folder import KeptFolder
from tui_agent.places.place import CommandPlace, engine_environment, place_of
from tui_agent.places.runner import PlaceRunner
from tui_agent.sandbox.run import Run
from tui_agent.settings.schema import PlaceSettings

TIMES, FILES = 9, 10_000


async def nothing(_: Sequence[str]) -> set[str]:
    return set()


def tree(root: Path, count: int) -> list[str]:
    paths = [f"d{number // 100}/f{number}.txt" for number in range(count)]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x" * 500)
    return paths


async def prepared(
    place: CommandPlace, parent: Path, root: Path, paths: list[str]
) -> tuple[PlaceRunner, float]:
    """A runner with the contents in place, and the seconds that this took."""
    environment = engine_environment(os.environ)
    begun = time.perf_counter()
    found = await asyncio.to_thread(contents_of, str(root), paths, ())
    far = FarCopy(place, parent, nothing, environment, nothing)
    runner = PlaceRunner(place, far if place.is_far else KeptFolder(parent, nothing), environment, str(root))
    await runner.open(found)
    return runner, time.perf_counter() - begun


async def bare(words: Sequence[str]) -> float:
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*words, stdin=subprocess.DEVNULL)
    await process.wait()
    return time.perf_counter() - begun


def alone(root: Path, target: Path) -> str:
    """The seconds of tar for the same files, which the disk of the place needs in any case."""
    target.mkdir()
    begun = time.perf_counter()
    with subprocess.Popen(["tar", "-cf", "-", "-C", str(root), "."], stdout=subprocess.PIPE) as packing:
        subprocess.run(["tar", "-xpof", "-", "-C", str(target)], stdin=packing.stdout, check=True)
    return f"tar alone {time.perf_counter() - begun:.2f} s"


async def whole(place: CommandPlace, parent: Path, root: Path, paths: list[str]) -> float:
    """Seconds of a command that does nothing, with its copy and the look for written files."""
    begun = time.perf_counter()
    runner, _ = await prepared(place, parent, root, paths)
    result = await Run().alone(runner, ["sh", "-c", "true"], {})
    assert result.ok, result
    return time.perf_counter() - begun


async def container(folder: Path) -> list[Figure]:
    (folder / "image").mkdir()
    words, why = container_words(folder / "image")
    if why:
        print(f"no container: {why}")
        return []
    root = folder / "small"
    paths = tree(root, 100)
    run = [*words, "-i", "-v", "{view}:/app", "-w", "/app", IMAGE]
    place = place_of(PlaceSettings("box", " ".join([*run, "{command}"])))
    command = [word.replace("{view}", str(root)) for word in run] + ["true"]
    await whole(place, folder / "box", root, paths)
    pairs = [(await bare(command), await whole(place, folder / "box", root, paths)) for _ in range(TIMES)]
    more = statistics.median(ours - alone for alone, ours in pairs) * 1000
    note = f"{statistics.median(alone for alone, _ in pairs) * 1000:.0f} ms alone, {TIMES} pairs"
    return [Figure("a command in a container, beyond its start", more, 50, " ms", note)]


async def host(folder: Path) -> list[Figure]:
    if not PROGRAM:
        print("no host: sshd is not installed")
        return []
    figures = []
    root = folder / "large"
    paths = tree(root, FILES)
    with far_host(folder / "far", folder / "home") as far:
        os.environ["PATH"] = f"{far.folder / 'near'}:{os.environ['PATH']}"
        for copy in ("bundle", "rsync"):
            place = place_of(PlaceSettings("host", "ssh far {command}", copy=copy))
            runner, first = await prepared(place, folder / copy, root, paths)
            await runner.remove()
            again = []
            for _ in range(TIMES):
                runner, seconds = await prepared(place, folder / copy, root, paths)
                await runner.remove()
                again.append(seconds)
            figures += [
                Figure(
                    f"{FILES:,} files to a host by {copy}, first",
                    first,
                    1,
                    " s",
                    alone(root, folder / f"bare {copy}"),
                ),
                Figure(f"{FILES:,} unchanged files, again", statistics.median(again), 0.1, " s"),
            ]
        pairs = [
            (await bare(["ssh", "far", "true"]), await whole(place, folder / copy, root, paths))
            for _ in range(TIMES)
        ]
        more = statistics.median(ours - alone for alone, ours in pairs) * 1000
        note = f"{statistics.median(alone for alone, _ in pairs) * 1000:.0f} ms for `ssh true`, with written files"
        figures.append(Figure("a command on a host, beyond ssh itself", more, None, " ms", note))
    return figures


async def main() -> None:
    with TemporaryDirectory() as folder:
        show([*await container(Path(folder)), *await host(Path(folder))])


if __name__ == "__main__":
    asyncio.run(main())
