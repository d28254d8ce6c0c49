"""Starts `tui-agent worker` in a place of kind `command`, and carries its bytes."""

from __future__ import annotations

import asyncio
import secrets

from tui_agent import __version__
from tui_agent.errors import PlaceLost
from tui_agent.places.runner import MOST_BEFORE, Marks, PlaceRunner, end_soon, ended

#: A shell without a login lacks the folder of programs that pip and pipx install for one user.
COMMAND = 'PATH="$PATH:$HOME/.local/bin" exec tui-agent worker'
_NOT_FOUND = 127


class ProcessChannel:
    """The standard streams of a worker, as a `Channel`. Its copy of the contents is that of `runner`."""

    def __init__(self, runner: PlaceRunner, name: str) -> None:
        self._runner, self._name = runner, name
        self._process: asyncio.subprocess.Process | None = None
        self._marks = Marks("")
        self._said = bytearray()
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises `PlaceLost`."""
        try:
            await self._start()
        except OSError as error:
            raise PlaceLost(f"{self._name} cannot be reached ({error.strerror})", self._try()) from error

    async def _start(self) -> None:
        self._marks = Marks(name := secrets.token_hex(8))
        self._process = await self._runner.process(name, COMMAND, reads=True)
        self._listening = asyncio.create_task(self._listen(self._process), name="worker: standard error")

    async def send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def receive(self) -> bytes:
        while True:
            assert self._process is not None and self._process.stdout is not None
            data = await self._process.stdout.read(1 << 18)
            if found := self._marks.feed(data):
                return found
            if data:
                continue
            await ended(self._process)
            if self._listening is not None:
                await asyncio.wait([self._listening], timeout=1.0)
            if not self._marks.absent:
                return b""
            await self._runner.bring_again()
            await self._start()

    async def close(self) -> None:
        process = self._process
        if process is not None:
            if process.returncode is None:
                end_soon(process)
            await ended(process)
        if self._listening is not None:
            self._listening.cancel()
        try:
            if process is not None and process.returncode == 0:
                await self._runner.settle()
        finally:
            await self._runner.remove()

    def reason(self) -> PlaceLost:
        status = self._marks.status
        if status == _NOT_FOUND:
            return PlaceLost(
                f"tui-agent is not installed in {self._name}", f"install tui-agent {__version__} there"
            )
        text = bytes(self._said).strip() or (b"" if self._marks.begun else bytes(self._marks.before).strip())
        line = text.decode("utf-8", "replace").rpartition("\n")[2][:300]
        how = "ended early" if self._marks.begun else "could not be started"
        return PlaceLost(f"The worker in {self._name} {how}{f' ({line})' if line else ''}", self._try())

    def _try(self) -> str:
        return f"try `tui-agent places test {self._name}`"

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(1 << 16):
            self._said += data
            del self._said[: max(0, len(self._said) - MOST_BEFORE)]
