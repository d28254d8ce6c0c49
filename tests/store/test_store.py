"""The store tells its listeners in order, and belongs to one thread."""

from __future__ import annotations

import threading

from tui_agent.store.events import DraftChanged, Event, Store
from tui_agent.store.state import State


def test_listeners_hear_every_event_with_the_state_after_it() -> None:
    store, heard = Store(), []

    def listen(event: Event, state: State) -> None:
        heard.append((event, state.input.draft))

    stop = store.subscribe(listen)
    store.emit(DraftChanged("a"))
    stop()
    stop()
    store.emit(DraftChanged("b"))
    assert heard == [(DraftChanged("a"), "a")]
    assert store.state.input.draft == "b"


def test_an_event_from_another_thread_is_refused() -> None:
    store = Store()
    refused: list[bool] = []

    def emit() -> None:
        try:
            store.emit(DraftChanged("a"))
        except AssertionError:
            refused.append(True)

    thread = threading.Thread(target=emit)
    thread.start()
    thread.join()
    assert refused == [True]
    assert store.state.input.draft == ""
