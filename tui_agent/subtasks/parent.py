"""A session and its sub-tasks: interfaces, and the limit of concurrent runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from tui_agent.edits.change import Change, Pick
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.model.rate_limit import Allowance
from tui_agent.settings.schema import Settings
from tui_agent.store.events import Listener
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, State
from tui_agent.workspace.copies import WorkCopy
from tui_agent.workspace.workspace import Workspace


class Capacity:
    """Concurrent runs of a session and its nested sub-tasks. A waiting parent lends its slot."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._listeners: list[Callable[[], None]] = []
        self._coming: list[asyncio.Future[None]] = []

    def on_free(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def acquire(self, most: int = 0) -> bool:
        """Returns False if no slot is free. `most` is the server's limit."""
        if not self.has_room(most):
            return False
        self._taken += 1
        return True

    def has_room(self, most: int) -> bool:
        return self._taken < min(self._most, most or self._most)

    def release(self) -> None:
        """A returning parent gets the slot first, then new runs, nested ones first."""
        for coming in self._coming:
            if not coming.done():
                coming.set_result(None)
                return
        self._taken -= 1
        for listener in reversed(self._listeners):
            listener()

    @asynccontextmanager
    async def lend_slot(self) -> AsyncGenerator[None]:
        """A cancelled caller gets it back immediately, to exit."""
        self.release()
        try:
            yield
        except BaseException:
            self._taken += 1
            raise
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
    @property
    def state(self) -> State: ...

    def subscribe(self, listener: Listener) -> Callable[[], None]: ...

    def start(self, paths: list[str]) -> None:
        """Begins work in the copy, which contains `paths`."""

    async def run_turn(self, text: str, attachments: Sequence[str] = ()) -> None:
        """Returns at the end of the turn."""

    async def apply(self, picks: Sequence[Pick]) -> None: ...

    async def subtasks_settled(self) -> None: ...

    async def earlier(self, before: int, count: int = 50) -> tuple[ChatMessage, ...]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Parent:
    """A session for its sub-tasks. `open_placed` opens a run in the place of the settings, with contents
    that differ from the disk and other paths, or returns None to run it here. `on_newest` rebases a
    change onto the current file. `after_run` is called at the end of each run.
    """

    journal: Journal
    storage: Storage
    workspace: Workspace
    settings: Settings
    data: Path
    requests: Allowance
    capacity: Capacity
    open_child: Callable[[SubTask, WorkCopy, str], Awaitable[RunSession]]
    open_placed: Callable[
        [SubTask, Mapping[str, bytes | None], Sequence[str], str], Awaitable[RunSession | None]
    ]
    on_newest: Callable[[Change], Awaitable[Change]]
    after_run: Callable[[], Awaitable[None]]


class SubTaskPart(Struct, frozen=True):
    """Hand-over of a sub-task's session, and its parent's resources. `folder` is the original of its copy;
    `only` are the tools of its agents.
    """

    handover: str
    folder: Path
    capacity: Capacity
    requests: Allowance
    only: tuple[Mapping[str, tuple[str, ...]], ...] = ()
