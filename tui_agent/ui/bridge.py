"""Pushes state to panes whose slices changed, at most 30 times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from tui_agent.store.events import Event, Listener
    from tui_agent.store.state import State

INTERVAL = 1 / 30
#: Seconds by which the display yields to a turn's request, since layout takes longer than the request; and
#: seconds for a composed request to leave.
REQUEST_FIRST, LEAVES_WITHIN = 0.1, 0.005
_BEFORE = ("planning", "finding")


class StateSource(Protocol):
    @property
    def state(self) -> State: ...

    def subscribe(self, listener: Listener) -> Callable[[], None]: ...


class StateView(Protocol):
    #: Slices, or derived values such as `buffers.tabs`.
    SLICES: ClassVar[tuple[str, ...]]

    def show(self, state: State) -> None: ...


class Bridge:
    """Updates panes when their slices change, without a timer.

    The first request of a turn delays updates by up to `REQUEST_FIRST`, unless `keys_wait()`. `later`
    schedules a callback on the screen's queue.
    """

    def __init__(
        self,
        session: StateSource,
        later: Callable[[Callable[[], object]], object],
        keys_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session = session
        self._later = later
        self._keys_wait = keys_wait
        self._shown: dict[StateView, tuple[object, ...]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last = float("-inf")
        #: The latest turn, and the future that ends its request's priority.
        self._turn = session.state.turn.number
        self._request: asyncio.Future[None] | None = None
        self._unsubscribe = session.subscribe(self._on_event)

    def attach(self, pane: StateView) -> None:
        state = self._session.state
        self._shown[pane] = _slices(pane, state)
        pane.show(state)

    def close(self) -> None:
        self._unsubscribe()
        self._shown.clear()
        self._no_longer_waits()

    async def free(self) -> None:
        if self._request is not None:
            await asyncio.shield(self._request)

    def hurry(self) -> None:
        """Flushes despite a request's priority, for keys that depend on the state."""
        if self._request is not None:
            self._due()

    def flush(self) -> bool:
        self._last = asyncio.get_running_loop().time()
        state, changed = self._session.state, False
        for pane, before in list(self._shown.items()):
            now = _slices(pane, state)
            pairs = zip(before, now, strict=True)
            if any(old is not new and (isinstance(new, Struct) or old != new) for old, new in pairs):
                self._shown[pane], changed = now, True
                pane.show(state)
        return changed

    def _on_event(self, event: Event, state: State) -> None:
        turn, loop = state.turn, asyncio.get_running_loop()
        begins, self._turn = turn.number != self._turn, turn.number
        if begins and self._request is None and not self._keys_wait():
            self._request = loop.create_future()
            self._show_at(loop.time() + REQUEST_FIRST)
        elif self._timer is None:
            self._show_at(max(loop.time(), self._last + INTERVAL))
        elif self._request is not None and turn.phase not in _BEFORE:
            self._show_at(min(loop.time() + LEAVES_WITHIN, self._timer.when()))

    def _show_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(moment, self._due)

    def _due(self) -> None:
        self._no_longer_waits()
        self._later(self.flush)

    def _no_longer_waits(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._request is not None:
            self._request.set_result(None)
            self._request = None


def _slices(pane: StateView, state: State) -> tuple[object, ...]:
    return tuple(attrgetter(name)(state) for name in pane.SLICES)


class Attention:
    """Shows the plan with a turn, the review with a pending change, and new sub-tasks."""

    SLICES: ClassVar[tuple[str, ...]] = ("turn", "review", "subtasks")

    def __init__(self, bring: Callable[[str], None]) -> None:
        self._bring = bring
        self._turn: int | None = None
        self._pending = 0
        self._tasks: tuple[str, ...] = ()

    def show(self, state: State) -> None:
        turn, pending = state.turn.number, len(state.review.open)
        tasks = tuple(task.id for task in state.subtasks.tasks)
        if self._turn is None:
            self._turn, self._pending, self._tasks = turn, pending, tasks
            return
        if turn != self._turn:
            self._bring("plan")
        if pending and not self._pending:
            self._bring("review")
        if set(tasks) - set(self._tasks):
            self._bring("subtasks")
        self._turn, self._pending, self._tasks = turn, pending, tasks
