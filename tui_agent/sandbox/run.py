"""Runs one command in a `Runner`; ends it at a limit or on request."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from tui_agent.sandbox.layer_changes import ChangedPath
from tui_agent.sandbox.output import MOST, Output

TOLD_EVERY = 1 / 30
#: Bytes per read.
_CHUNK = 1 << 16

Over = Literal["", "memory", "processes", "keyboard", "place"]
#: "proposal": the proposal changed during the run. "keyboard": the command waited for input. "place": the place could
#: not be reached, or was lost.
How = Literal["exit", "stopped", "time-out", "memory", "processes", "output", "proposal", "keyboard", "place"]


@dataclass(frozen=True, slots=True)
class RunnerResult:
    """- status: exit status, or minus the signal's number.
    - left: names of killed background programs.
    - over: "memory" or "processes" for an exceeded limit; "keyboard" if the command waited for input; "place" if the
      place could not be reached, or was lost."""

    status: int
    left: tuple[str, ...] = ()
    over: Over = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A command's output and changed files.

    - status, left: as in `RunnerResult`.
    - how: cause of the end; "exit" if it exited itself.
    - full: no space was left for writes.
    - unread: a sentence if the changes are incomplete.
    """

    status: int
    how: How
    seconds: float
    output: Output
    changes: tuple[ChangedPath, ...] = ()
    left: tuple[str, ...] = ()
    full: bool = False
    unread: str = ""

    @property
    def ok(self) -> bool:
        return self.status == 0 and self.how == "exit"


class Runner(Protocol):
    """A place for commands: a view, a copy of the folder, or the folder.

    An async context manager; leaving it discards the place. Entering raises OSError, and `NoView` without
    system support.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        """Start a command that prints to the descriptor `output`; returns its number. Raises OSError."""
        ...

    async def ended(self, number: int) -> RunnerResult:
        """Waits for a command and all descendants."""
        ...

    def stop(self, number: int) -> None:
        """Interrupts; kills after 0.3 s."""
        ...

    async def with_changes(self, result: RunResult) -> RunResult:
        """Adds the changed files if the place discards writes."""
        ...


class Run:
    """`stop` ends the command within half a second and keeps its output."""

    def __init__(
        self,
        timeout: float | None = None,
        told: Callable[[Output], None] | None = None,
        begun: Callable[[], object] | None = None,
    ) -> None:
        """`told` is called on output, `begun` once after the start; `timeout` in seconds."""
        self.output = Output()
        self._timeout = timeout
        self._told = told
        self._begun = begun
        self._stopping: How | None = None
        self._wake = asyncio.Event()

    def stop(self, how: How = "stopped") -> None:
        self._stopping = self._stopping or how
        self._wake.set()

    async def alone(self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Runs in its own place, which is then discarded. Raises `NoView` and OSError."""
        async with runner:
            return await self.within(runner, argv, variables)

    async def within(self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Runs in an open place."""
        ended, seconds = await self._follow(runner, argv, variables)
        how: How = self._stopping or ended.over or "exit"
        return await runner.with_changes(RunResult(ended.status, how, seconds, self.output, left=ended.left))

    async def _follow(
        self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]
    ) -> tuple[RunnerResult, float]:
        """Returns the result and the seconds."""
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
                number = await runner.start(argv, variables, writing)
            finally:
                os.close(writing)
            if self._begun is not None:
                self._begun()
            loop.add_reader(reading, read)
            if self._timeout is not None:
                limit = loop.call_later(self._timeout, self.stop, "time-out")
            waiting = asyncio.ensure_future(runner.ended(number))
            woken = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait({waiting, woken}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                runner.stop(number)
            ended, seconds = await waiting, time.monotonic() - begun
            woken.cancel()
            # All writers have exited: only buffered output is left.
            with suppress(TimeoutError):
                await asyncio.wait_for(closed.wait(), 1.0)
            return ended, seconds
        finally:
            for timer in (due, limit):
                if timer is not None:
                    timer.cancel()
            loop.remove_reader(reading)
            os.close(reading)
