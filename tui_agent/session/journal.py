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
    """Writes events down and folds them. Without a log (none could be written) it only folds.

    While the log refuses to be written (a full disk, say) the session goes on in memory and says so; what was not
    written is tried again, in order, with whatever comes next, and at the end.
    """

    def __init__(self, store: Store, log: Log | None, number: int = 0) -> None:
        self.store = store
        self.log = log
        #: The number of the last record that is folded.
        self.number = number
        self._loop = asyncio.get_running_loop()
        self._in_order = asyncio.Lock()
        self._unwritten: list[Lasting] = []
        self._growing: dict[str, Growing] = {}
        self._handed_over: dict[str, Growing] = {}
        self._timer: asyncio.TimerHandle | None = None
        if log is not None:
            log.on_error = self._growing_refused

    @property
    def keeps(self) -> bool:
        """Whether everything that happened is in the log."""
        return self.log is not None and not self._unwritten

    async def record(self, *events: Event) -> None:
        """Fold the events in order; those that last are on disk before they are folded."""
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
        self._handed_over, self._growing = self._growing, {}
        if self.log is not None:
            for event in self._handed_over.values():
                self.log.keep(event)

    def forget(self, keys: Iterable[str]) -> None:
        """What grew under these keys is given up, by the person or because it came to nothing."""
        keys = tuple(keys)
        for key in keys:
            self._growing.pop(key, None)
            self._handed_over.pop(key, None)
        if self.log is not None:
            self.log.drop(keys)

    async def close(self) -> None:
        """Write what waits, and end. What the log still refuses is lost, as the screen has said."""
        if self._unwritten:
            await self._write([])
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
        async with self._in_order:
            await self._write(events)

    async def _write(self, events: Sequence[Lasting]) -> None:
        assert self.log is not None
        durable: asyncio.Future[None] = self._loop.create_future()
        late, self._unwritten = self._unwritten, []

        def on_disk(number: int) -> None:
            self._loop.call_soon_threadsafe(self._written, events, number, bool(late), durable)

        def failed(error: SessionError) -> None:
            self._loop.call_soon_threadsafe(self._refused, late, events, error, durable)

        ended = [key for event in (*late, *events) for key in ended_by(event)]
        for key in ended:
            self._growing.pop(key, None)
            self._handed_over.pop(key, None)
        self.log.append([*late, *events], on_disk, failed, drop=ended)
        await asyncio.shield(durable)

    def _written(
        self, events: Sequence[Lasting], number: int, again: bool, durable: asyncio.Future[None]
    ) -> None:
        self.number = number
        self._fold(events, durable)
        if again:
            self.store.emit(e.KeepingChanged(""))
            self._growing = {**self._handed_over, **self._growing}
            self.flush()

    def _refused(
        self,
        late: Sequence[Lasting],
        events: Sequence[Lasting],
        error: SessionError,
        durable: asyncio.Future[None],
    ) -> None:
        self._unwritten = [*late, *events, *self._unwritten]
        self._not_kept(error)
        self._fold(events, durable)

    def _growing_refused(self, error: SessionError) -> None:
        """On the log's thread: what was handed over was not kept."""
        self._loop.call_soon_threadsafe(self._not_kept, error)

    def _not_kept(self, error: SessionError) -> None:
        """Say once that nothing is kept, and hold on to what was growing."""
        self._growing = {**self._handed_over, **self._growing}
        if self.store.state.session.not_kept != str(error):
            self.store.emit(e.KeepingChanged(str(error)))

    def _fold(self, events: Sequence[Lasting], durable: asyncio.Future[None]) -> None:
        """Fold what is written; a fault of ours is told to whoever wrote it, who would wait for ever."""
        try:
            for event in events:
                self.store.emit(event)
        except Exception as error:
            if not durable.done():
                durable.set_exception(error)
        _settle(durable)


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
            return (f"buffer:{path}", f"cursor:{path}", f"scroll:{path}")
        case _:
            return ()


def _settle(durable: asyncio.Future[None]) -> None:
    if not durable.done():
        durable.set_result(None)
