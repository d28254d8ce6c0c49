"""The one writer: what happened goes to the log, then to the store, in that order and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from tui_agent.errors import SessionError
from tui_agent.session.log import Log
from tui_agent.store import events as e
from tui_agent.store.events import Event, Growing, Lasting
from tui_agent.store.store import Store

#: How long something that grows may be in memory only (S1), in seconds.
KEEP_WITHIN = 1.0


class Journal:
    """Writes events down and folds them. Without a log (none could be written) it only folds."""

    def __init__(self, store: Store, log: Log | None) -> None:
        self.store = store
        self.log = log
        self._loop = asyncio.get_running_loop()
        self._growing: dict[str, Growing] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def record(self, *events: Event) -> None:
        """Fold the events in order; those that last are on disk before they are folded.

        Raises `SessionError` where the log cannot be written; nothing is folded then.
        """
        lasting: list[Lasting] = []
        for event in events:
            if isinstance(event, Lasting):
                lasting.append(event)
                continue
            await self._append(lasting)
            lasting = []
            self.grow(event) if isinstance(event, Growing) else self.store.emit(event)
        await self._append(lasting)

    def tell(self, event: Event) -> None:
        """Fold a passing event now."""
        self.store.emit(event)

    def grow(self, event: Growing) -> None:
        """Fold something that is still being made, and keep the newest of it within a second."""
        self.store.emit(event)
        self._growing[event.key] = event
        if self._timer is None:
            self._timer = self._loop.call_later(KEEP_WITHIN, self.flush)

    def flush(self) -> None:
        """Hand everything that grows to the log now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        growing, self._growing = self._growing, {}
        if self.log is not None:
            for event in growing.values():
                self.log.keep(event)

    def forget(self, keys: Iterable[str]) -> None:
        """What grew under these keys is given up, by the person or because it came to nothing."""
        keys = tuple(keys)
        for key in keys:
            self._growing.pop(key, None)
        if self.log is not None:
            self.log.drop(keys)

    async def close(self) -> None:
        self.flush()
        if self.log is not None:
            await asyncio.to_thread(self.log.close)

    async def _append(self, events: Sequence[Lasting]) -> None:
        if not events:
            return
        if self.log is None:
            for event in events:
                self.store.emit(event)
            return
        durable: asyncio.Future[None] = self._loop.create_future()

        def on_disk(_seq: int) -> None:
            self._loop.call_soon_threadsafe(self._fold, events, durable)

        def failed(error: SessionError) -> None:
            self._loop.call_soon_threadsafe(_fail, durable, error)

        ended = [key for event in events for key in ended_by(event)]
        for key in ended:
            self._growing.pop(key, None)
        self.log.append(events, on_disk, failed, drop=ended)
        await asyncio.shield(durable)

    def _fold(self, events: Sequence[Lasting], durable: asyncio.Future[None]) -> None:
        for event in events:
            self.store.emit(event)
        if not durable.done():
            durable.set_result(None)


def ended_by(event: Lasting) -> tuple[str, ...]:
    """The keys of what was growing and is now kept by this event."""
    match event:
        case e.TurnStarted(queued=False) | e.MessageQueued():
            return ("draft",)  # what was typed is now said: it must not come back
        case e.ReplyRead() | e.ReplyLeftOff() | e.TurnEnded():
            return ("reply",)
        case e.BufferSaved(path):
            return (f"buffer:{path}",)
        case e.BufferClosed(path):
            return (f"buffer:{path}", f"cursor:{path}")
        case _:
            return ()


def _fail(durable: asyncio.Future[None], error: SessionError) -> None:
    if not durable.done():
        durable.set_exception(error)
