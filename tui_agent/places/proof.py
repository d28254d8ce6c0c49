"""Tests a place: connection, copy of the folder, returned files, and stop of a command.

For a cluster, starts and stops workers of sub-tasks.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent import __version__
from tui_agent.errors import PlaceLost, SessionError, TuiAgentError
from tui_agent.files.private import make_private
from tui_agent.places.contents import contents_of
from tui_agent.places.dask_place import Cluster, DaskChannel
from tui_agent.places.far_copy import FarCopy
from tui_agent.places.kept_folder import KeptFolder
from tui_agent.places.link import EventHappened, Link, TextStored
from tui_agent.places.place import CommandPlace, processes_of
from tui_agent.places.runner import ASKED, PlaceRunner
from tui_agent.sandbox.run import Run, RunResult

#: Seconds for one command, and bytes of the file that shows the speed.
PATIENCE, SIZE = 120.0, 4 << 20
_FACTS = """\
uname -sm; for one in setsid tar rsync find comm; do command -v $one >/dev/null && echo $one; done
[ -d /proc/self ] && echo /proc"""
_NEEDED = ("tar", "find", "comm")


class ProofStep(Struct, frozen=True):
    """`remedy` is for a failed or slow step."""

    name: str
    ok: bool
    seconds: float
    words: str
    remedy: str = ""


@dataclass
class PlaceProof:
    """`parent` gets a small folder. `environment` and the folder `root` are those of the program that reaches the
    place: compose finds its file in `root`."""

    place: CommandPlace
    parent: Path
    environment: Mapping[str, str]
    root: str

    async def steps(self) -> AsyncGenerator[ProofStep, None]:
        """Yields each step as it ends; the first failed one is the last."""
        await asyncio.to_thread(make_private, self.parent)
        with tempfile.TemporaryDirectory(dir=self.parent) as folder:
            self._folder = Path(folder, "folder")
            await asyncio.to_thread(self._folder.mkdir)
            await asyncio.to_thread(Path(self._folder, "given.txt").write_text, "as proposed\n")
            async for done in _until_failed(
                reach=self._reach, run=self._run, stop=self._stop, speed=self._speed
            ):
                yield done

    async def _command(self, command: str, run: Run | None = None) -> RunResult:
        paths = [path.name for path in self._folder.iterdir()]
        contents = await asyncio.to_thread(contents_of, str(self._folder), paths, ())
        copy = (
            FarCopy(self.place, self.parent / "far", _nothing, self.environment, _nothing)
            if self.place.is_far
            else KeptFolder(self.parent / "here", _nothing)
        )
        runner = PlaceRunner(self.place, copy, self.environment, self.root)
        try:
            await runner.open(contents)
        except BaseException:
            await runner.remove()
            raise
        result = await (run or Run(PATIENCE)).alone(runner, ["sh", "-c", command], {})
        if result.how == "place":
            said = result.output.content().decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
            raise SessionError(
                f"The place did not run a command ({said})" if said else "The place did not run a command",
                f"try `run` of {self.place.name} in a shell",
            )
        if result.how == "time-out":
            raise SessionError(f"No answer within {PATIENCE:.0f} s", "see whether the engine asks a question")
        return result

    async def _reach(self) -> ProofStep:
        begun = time.monotonic()
        result = await self._command(_FACTS)
        system, *found = result.output.content().decode("utf-8", "replace").split("\n")
        lacks = [name for name in _NEEDED if self.place.is_far and name not in found]
        remedy = ""
        if self.place.settings.copy == "rsync" and "rsync" not in found:
            remedy = "an archive is sent, because rsync is missing there"
        elif "/proc" not in found:
            remedy = (
                "a program that leaves its process group can survive a stop, because /proc is missing there"
            )
        words = f"{system}; {', '.join(filter(None, found))}"
        if lacks:
            words, remedy = f"{', '.join(lacks)} missing there", 'install them, or write copy = "mount"'
        return ProofStep("reach", not lacks, time.monotonic() - begun, words, remedy)

    async def _run(self) -> ProofStep:
        begun, token = time.monotonic(), secrets.token_hex(4)
        result = await self._command(f"cat given.txt; echo {token} > written.txt; exit 7")
        took = time.monotonic() - begun
        written = {change.path: change.after for change in result.changes}
        if result.output.content() != b"as proposed\n":
            return ProofStep(
                *("run", False, took, "the command did not find the copy in its working folder"),
                "mount {view} on the working folder of the place, such as -v {view}:/app -w /app",
            )
        if result.status != 7:
            said = f"the exit status was {result.status} instead of 7"
            return ProofStep("run", False, took, said, "let `run` return the status of the command")
        if written.get("written.txt") != f"{token}\n".encode():
            said = f"the file that it wrote did not return {result.unread}".rstrip()
            return ProofStep("run", False, took, said, "let the place write into {view}, with your user id")
        again = await self._command("test ! -e written.txt")
        if again.status:
            said = "the file that an earlier command wrote is still there"
            return ProofStep("run", False, took, said, "remove it, and have the place write as you")
        return ProofStep("run", True, took, "output, exit status and written files return")

    async def _stop(self) -> ProofStep:
        number = f"9{os.getpid()}{secrets.randbelow(1000)}"
        printed = asyncio.Event()
        run = Run(PATIENCE, lambda output: printed.set() if b"begun" in output.content() else None)
        command = f"trap '' TERM; sleep {number} & echo begun; sleep {number}"
        running = asyncio.create_task(self._command(command, run))
        await asyncio.wait([running, asyncio.create_task(printed.wait())], return_when="FIRST_COMPLETED")
        begun = time.monotonic()
        run.stop()
        result = await running
        took = time.monotonic() - begun
        if result.how != "stopped":
            return ProofStep("stop", False, took, f"the command ended before the stop: {result.how}")
        look = f"grep -las 'sleep.{number[:-1]}[{number[-1]}]' /proc/[0-9]*/cmdline"
        if (await self._command(look)).output.content().strip():
            remedy = "keep standard input open, such as -i of docker run and kubectl exec"
            return ProofStep("stop", False, took, "processes of the stopped command are left", remedy)
        slow = took > ASKED + 0.5
        remedy = "keep standard input open (-i), then a stop takes half a second" if slow else ""
        return ProofStep("stop", True, took, "nothing is left", remedy)

    async def _speed(self) -> ProofStep:
        begun = time.monotonic()
        await self._command("true")
        each = time.monotonic() - begun
        if not self.place.is_far:
            return ProofStep("speed", True, each, f"{each:.2f} s for an empty command")
        await asyncio.to_thread(Path(self._folder, "large").write_bytes, secrets.token_bytes(SIZE))
        begun = time.monotonic()
        await self._command("true")
        sent = max(time.monotonic() - begun - each, 0.001)
        words = f"{each:.2f} s for an empty command, {SIZE / 1e6 / sent:.1f} MB/s"
        return ProofStep("speed", True, each, words)


class ClusterProof:
    def __init__(self, name: str, address: str) -> None:
        self._cluster = Cluster(name, address)

    async def steps(self) -> AsyncGenerator[ProofStep, None]:
        try:
            async for done in _until_failed(
                reach=self._reach, run=self._run, stop=self._stop, speed=self._speed
            ):
                yield done
        finally:
            await self._cluster.close()

    async def _reach(self) -> ProofStep:
        begun = time.monotonic()
        client = await self._cluster.client()
        workers: dict[str, int] = await client.nthreads()
        words = f"{len(workers)} machines or processes, {sum(workers.values())} at the same time"
        remedy = "" if workers else "start workers with `dask worker` and the address of the scheduler"
        return ProofStep("reach", bool(workers), time.monotonic() - begun, words, remedy)

    async def _run(self) -> ProofStep:
        begun = time.monotonic()
        _, link = await self._worker()
        await link.close()
        words = f"tui-agent {__version__} starts a worker there"
        return ProofStep("run", True, time.monotonic() - begun, words)

    async def _stop(self) -> ProofStep:
        channel, link = await self._worker()
        begun = time.monotonic()
        await link.close()
        took = time.monotonic() - begun
        client = await self._cluster.client()
        if any((await client.run(processes_of, channel.start)).values()):
            return ProofStep("stop", False, took, "processes of a stopped worker are left", "end them there")
        return ProofStep("stop", True, took, "nothing is left")

    async def _speed(self) -> ProofStep:
        begun = time.monotonic()
        _, link = await self._worker()
        each = time.monotonic() - begun
        try:
            piece = msgspec.to_builtins(await asyncio.to_thread(secrets.token_bytes, SIZE))
            begun = time.monotonic()
            await link.call("unpack", {"piece": piece})
            sent = max(time.monotonic() - begun, 0.001)
        finally:
            await link.close()
        words = f"{each:.2f} s for a worker, {SIZE / 1e6 / sent:.1f} MB/s"
        return ProofStep("speed", True, each, words)

    async def _worker(self) -> tuple[DaskChannel, Link]:
        channel = DaskChannel(self._cluster)
        await channel.open()
        link = Link(channel, {}, _drop)
        try:
            async with asyncio.timeout(PATIENCE):
                await link.greeted()
        except TimeoutError as error:
            await link.close()
            why = f"No worker started within {PATIENCE:.0f} s"
            raise PlaceLost(why, "see whether all of the cluster are busy") from error
        except BaseException:
            await link.close()
            raise
        return channel, link


async def _until_failed(**steps: Callable[[], Awaitable[ProofStep]]) -> AsyncGenerator[ProofStep, None]:
    for name, step in steps.items():
        begun = time.monotonic()
        try:
            done = await step()
        except (TuiAgentError, OSError) as error:
            remedy = error.remedy if isinstance(error, TuiAgentError) else ""
            words = error.what if isinstance(error, TuiAgentError) else str(error)
            done = ProofStep(name, False, time.monotonic() - begun, words, remedy)
        yield done
        if not done.ok:
            return


async def _nothing(_: Sequence[str]) -> set[str]:
    return set()


async def _drop(_: EventHappened | TextStored) -> None:
    """A worker without a sub-task sends none."""
