"""A child process that speaks JSON lines, from its parent's side: requests, streams, cancellation,
restart."""

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
    """Runs `python -m module`, from the first use or `start()` until `close()` or the end of this process.

    `name` is the process's name in messages ("model"). `on_state` and `on_event` are called on the loop
    and must not raise. An instance belongs to the event loop that first uses it.
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
        #: Additional environment variables of future children.
        self.environment = dict(env or {})
        self._on_state = on_state or (lambda state: None)
        self._on_event = on_event or (lambda event: None)
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._connection: Connection | None = None
        self._forked: ProcessCopy | None = None
        self._starting = asyncio.Lock()

    def listen(self, on_state: Callable[[ChildState], None]) -> None:
        """Replace the callback for state changes."""
        self._on_state = on_state

    @property
    def pid(self) -> int | None:
        """The process id, or None if it is not running."""
        return self._connection.process.pid if self._connection and self._connection.alive else None

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of standard error, including those of earlier processes."""
        return tuple(self._stderr)

    def fork(self) -> None:
        """Fork the first process, if the platform allows it; `start` must follow and adopts it.

        Call it before the event loop runs. The child inherits all imported modules.
        """
        if can_fork():
            with suppress(OSError):
                self._forked = fork(self._module, variables(self.environment))

    async def start(self) -> None:
        """Starts the child if it is not running; requests may be sent immediately. Raises `ChildFailed`."""
        await self._connected()

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, timeout: float | None = None
    ) -> Any:
        """Calls a method and returns its result. Raises the child's exception, or `ChildFailed` if the child
        died or `timeout` (seconds) passed."""
        connection = await self._connected()
        id, replies = await connection.call(method, params or {})
        try:
            async with asyncio.timeout(timeout):
                while True:
                    match await replies.get():
                        case wire.CallResult(value=value):
                            return value
                        case wire.CallFailed() as failure:
                            raise wire.as_error(failure)
        except TimeoutError:
            what = f"The {self.name} process did not answer {method!r} within {timeout:g} s"
            raise ChildFailed(what, "try again") from None
        finally:
            connection.forget(id)

    async def stream(self, method: str, params: dict[str, Any] | None = None) -> AsyncGenerator[Any, None]:
        """Calls a method and yields its items. Closing the generator cancels the call. Raises as `ask`
        does."""
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
        """Terminates the child permanently; pending calls fail."""
        self._enter("closed")
        async with self._starting:
            if self._connection is not None:
                await self._connection.close()

    async def _connected(self) -> Connection:
        async with self._starting:
            if self.state == "closed":
                raise ChildFailed(f"The {self.name} process was closed", "start tui-agent again")
            if self._connection is None or not self._connection.alive:
                # Limits restarts of a child that dies at every start
                now = time.monotonic()
                if len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_SECONDS:
                    why = f" ({self._stderr[-1]})" if self._stderr else ""
                    what = f"The {self.name} process died {MOST_STARTS} times within a minute{why}"
                    raise ChildFailed(what, "wait a minute and try again, or see `tui-agent doctor`")
                self._starts.append(now)
                self._enter("starting")
                try:
                    forked, self._forked = self._forked, None
                    process = await (adopt(forked) if forked else spawn(self._module, self.environment))
                except ChildFailed:
                    self._enter("failed")
                    raise
                logging.getLogger(f"tui_agent.child.{self.name}").info("started as process %d", process.pid)
                self._connection = Connection(
                    process,
                    self.name,
                    self._stderr,
                    on_ready=lambda: self._enter("ready"),
                    on_event=self._on_event,
                    on_death=lambda: self._enter("failed"),
                )
            return self._connection

    def _enter(self, state: ChildState) -> None:
        if self.state not in ("closed", state):
            self.state = state
            self._on_state(state)
