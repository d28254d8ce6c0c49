"""From the store to the panes: at most thirty times a second, and only to those whose slices are others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from tui_agent.store.events import Event
    from tui_agent.store.state import State
    from tui_agent.store.store import Listener

INTERVAL = 1 / 30
#: Seconds for which the beginning of a turn is not shown, so that its request leaves before panes are laid out and
#: drawn, which takes longer than the request does; and those in which it leaves once it is composed.
REQUEST_FIRST, LEAVES_WITHIN = 0.1, 0.005
#: Phases of a turn before its request.
_BEFORE = ("planning", "finding")


class Told(Protocol):
    """What a bridge leads from: a session, as far as it matters here."""

    @property
    def state(self) -> State: ...

    def subscribe(self, listener: Listener) -> Callable[[], None]: ...


class Shown(Protocol):
    """What a bridge shows the state to: a pane, as far as it matters here."""

    #: Slices of the state, and what is made of them, as `buffers.tabs`.
    SLICES: ClassVar[tuple[str, ...]]

    def show(self, state: State) -> None: ...


class Bridge:
    """Shows each pane the state when one of its slices has changed. No timer runs while nothing happens.

    The first request of a turn comes before the panes, for `REQUEST_FIRST` at the most and not where keys wait, which
    `keys_wait` tells. `later` runs a callback in the screen's own time (its message queue).
    """

    def __init__(
        self,
        session: Told,
        later: Callable[[Callable[[], object]], object],
        keys_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session = session
        self._later = later
        self._keys_wait = keys_wait
        self._shown: dict[Shown, tuple[object, ...]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last = float("-inf")
        #: The last turn that was seen to begin; and while its request comes first, what ends then.
        self._turn = session.state.turn.number
        self._request: asyncio.Future[None] | None = None
        self._unsubscribe = session.subscribe(self._happened)

    def attach(self, pane: Shown) -> None:
        """Show the pane the state as it is, and from now on what changes."""
        state = self._session.state
        self._shown[pane] = _slices(pane, state)
        pane.show(state)

    def detach(self, pane: Shown) -> None:
        self._shown.pop(pane, None)

    def close(self) -> None:
        self._unsubscribe()
        self._shown.clear()
        self._no_longer_waits()

    async def free(self) -> None:
        """Wait while a request comes first."""
        if self._request is not None:
            await asyncio.shield(self._request)

    def hurry(self) -> None:
        """Show what has changed although a request comes first: a key may depend on it."""
        if self._request is not None:
            self._due()

    def flush(self) -> bool:
        """Show now what has changed; whether anything had."""
        self._last = asyncio.get_running_loop().time()
        state, changed = self._session.state, False
        for pane, before in list(self._shown.items()):
            now = _slices(pane, state)
            if any(map(_differs, before, now)):
                self._shown[pane], changed = now, True
                pane.show(state)
        return changed

    def _happened(self, event: Event, state: State) -> None:
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


def _slices(pane: Shown, state: State) -> tuple[object, ...]:
    return tuple(attrgetter(name)(state) for name in pane.SLICES)


def _differs(old: object, new: object) -> bool:
    """A slice that did not change is the same object; what is made of slices is compared."""
    return old is not new and (isinstance(new, Struct) or old != new)


class Attention:
    """Shown the state like a pane. `bring` puts a pane in front of those it shares a place with.

    The plan comes when a turn begins, the review when the first change waits, the sub-tasks when there are others.
    """

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
