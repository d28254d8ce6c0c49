"""One command in a view: its output is followed, a limit or the person may end it, and what it wrote is read."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.files.numbers import whole_number
from tui_agent.trial.changed import LayerReader, Read, Written
from tui_agent.trial.environment import NO_KEYBOARD
from tui_agent.trial.inside.commands import LOOK, waits_for_keyboard
from tui_agent.trial.kept import LentLayer
from tui_agent.trial.on_copy import mac_profile, make_copy
from tui_agent.trial.output import MOST, Output
from tui_agent.trial.outside import Ended, View
from tui_agent.trial.plan import ViewPlan

#: Seconds between two words about the output.
TOLD_EVERY = 1 / 30
#: Bytes taken from the pipe at once.
_CHUNK = 1 << 16
NOTHING = Read()
#: Seconds from an interrupt to the end.
INTERRUPTED = 0.3

#: "proposal": it ran on what is not what is proposed any more. "keyboard": it waited for one.
How = Literal["exit", "stopped", "time-out", "memory", "processes", "output", "proposal", "keyboard"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """A command that ended.

    status: its exit status; minus the number of a signal that ended it. how: what ended it; "exit" is its own end.
    left: names of programs that it left running, which were ended. full: whether there was no room left to write.
    unread: a sentence where not all that it wrote is among its changes.
    """

    status: int
    how: How
    seconds: float
    output: Output
    changes: tuple[Written, ...] = ()
    left: tuple[str, ...] = ()
    full: bool = False
    unread: str = ""

    @property
    def ok(self) -> bool:
        return self.status == 0 and self.how == "exit"


@dataclass(frozen=True, slots=True)
class LentToRun:
    """The layer of builds that a view is over; `ignored` are paths in folders of `kept.MARKED` that git ignores."""

    lent: LentLayer
    ignored: asyncio.Future[set[str]]

    def close(self) -> None:
        """Give the layer back."""
        self.ignored.cancel()
        self.lent.close()

    async def names(self, layers: int, plan: ViewPlan) -> tuple[str, ...]:
        """The folders that are kept."""
        ignored = {path.partition("/")[0] for path in await self.ignored}
        return await asyncio.to_thread(self.lent.names, layers, plan, ignored)


class Run:
    """A command that runs in a view. `stop` ends it within half a second; what it printed until then is kept."""

    def __init__(
        self,
        timeout: float | None = None,
        told: Callable[[Output], None] | None = None,
        begun: Callable[[], object] | None = None,
    ) -> None:
        """`told` is called while it prints, `begun` once when it was started; `timeout` is in seconds."""
        self.output = Output()
        self._timeout = timeout
        self._told = told
        self._begun = begun
        self._stopping: How | None = None
        self._wake = asyncio.Event()

    def stop(self, how: How = "stopped") -> None:
        self._stopping = self._stopping or how
        self._wake.set()

    async def in_view(
        self,
        plan: ViewPlan,
        argv: Sequence[str],
        variables: Mapping[str, str],
        keeping: LentToRun | None = None,
    ) -> RunResult:
        """Runs it in a view of its own; `keeping` has what builds keep of it. Raises `NoView`, and OSError where the
        disk does not take a copy."""
        if plan.on_copy:
            return await self._on_copy(plan, argv, variables)
        since = time.time()
        async with View(plan) as view, LayerReader() as reader:
            ended, seconds = await self._follow(_InView(view, argv, variables))
            await view.end()
            names = await keeping.names(view.layers, plan) if keeping else ()
            read = await reader.of_layer(view.layers, plan, since, names)
            result = self._result(ended, seconds, read, full=is_full(view.layers))
            if keeping and names and result.how == "exit" and not result.full:
                await asyncio.to_thread(keeping.lent.keep, view.layers, plan, names)
            return result

    async def joining(self, view: View, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Runs it in a view that is there; what it changed is for whoever knows what was changed before."""
        ended, seconds = await self._follow(_InView(view, argv, variables))
        return self._result(ended, seconds)

    async def in_folder(self, folder: str, argv: Sequence[str]) -> RunResult:
        """Runs it in the real folder, with the person's own environment: what it writes stays."""
        variables = {**os.environ, **NO_KEYBOARD}
        return self._result(*await self._follow(_InFolder(folder, argv, variables)))

    async def _on_copy(self, plan: ViewPlan, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        since = time.time()
        files = await asyncio.to_thread(make_copy, plan)
        async with LayerReader() as reader:
            if plan.isolated == "landlock":
                async with View(plan) as view:
                    ended, seconds = await self._follow(_InView(view, argv, variables))
            else:
                whole = ["/usr/bin/sandbox-exec", "-p", mac_profile(plan), *argv]
                ended, seconds = await self._follow(_InFolder(plan.root, whole, variables))
            return self._result(ended, seconds, await reader.of_copy(plan, files, since))

    def _result(self, ended: Ended, seconds: float, read: Read = NOTHING, *, full: bool = False) -> RunResult:
        how: How = self._stopping or ended.over or "exit"
        return RunResult(ended.status, how, seconds, self.output, read.written, ended.left, full, read.unread)

    async def _follow(self, command: _InView | _InFolder) -> tuple[Ended, float]:
        """How it ended, and after how many seconds."""
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        closed, last, due = asyncio.Event(), -TOLD_EVERY, None

        def tell() -> None:
            nonlocal last, due
            last, due = loop.time(), None
            if self._told is not None:
                self._told(self.output)

        def read() -> None:
            nonlocal due
            try:
                data = os.read(reading, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                loop.remove_reader(reading)
                closed.set()
                return
            self.output.add(data)
            if self.output.size > MOST:
                self.stop("output")
            if due is None:
                due = loop.call_at(max(last + TOLD_EVERY, loop.time()), tell)

        begun, limit = time.monotonic(), None
        try:
            try:
                await command.start(writing)
            finally:
                os.close(writing)
            if self._begun is not None:
                self._begun()
            loop.add_reader(reading, read)
            if self._timeout is not None:
                limit = loop.call_later(self._timeout, self.stop, "time-out")
            waiting = asyncio.ensure_future(command.ended())
            woken = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait({waiting, woken}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                command.stop()
            ended, seconds = await waiting, time.monotonic() - begun
            woken.cancel()
            # everything that could still write has ended: only what is in the pipe is to come
            with suppress(TimeoutError):
                await asyncio.wait_for(closed.wait(), 1.0)
            return ended, seconds
        finally:
            for timer in (due, limit):
                if timer is not None:
                    timer.cancel()
            loop.remove_reader(reading)
            os.close(reading)


@dataclass(slots=True)
class _InView:
    view: View
    argv: Sequence[str]
    variables: Mapping[str, str]
    number: int = 0

    async def start(self, output: int) -> None:
        self.number = self.view.run(self.argv, output, env=self.variables, cwd=self.view.plan.root)

    async def ended(self) -> Ended:
        return await self.view.ended(self.number)

    def stop(self) -> None:
        self.view.stop(self.number)


@dataclass(slots=True)
class _InFolder:
    """A command in a session of its own, so that what it starts can be ended with it."""

    folder: str
    argv: Sequence[str]
    variables: Mapping[str, str] | None = None
    process: asyncio.subprocess.Process | None = None

    async def start(self, output: int) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self.argv,
            cwd=self.folder,
            env=self.variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    async def ended(self) -> Ended:
        assert self.process is not None
        waiting, over = asyncio.ensure_future(self.process.wait()), False
        while not (await asyncio.wait([waiting], timeout=LOOK))[0]:
            for pid in filter(waits_for_keyboard, _descendants(self.process.pid)):
                over = True
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return Ended(await waiting, (), "keyboard" if over else "")

    def stop(self) -> None:
        self._signal(signal.SIGINT)
        asyncio.get_running_loop().call_later(INTERRUPTED, self._signal, signal.SIGKILL)

    def _signal(self, what: signal.Signals) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, what)


def _descendants(pid: int) -> list[int]:
    """A process and those that it started, on Linux."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                found += map(whole_number, Path(f"/proc/{one}/task/{task}/children").read_text().split())
        except OSError:
            continue  # it has ended
    return found


def is_full(layers: int) -> bool:
    """Whether there is no room left in the layers."""
    return os.fstatvfs(layers).f_bavail == 0
