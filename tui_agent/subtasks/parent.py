"""What sub-tasks use of the session that they are part of and of the session of a run; how many run at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tui_agent.edits.change import Change, Pick
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.model.pacing import Allowance
from tui_agent.settings.schema import Settings
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State
from tui_agent.store.store import Listener
from tui_agent.workspace.copies import WorkCopy
from tui_agent.workspace.workspace import Workspace


class Capacity:
    """How many sub-tasks work at once, counted over all of a session's and theirs. Who waits for others gives its place
    to them meanwhile."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._listeners: list[Callable[[], None]] = []
        self._coming: list[asyncio.Future[None]] = []

    def on_free(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a place has become free."""
        self._listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Call it no more."""
        self._listeners.remove(listener)

    def acquire(self, most: int = 0) -> bool:
        """Take a place; False where there is none. A server that works on fewer requests at once sets `most`."""
        if self._taken >= min(self._most, most or self._most):
            return False
        self._taken += 1
        return True

    def release(self) -> None:
        """Give a place back: to one that comes back, else to what can begin, parts of a part before the others."""
        for coming in self._coming:
            if not coming.done():
                coming.set_result(None)
                return
        self._taken -= 1
        for listener in reversed(self._listeners):
            listener()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Give one's place to others meanwhile, and wait for one to go on; who is stopped has it at once, to leave."""
        self.release()
        try:
            yield
        except BaseException:
            self._taken += 1
            raise
        await self._come_back()

    async def _come_back(self) -> None:
        if self.acquire():
            return
        coming = asyncio.get_running_loop().create_future()
        self._coming.append(coming)
        try:
            await coming
        finally:
            self._coming.remove(coming)
            if coming.cancelled():
                self._taken += 1


class RunSession(Protocol):
    """The session of a run, as far as its parent uses it."""

    @property
    def state(self) -> State: ...

    def subscribe(self, listener: Listener) -> Callable[[], None]: ...

    def start(self, paths: list[str]) -> None:
        """Begin to work in the copy, which holds these paths."""

    async def take_turn(self, text: str, attachments: Sequence[str] = ()) -> None:
        """Send a message and wait for the end of its turn."""

    async def apply(self, picks: Sequence[Pick]) -> None: ...

    async def subtasks_settled(self) -> None: ...

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Parent:
    """What sub-tasks use of the session that they are part of.

    `open_child` opens the session of a run, in its copy and with its hand-over; `on_newest` puts a change on the file
    as it is by now; `after_run` is called when a run has ended.
    """

    journal: Journal
    storage: Storage
    workspace: Workspace
    settings: Settings
    data: Path
    requests: Allowance
    capacity: Capacity
    open_child: Callable[[SubTask, WorkCopy, str], Awaitable[RunSession]]
    on_newest: Callable[[Change], Awaitable[Change]]
    after_run: Callable[[], Awaitable[None]]


class SubTaskPart(Struct, frozen=True):
    """What makes a session that of a sub-task's run: its hand-over, and what it shares with its parent.

    folder: the one that its copy was made of.
    """

    handover: str
    folder: Path
    capacity: Capacity
    requests: Allowance
