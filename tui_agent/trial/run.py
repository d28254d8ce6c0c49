"""One command in a view: its output is followed, a limit or the person may end it, and what it wrote is read."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from tui_agent.trial.changed import Written, written
from tui_agent.trial.output import MOST, Output
from tui_agent.trial.outside import Ended, View
from tui_agent.trial.plan import Plan

#: Seconds between two words about the output.
TOLD_EVERY = 1 / 30
#: Bytes taken from the pipe at once.
_CHUNK = 1 << 16

How = Literal["exit", "stopped", "time-out", "memory", "processes", "output"]


@dataclass(frozen=True, slots=True)
class Result:
    """A command that ended.

    status: its exit status; minus the number of a signal that ended it. how: what ended it; "exit" is its own end.
    left: names of programs that it left running, which were ended. full: whether there was no room left to write.
    """

    status: int
    how: How
    seconds: float
    output: Output
    changes: tuple[Written, ...] = ()
    left: tuple[str, ...] = ()
    full: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0 and self.how == "exit"


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
        self._wake: asyncio.Event | None = None

    def stop(self, how: How = "stopped") -> None:
        self._stopping = self._stopping or how
        if self._wake is not None:
            self._wake.set()

    async def in_view(self, plan: Plan, argv: Sequence[str], variables: Mapping[str, str]) -> Result:
        """Runs it in a view of its own. Raises `NoView`."""
        self._wake = asyncio.Event()
        since = time.time()
        async with View(plan) as view:
            begun = time.monotonic()
            ended = await self._follow(view, argv, variables)
            seconds = time.monotonic() - begun
            await view.end()
            changes, full = await asyncio.to_thread(_read, view.layers, plan, since)
        how: How = self._stopping or ended.over or "exit"
        return Result(ended.status, how, seconds, self.output, changes, ended.left, full)

    async def _follow(self, view: View, argv: Sequence[str], variables: Mapping[str, str]) -> Ended:
        assert self._wake is not None
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(writing, True)
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

        try:
            number = view.run(argv, writing, env=variables, cwd=view.plan.workspace)
            os.close(writing)
            if self._begun is not None:
                self._begun()
            loop.add_reader(reading, read)
            if self._timeout is not None:
                loop.call_later(self._timeout, self.stop, "time-out")
            waiting = asyncio.ensure_future(view.ended(number))
            woken = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait({waiting, woken}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                view.stop(number)
            ended = await waiting
            woken.cancel()
            # everything that could still write has ended: only what is in the pipe is to come
            with suppress(TimeoutError):
                await asyncio.wait_for(closed.wait(), 1.0)
            return ended
        finally:
            if due is not None:
                due.cancel()
            loop.remove_reader(reading)
            os.close(reading)


def _read(layers: int, plan: Plan, since: float) -> tuple[tuple[Written, ...], bool]:
    """What was written to the workspace's layer, and whether the layers are full."""
    space = os.fstatvfs(layers)
    layer = os.open(f"{len(plan.overlays) - 1}/u", os.O_RDONLY | os.O_DIRECTORY, dir_fd=layers)
    try:
        return tuple(written(layer, plan.workspace, plan.seeds, since)), space.f_bavail == 0
    finally:
        os.close(layer)
