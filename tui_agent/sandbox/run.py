"""Runs commands in a `Runner` or the real folder, to a limit or a stop; keeps the head and tail of their
output.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from tui_agent.context.blocks import head_and_tail
from tui_agent.files.numbers import whole_number
from tui_agent.sandbox.inside.main import LOOK, waits_for_keyboard
from tui_agent.sandbox.layer_changes import ChangedPath
from tui_agent.sandbox.view_plan import MEGABYTE

HEAD, TAIL = 5 * MEGABYTE, 5 * MEGABYTE
#: Commands with more output are terminated.
MOST = 1024 * MEGABYTE
#: Bytes shown, half from each end.
_LOOKED_AT = 256_000
#: An unterminated sequence with text (a title, a link) ends at its line.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\n\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x80-\x9f]"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


class Output:
    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._in_tail += len(data)
            while self._in_tail - len(self._tail[0]) >= TAIL:
                self._in_tail -= len(self._tail.popleft())

    @property
    def cut(self) -> int:
        """Dropped bytes."""
        return self.size - len(self._head) - self._in_tail

    def content(self) -> bytes:
        """Includes a line that states the missing bytes."""
        tail = b"".join(self._tail)
        if not self.cut:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n[{self.cut:,} bytes are not kept]\n".encode() + tail

    def ends(self, size: int) -> tuple[bytes, int]:
        """Returns `size` bytes, half from each end, with a line about the omission, and the number of
        omitted lines.
        """
        kept = len(self._head) + self._in_tail
        if kept <= size:
            return self.content(), 0
        # Copying ten megabytes would block other threads.
        head, pieces, wanted = bytes(self._head[: size // 2]), deque[bytes](), size // 2
        for piece in (*reversed(self._tail), self._head):
            pieces.appendleft(bytes(piece[-wanted:]))
            wanted -= len(pieces[0])
            if not wanted:
                break
        tail = b"".join(pieces)
        head = head[: head.rfind(b"\n") + 1] or head
        tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail[:-1] else tail
        lines = self._head.count(b"\n") + sum(piece.count(b"\n") for piece in self._tail)
        left = max(0, lines - head.count(b"\n") - tail.count(b"\n"))
        missing = f"{left:,} lines" if left > 1 else f"{kept - len(head) - len(tail):,} bytes"
        return head.removesuffix(b"\n") + f"\n[{missing} left out]\n".encode() + tail, left

    def last_line(self) -> str:
        end = b"".join([bytes(self._head[-4096:]), *list(self._tail)[-2:]])[-4096:]
        lines = [line for line in plain(end.decode("utf-8", "replace")).splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def printed(output: Output, letters: int) -> tuple[str, int, str]:
    """Returns head and tail in `letters` characters, the number of omitted lines, and the same text with
    colours ("" if none). Blocking, briefly.
    """
    content, left = output.ends(_LOOKED_AT)
    text = content.decode("utf-8", "replace")
    shown, cut = head_and_tail(plain(text), letters)
    coloured, _ = head_and_tail(plain(text, colours=True), 2 * letters)
    return shown, cut + left, coloured if "\x1b[" in coloured else ""


def plain(text: str, *, colours: bool = False) -> str:
    """Returns the text as a terminal would finally show it, without escape sequences (except `colours`),
    overwritten and erased text.
    """
    text = _ESCAPES.sub(lambda found: found[0] if colours and _COLOUR.fullmatch(found[0]) else "", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(map(_last_state, text.replace("\r\n", "\n").split("\n")))
    return text.replace("\x00", "").replace("\x07", "")


def _last_state(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    line = parts[-1] if parts else ""
    if "\b" not in line:
        return line
    shown: list[str] = []
    for letter in line:
        if letter != "\b":
            shown.append(letter)
        elif shown:
            shown.pop()
    return "".join(shown)


TOLD_EVERY = 1 / 30
_CHUNK = 1 << 16

Over = Literal["", "memory", "processes", "keyboard", "place"]
#: "proposal": the proposal changed during the run. "keyboard": the command waited for input. "place": the
#: place was unreachable or lost.
How = Literal["exit", "stopped", "time-out", "memory", "processes", "output", "proposal", "keyboard", "place"]


@dataclass(frozen=True, slots=True)
class RunnerResult:
    """- status: exit status, or minus the signal's number.
    - left: names of killed background programs.
    - over: as in `How`, or "".
    """

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
        """Starts a command that prints to the descriptor `output`; returns its number. Raises OSError."""
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
    """`stop` ends the command within half a second."""

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
        """Runs in its own place, then discards it. Raises `NoView` and OSError."""
        async with runner:
            return await self.within(runner, argv, variables)

    async def within(self, runner: Runner, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
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
                async with asyncio.timeout(1.0):
                    await closed.wait()
        finally:
            for timer in (due, limit):
                if timer is not None:
                    timer.cancel()
            loop.remove_reader(reading)
            os.close(reading)
        how: How = self._stopping or ended.over or "exit"
        return await runner.with_changes(RunResult(ended.status, how, seconds, self.output, left=ended.left))


INTERRUPTED = 0.3


class FolderRunner:
    """Each command has its own process session, so its children can be killed with it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def start(self, argv: Sequence[str], variables: Mapping[str, str], output: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self._folder,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self._processes[process.pid] = process
        return process.pid

    async def ended(self, number: int) -> RunnerResult:
        waiting, over = asyncio.ensure_future(self._processes[number].wait()), False
        while not (await asyncio.wait([waiting], timeout=LOOK))[0]:
            for pid in filter(waits_for_keyboard, _descendants(number)):
                over = True
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return RunnerResult(await waiting, (), "keyboard" if over else "")

    def stop(self, number: int) -> None:
        _signal(number, signal.SIGINT)
        asyncio.get_running_loop().call_later(INTERRUPTED, _signal, number, signal.SIGKILL)

    async def with_changes(self, result: RunResult) -> RunResult:
        return result


def _signal(session: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, what)


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                found += map(whole_number, Path(f"/proc/{one}/task/{task}/children").read_text().split())
        except OSError:
            continue
    return found
