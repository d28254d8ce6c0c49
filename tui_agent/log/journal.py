"""The one writer: what happened goes to the log, then to the store, in that order and no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from tui_agent.errors import RecordRefused, SessionError
from tui_agent.log.log import Log
from tui_agent.store import events as e
from tui_agent.store.events import Event, Growing, Lasting
from tui_agent.store.fold_files import holds
from tui_agent.store.state import State
from tui_agent.store.store import Store

_log = logging.getLogger(__name__)
#: How long something that grows may wait before it is handed to the log, in seconds. From a key to the disk it may
#: take a second, of which the editor's own pause, the disk and a machine with much else to do need the rest.
KEEP_WITHIN = 0.15
#: The same for an open file that is longer than so many characters: all of it is written each time.
LONG_TEXT, KEEP_LONG_WITHIN = 200_000, 0.4
#: How soon what the log refused is tried again, in seconds.
AGAIN_AFTER = 2.0


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

    async def record_then(self, make: Callable[[], Sequence[Lasting]]) -> None:
        """Record what `make` gives. It is asked when everything that was handed over before is folded, and nothing
        can come between what it sees and what it says."""
        async with self._in_order:
            events = make()
            if self.log is not None and events:
                await self._write(events)
                return
        for event in events:
            self.store.emit(event)

    def tell(self, event: Event) -> None:
        """Fold a passing event now."""
        self.store.emit(event)

    def grow(self, event: Growing) -> None:
        """Fold something that is still being made, and keep the newest of it within a second."""
        self.store.emit(event)
        self._growing[event.key] = event
        if self._timer is None:
            long = isinstance(event, e.BufferEdited) and len(event.text) > LONG_TEXT
            self._timer = self._loop.call_later(KEEP_LONG_WITHIN if long else KEEP_WITHIN, self.flush)

    def flush(self) -> None:
        """Hand everything that grows to the log now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._handed_over, self._growing = self._growing, {}
        if self.log is None:
            return
        for event in self._handed_over.values():
            self.log.keep(event, self._kept)

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
        try:
            if self._unwritten:
                await self._write([])
            self.flush()
        finally:
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
        """Write these, behind what waits from before. Raises RecordRefused where one of these cannot be written."""
        late, self._unwritten = self._unwritten, []
        durable: asyncio.Future[None] = self._loop.create_future()
        self._put(late, events, durable)
        await asyncio.shield(durable)

    def _put(self, late: Sequence[Lasting], events: Sequence[Lasting], durable: asyncio.Future[None]) -> None:
        """Hand over what is folded already (`late`) and what is folded once it is on disk, in one step."""
        assert self.log is not None

        def on_disk(number: int) -> None:
            self._loop.call_soon_threadsafe(self._written, events, number, durable)

        def failed(error: SessionError) -> None:
            self._loop.call_soon_threadsafe(self._refused, late, events, error, durable)

        ended = [key for event in (*late, *events) for key in ended_by(event, self.store.state)]
        for key in ended:
            self._growing.pop(key, None)
            self._handed_over.pop(key, None)
        self.log.append([*late, *events], on_disk, failed, drop=ended)

    def _written(self, events: Sequence[Lasting], number: int, durable: asyncio.Future[None]) -> None:
        self.number = number
        self._fold(events, durable)
        self._works_again()

    def _refused(
        self,
        late: Sequence[Lasting],
        events: Sequence[Lasting],
        error: SessionError,
        durable: asyncio.Future[None],
    ) -> None:
        """The disk failed: it happened all the same, and is written later. What no log can hold did not happen."""
        if not isinstance(error, RecordRefused):
            self._unwritten = [*late, *events, *self._unwritten]
            self._fold(events, durable)
            self._not_kept(error)
        elif events:
            if not durable.done():
                durable.set_exception(error)
            if late:
                self._put(late, (), self._loop.create_future())
        else:
            self.store.emit(e.NoticeGiven("warning", str(error)))
            _settle(durable)

    def _growing_refused(self, error: SessionError) -> None:
        """On the log's thread, or on the loop's: what was handed over was not kept."""
        self._loop.call_soon_threadsafe(self._not_kept, error)

    def _kept(self, _: int) -> None:
        """On the log's thread: something that grows is on disk."""
        if self.store.state.session.not_kept:
            self._loop.call_soon_threadsafe(self._works_again)

    def _not_kept(self, error: SessionError) -> None:
        """Say once that nothing is kept, hold on to what was growing, and try again soon."""
        if isinstance(error, RecordRefused):
            self.store.emit(e.NoticeGiven("warning", str(error)))
            return
        self._growing = {**self._handed_over, **self._growing}
        if self._timer is None:
            self._timer = self._loop.call_later(AGAIN_AFTER, self.flush)
        if self.store.state.session.not_kept != str(error):
            self.store.emit(e.KeepingChanged(str(error)))

    def _works_again(self) -> None:
        """The log takes what it is given: say so, and hand over what it refused."""
        if not self.store.state.session.not_kept or self._unwritten:
            return
        self.store.emit(e.KeepingChanged(""))
        self._growing = {**self._handed_over, **self._growing}
        self.flush()

    def _fold(self, events: Sequence[Lasting], durable: asyncio.Future[None]) -> None:
        """Fold what is written; a fault of ours is told to whoever wrote it, who would wait forever."""
        try:
            for event in events:
                self.store.emit(event)
        except Exception as error:
            _log.exception("an event could not be folded")
            if not durable.done():
                durable.set_exception(error)
        _settle(durable)


def ended_by(event: Lasting, state: State) -> tuple[str, ...]:
    """The keys of what was growing and is now kept by this event; what was typed since is not, and goes on growing."""
    match event:
        case e.TurnStarted(_, words, False) | e.MessageQueued(words):
            # what was typed is now said: it must not come back
            return ("draft",) if state.input.draft.strip() in ("", words.strip()) else ()
        case e.ReplyRead() | e.ReplyLeftOff() | e.TurnEnded():
            return ("reply",)
        case e.BufferSaved(path):
            buffer = state.buffers.get(path)
            return (f"buffer:{path}",) if buffer is None or holds(buffer, event) else ()
        case e.BufferClosed(path):
            return (f"buffer:{path}", f"cursor:{path}", f"scroll:{path}")
        case _:
            return ()


def _settle(durable: asyncio.Future[None]) -> None:
    if not durable.done():
        durable.set_result(None)
