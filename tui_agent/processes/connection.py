"""One process of a child, from start to exit, with its pending calls."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from tui_agent.errors import ChildFailed
from tui_agent.processes import serve, wire
from tui_agent.processes.environment import for_any
from tui_agent.processes.forked import ForkedProcess
from tui_agent.processes.wire import lines

Reply = wire.StreamItem | wire.CallResult | wire.CallFailed
#: Seconds until a child is signalled after its standard input was closed.
PATIENCE_SECONDS = 2.0
#: Seconds until a signalled child is killed.
INSIST_SECONDS = 0.5
LAST_WORDS_SECONDS = 0.5


class Connection:
    """A running child and its pending calls. The three callbacks are called on the loop."""

    def __init__(
        self,
        process: Process | ForkedProcess,
        name: str,
        stderr: deque[str],
        on_ready: Callable[[], None],
        on_event: Callable[[dict[str, Any]], None],
        on_death: Callable[[], None],
    ) -> None:
        self.process = process
        self.alive = True
        self._name = name
        self._log = logging.getLogger(f"tui_agent.child.{name}")
        self._stderr = stderr
        self._on_ready = on_ready
        self._on_event = on_event
        self._on_death = on_death
        self._waiting: dict[int, asyncio.Queue[Reply]] = {}
        self._last_id = 0
        self._listening = asyncio.create_task(self._listen(), name=f"{name}: replies")
        self._overhearing = asyncio.create_task(self._overhear(), name=f"{name}: standard error")

    async def call(self, method: str, params: dict[str, Any]) -> tuple[int, asyncio.Queue[Reply]]:
        """Sends a call. Its replies arrive in the returned queue, with a `Failure` if the child dies."""
        self._last_id += 1
        id, queue = self._last_id, asyncio.Queue[Reply]()
        line = wire.encode(wire.Call(id, method, params))
        self._waiting[id] = queue
        try:
            assert self.process.stdin is not None
            try:
                self.process.stdin.write(line)
                await self.process.stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                pass  # The process is exiting; `_listen` fails the pending calls.
        except BaseException:
            self.forget(id)
            raise
        return id, queue

    def forget(self, id: int) -> None:
        """Drop a pending call; cancels it in the child if it is still running."""
        if self._waiting.pop(id, None) is not None and self.alive and self.process.stdin is not None:
            self.process.stdin.write(wire.encode(wire.Cancel(id)))

    async def close(self) -> None:
        """Close standard input and wait for the child to exit, then terminate it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            await asyncio.wait([self._listening], timeout=PATIENCE_SECONDS)
            if not self._listening.done():
                self._signal(signal.SIGTERM)
                self._signal(signal.SIGCONT)  # A suspended child handles no other signal.
                await asyncio.wait([self._listening], timeout=INSIST_SECONDS)
        finally:
            if not self._listening.done():
                self._signal(signal.SIGKILL)
        await self._listening

    def _signal(self, number: int) -> None:
        """Signal the child's process group."""
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # The process has exited.

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        try:
            async for line in lines(self.process.stdout):
                self._heard(wire.from_child.decode(line))
        except ValueError as error:
            self._stderr.append(f"not understood: {error}")
        if self.process.returncode is None:
            try:
                await asyncio.wait_for(self.process.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        # Read standard error to its end, unless a surviving grandchild keeps it open
        await asyncio.wait([self._overhearing], timeout=LAST_WORDS_SECONDS)
        self._overhearing.cancel()
        self.alive = False
        self._log.info("%s", self.exit_reason().what)
        for id, queue in self._waiting.items():
            queue.put_nowait(wire.failure(id, self.exit_reason()))
        self._waiting.clear()
        self._on_death()

    def _heard(self, message: wire.FromChild) -> None:
        match message:
            case wire.Ready():
                self._on_ready()
            case wire.Announcement(event):
                self._on_event(event)
            case wire.StreamItem(id) if id in self._waiting:
                self._waiting[id].put_nowait(message)
            case wire.CallResult(id) | wire.CallFailed(id) if id in self._waiting:
                self._waiting.pop(id).put_nowait(message)

    def exit_reason(self) -> ChildFailed:
        status = self.process.returncode
        how = (
            f"was ended by signal {-status}"
            if status is not None and status < 0
            else f"ended with status {status}"
        )
        last = f" ({self._stderr[-1]})" if status and status > 0 and self._stderr else ""
        return ChildFailed(f"The {self._name} process {how}{last}", "try again: it restarts")

    async def _overhear(self) -> None:
        assert self.process.stderr is not None
        async for line in lines(self.process.stderr):
            text = line.decode(errors="replace")[:2000]
            self._stderr.append(text)
            self._log.info("%s", text)


def variables(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: the variables of every child, updated with `env`."""
    return {**for_any(), serve.PARENT: str(os.getpid()), **env}


async def spawn(module: str, env: Mapping[str, str]) -> Process:
    """Runs `python -m module` in a new session, so that Ctrl+C in the terminal does not reach it.

    `-P` keeps the working directory, which may be untrusted, off the child's import path.
    """
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=variables(env),
            start_new_session=True,
        )
    except OSError as error:
        raise ChildFailed(
            f"{module} cannot be started ({error.strerror})", "free some memory and try again"
        ) from error
