"""Persistent views with a server: later commands of the same proposal share its loopback network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.errors import SessionError
from tui_agent.session.trial_views import PreparedView, TrialViews
from tui_agent.store.commands import By
from tui_agent.store.event import Event
from tui_agent.store.state import State
from tui_agent.store.store import Store

if TYPE_CHECKING:
    from tui_agent.sandbox.run import How, Run, RunResult


class Server(NamedTuple):
    """Parameters for restarting a background command."""

    command: str
    by: By


class SharedView:
    """Closed after the last command."""

    def __init__(self, prepared: PreparedView) -> None:
        from tui_agent.sandbox.namespace_view import View

        self.key = prepared.key
        self.prepared = prepared
        self._view = View(prepared.plan, shared=True)
        self._users = 0
        self._starting = asyncio.Lock()
        self._open = False

    @property
    def ended(self) -> bool:
        return self._open and not self._users

    async def run(self, run: Run, argv: Sequence[str], variables: Mapping[str, str]) -> RunResult:
        """Raises `NoView`."""
        self._users += 1
        try:
            async with self._starting:
                if not self._open:
                    await self._view.__aenter__()
                    self._open = True
            return await run.within(self._view, argv, variables)
        finally:
            self._users -= 1
            if not self._users:
                await self._view.__aexit__(None, None, None)
                await self.prepared.remove()


class Servers:
    """Stopped when the proposal changes."""

    def __init__(
        self, store: Store, views: TrialViews, stop: Callable[[Sequence[str], How], Awaitable[None]]
    ) -> None:
        """`stop` ends commands by id."""
        self._views = views
        self._stop = stop
        #: Running servers by id.
        self.running: dict[str, Server] = {}
        self._shared: SharedView | None = None
        #: Servers stopped by a changed proposal.
        self._waiting: list[Server] = []
        self._looking: asyncio.Task[None] | None = None
        self._about: tuple[object, ...] = ()
        self._unsubscribe = store.subscribe(self._on_event)

    async def view_for(self, prepared: PreparedView, *, background: bool) -> SharedView | None:
        """None without one; stops servers of another proposal."""
        shared = self._shared
        if shared is not None and (shared.ended or shared.key != prepared.key):
            await self._stop_all()
            shared = None
        if shared is None and (background or self._waiting):
            if prepared.plan.on_copy:
                raise SessionError(
                    "Servers need a separate network, which a copy of the folder does not have",
                    "test it in one command, without a server",
                )
            shared = SharedView(prepared)
        self._shared = shared
        return shared

    def add(self, number: str, server: Server, task: asyncio.Task[None]) -> None:
        """Keeps a server until its task is done."""
        self.running[number] = server
        task.add_done_callback(lambda _: self.running.pop(number, None))
        self._look_soon()

    def to_start_again(self) -> list[Server]:
        """Returns the servers, and clears the list."""
        waiting, self._waiting = self._waiting, []
        return waiting

    async def close(self) -> None:
        """Does not stop running commands."""
        self._unsubscribe()
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def _stop_all(self) -> None:
        self._waiting += self.running.values()
        await self._stop(list(self.running), "proposal")

    def _on_event(self, event: Event, state: State) -> None:
        about = (state.review, state.buffers)
        changed, self._about = about != self._about, about
        if changed:
            self._look_soon()

    def _look_soon(self) -> None:
        if self.running and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._watch_changes(), name="servers")

    async def _watch_changes(self) -> None:
        about: object = None
        while self.running and about is not self._about:
            about = self._about
            if self._shared is not None and await self._views.key() != self._shared.key:
                await self._stop_all()
