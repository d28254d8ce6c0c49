"""A child process that speaks JSON lines, as its parent uses it: ask, stream, cancel, restart."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from tui_agent.errors import ChildFailed
from tui_agent.processes import wire
from tui_agent.processes.connection import Connection, spawn, variables
from tui_agent.processes.forked import ProcessCopy, adopt, can_fork, fork

ChildState = Literal["idle", "starting", "ready", "failed", "closed"]
MOST_STARTS = 5
WITHIN_SECONDS = 60.0
STDERR_LINES = 200


class ChildProcess:
    """`python -m module`, started by the first use or by `start()`, ended by `close()` or with this process.

    `name` is what a person calls it ("model"). `on_state` and `on_event` are called on the loop and must not
    raise. Belongs to the event loop that first uses it.
    """

    def __init__(
        self,
        module: str,
        *,
        name: str = "",
        env: Mapping[str, str] | None = None,
        on_state: Callable[[ChildState], None] | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.state: ChildState = "idle"
        self.name = name or module
        self._module = module
        #: What the children to come get besides what any child needs.
        self.environment = dict(env or {})
        self._on_state = on_state or (lambda state: None)
        self._on_event = on_event or (lambda event: None)
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._connection: Connection | None = None
        self._forked: ProcessCopy | None = None
        self._starting = asyncio.Lock()

    def listen(self, on_state: Callable[[ChildState], None]) -> None:
        """Say who is told of its state from now on."""
        self._on_state = on_state

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._connection.process.pid if self._connection and self._connection.alive else None

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines that the child wrote to its standard error, over all its lives."""
        return tuple(self._stderr)

    def fork(self) -> None:
        """Begin its first life as a copy of this process, where that works: `start`, which must follow, takes it up.

        Belongs before the event loop. What this process has imported the child has, too.
        """
        if can_fork():
            with suppress(OSError):
                self._forked = fork(self._module, variables(self.environment))

    async def start(self) -> None:
        """Start it unless it runs; calls may be sent at once. Raises `ChildFailed`."""
        await self._connected()

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, timeout: float | None = None
    ) -> Any:
        """The method's answer. Raises what the child raised; `ChildFailed` if it died or took too long (seconds)."""
        connection = await self._connected()
        id, replies = await connection.call(method, params or {})
        try:
            async with asyncio.timeout(timeout):
                return await _answer(replies)
        except TimeoutError:
            what = f"The {self.name} process did not answer {method!r} within {timeout:g} s"
            raise ChildFailed(what, "try again") from None
        finally:
            connection.forget(id)

    async def stream(self, method: str, params: dict[str, Any] | None = None) -> AsyncGenerator[Any, None]:
        """What the method sends, piece by piece. Closing it cancels the method. Raises as `ask` does."""
        connection = await self._connected()
        id, replies = await connection.call(method, params or {})
        try:
            while True:
                match await replies.get():
                    case wire.StreamItem(value=value):
                        yield value
                    case wire.CallResult():
                        return
                    case wire.CallFailed() as failure:
                        raise wire.as_error(failure)
        finally:
            connection.forget(id)

    async def close(self) -> None:
        """End it for good: what is still open fails, and there is no restart."""
        self._enter("closed")
        async with self._starting:
            if self._connection is not None:
                await self._connection.close()

    async def _connected(self) -> Connection:
        async with self._starting:
            if self.state == "closed":
                raise ChildFailed(f"The {self.name} process was closed", "start tui-agent again")
            if self._connection is None or not self._connection.alive:
                self._connection = await self._spawned()
            return self._connection

    async def _spawned(self) -> Connection:
        self._count_start()
        self._enter("starting")
        try:
            forked, self._forked = self._forked, None
            process = await (adopt(forked) if forked else spawn(self._module, self.environment))
        except ChildFailed:
            self._enter("failed")
            raise
        logging.getLogger(f"tui_agent.child.{self.name}").info("started as process %d", process.pid)
        return Connection(
            process,
            self.name,
            self._stderr,
            on_ready=lambda: self._enter("ready"),
            on_event=self._on_event,
            on_death=lambda: self._enter("failed"),
        )

    def _count_start(self) -> None:
        """A child that dies at every start must not be restarted forever."""
        now = time.monotonic()
        if len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_SECONDS:
            why = f" ({self._stderr[-1]})" if self._stderr else ""
            what = f"The {self.name} process died {MOST_STARTS} times within a minute{why}"
            raise ChildFailed(what, "wait a minute and try again, or see `tui-agent doctor`")
        self._starts.append(now)

    def _enter(self, state: ChildState) -> None:
        if self.state not in ("closed", state):
            self.state = state
            self._on_state(state)


async def _answer(replies: asyncio.Queue[wire.StreamItem | wire.CallResult | wire.CallFailed]) -> Any:
    while True:
        match await replies.get():
            case wire.CallResult(value=value):
                return value
            case wire.CallFailed() as failure:
                raise wire.as_error(failure)
