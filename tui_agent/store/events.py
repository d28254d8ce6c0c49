"""All events, and the store that applies them. Only events change the state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable

from tui_agent.store.conversation_events import *  # noqa: F403
from tui_agent.store.event import Event as Event
from tui_agent.store.event import Growing as Growing
from tui_agent.store.event import Lasting as Lasting
from tui_agent.store.event import Passing as Passing
from tui_agent.store.session_events import *  # noqa: F403
from tui_agent.store.state import State
from tui_agent.store.task_events import *  # noqa: F403
from tui_agent.store.turn_events import *  # noqa: F403

#: By serialised name.
LASTING: dict[str, type[Lasting]] = {kind.__name__: kind for kind in Lasting.__subclasses__()}
GROWING: dict[str, type[Growing]] = {kind.__name__: kind for kind in Growing.__subclasses__()}

Listener = Callable[[Event, State], None]


def fold(events: Iterable[Event], state: State | None = None) -> State:
    state = state or State()
    for event in events:
        state = event.apply(state)
    return state


class Store:
    """Only the session emits events, on the thread that created the store."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()
        self._listeners: list[Listener] = []
        self._thread = threading.get_ident()

    def emit(self, event: Event) -> None:
        assert threading.get_ident() == self._thread, "the store belongs to one thread"
        self.state = event.apply(self.state)
        for listener in tuple(self._listeners):
            listener(event, self.state)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    async def until(self, holds: Callable[[State], bool]) -> None:
        """Returns once the condition holds."""
        happened = asyncio.Event()

        def look(_: Event, state: State) -> None:
            if holds(state):
                happened.set()

        if holds(self.state):
            return
        unsubscribe = self.subscribe(look)
        try:
            await happened.wait()
        finally:
            unsubscribe()
