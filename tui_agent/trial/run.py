"""One command: its output is followed, a limit or the person may end it. Where it runs is a `Runner`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from tui_agent.trial.changed import Written
from tui_agent.trial.output import MOST, Output

#: Seconds between two words about the output.
TOLD_EVERY = 1 / 30
#: Bytes taken from the pipe at once.
_CHUNK = 1 << 16

Over = Literal["", "memory", "processes", "keyboard"]
#: "proposal": it ran on what is not what is proposed any more. "keyboard": it waited for one.
How = Literal["exit", "stopped", "time-out", "memory", "processes", "output", "proposal", "keyboard"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a runner's command ended.

    status: its exit status; minus the number of the signal that ended it.
    left: names of programs that it had left running, which were ended.
    over: "memory" or "processes" if it took more than it may, and was ended; "keyboard" if it waited for one.
    """

    status: int
    left: tuple[str, ...] = ()
    over: Over = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A command that ended, with its output and the files that it changed.

    status, left: as in `Ended`. how: the cause of the end; "exit" is the command's own. full: whether there was no room
    left to write. unread: a sentence if not all changed files are among its changes.
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


class Runner(Protocol):
    """A place in which commands run: a view, a copy of the folder, the folder itself.

    `async with` opens it and throws it away. Opening raises `NoView` if this machine has no such place, and OSError.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        """Start a command that prints to the descriptor `output`. Returns its number; raises OSError."""
        ...

    async def ended(self, number: int) -> Ended:
        """Wait for a command and all that it started."""
        ...

    def stop(self, number: int) -> None:
        """Interrupt a command, and kill it 0.3 s later."""
        ...

    async def with_changes(self, result: RunResult) -> RunResult:
        """The result with the files that the command changed, if they are thrown away with this place."""
        ...


class Run:
    """A command that runs. `stop` ends it within half a second; what it printed until then is kept."""

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

    async def alone(self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Run the command in a place of its own, which goes with it. Raises `NoView` and OSError."""
        async with runner:
            return await self.within(runner, argv, variables)

    async def within(self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Run the command in a place that is open."""
        ended, seconds = await self._follow(runner, argv, variables)
        how: How = self._stopping or ended.over or "exit"
        return await runner.with_changes(RunResult(ended.status, how, seconds, self.output, left=ended.left))

    async def _follow(
        self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]
    ) -> tuple[Ended, float]:
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
