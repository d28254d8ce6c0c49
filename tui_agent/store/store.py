"""The store: one state, one way in, and everyone who wants to know is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from tui_agent.store.events import Event
from tui_agent.store.state import State

Listener = Callable[[Event, State], None]


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """The state that a sequence of events leads to."""
    state = state or State()
    for event in events:
        state = event.apply(state)
    return state


class Store:
    """Holds the state. Only the session emits, and only on the thread that made the store."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()
        self._listeners: list[Listener] = []
        self._thread = threading.get_ident()

    def emit(self, event: Event) -> None:
        """Apply one event and tell every listener; the order of calls is the order of events."""
        assert threading.get_ident() == self._thread, "the store belongs to one thread"
        self.state = event.apply(self.state)
        for listener in tuple(self._listeners):
            listener(event, self.state)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(event, state)` after every event; calling what comes back ends it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe
