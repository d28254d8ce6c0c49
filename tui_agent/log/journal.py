"""The one writer: what happened goes to the log, then to the store, in that order and no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from tui_agent.errors import RecordRefused, SessionError
from tui_agent.log import late
from tui_agent.log.log import Log
from tui_agent.log.records import body_of
from tui_agent.log.waits import Waits
from tui_agent.store import events as e
from tui_agent.store.events import Event, Growing, Lasting
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
#: What is waited for where nothing else is named.
SLOW = "waiting for the disk to keep this session"


class Journal:
    """Writes events down and folds them. Without a log (none could be written) it only folds.

    While the log refuses to be written (a full disk, say) the session goes on in memory and says so; what was not
    written is tried again every few seconds, with whatever comes next, and at the end. What grows is held until the
    log has confirmed just that version of it.
    """

    def __init__(self, store: Store, log: Log | None, number: int = 0) -> None:
        self.store = store
        self.log = log
        #: The number of the last record that is folded.
        self.number = number
        self._loop = asyncio.get_running_loop()
        self._in_order = asyncio.Lock()
        self._unwritten: list[Lasting] = []
        #: What the log was given and has neither confirmed nor refused.
        self._on_its_way: dict[asyncio.Future[None], Sequence[Lasting]] = {}
        #: How many calls of `record_soon` are on their way to the disk.
        self._soon = 0
        #: The newest under each key that the log has not confirmed, and what of it the log was given.
        self._growing: dict[str, Growing] = {}
        self._handed_over: dict[str, Growing] = {}
        #: Keys whose newest goes into the transaction of a record that is on its way, and not before it.
        self._joined: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._trying: asyncio.Task[None] | None = None
        #: What the screen says is waited for, also by those who write files.
        self.waits = Waits(lambda words: store.emit(e.WaitingChanged(words)))
        self._closed = False
        if log is not None:
            log.on_error = self._growing_refused

    @property
    def keeps(self) -> bool:
        """Whether everything that happened is in the log, up to record `number`."""
        return self.log is not None and not self._unwritten and not self._soon

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

    async def record_soon(self, *events: Lasting) -> None:
        """Hand the events over in order and fold them, without waiting for the disk: nobody is told that they are kept
        before a later `record` has returned. Raises RecordRefused for what cannot be written."""
        async with self._in_order:
            if self.log is not None:
                for event in events:
                    body_of(event)
                held, self._unwritten = [*self._unwritten, *events], []
                self._soon += 1
                durable: asyncio.Future[None] = self._loop.create_future()
                durable.add_done_callback(self._no_longer_soon)
                self._put(held, (), durable)
            for event in events:
                self.store.emit(event)
        await asyncio.sleep(0)  # a turn that never waits would keep the keyboard waiting

    def _no_longer_soon(self, _: asyncio.Future[None]) -> None:
        self._soon -= 1

    async def record_with(self, growing: Sequence[Growing], *events: Lasting) -> None:
        """Fold what grows now, and keep the newest of it in the transaction that records the events: after a kill
        there are both, or neither. Raises as `record` does."""
        keys = [event.key for event in growing]
        self._joined += keys
        try:
            for event in growing:
                self.grow(event)
            await self._append(events, keys)
        finally:
            for key in keys:
                self._joined.remove(key)

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
        long = isinstance(event, e.BufferEdited) and len(event.text) > LONG_TEXT
        self._flush_in(KEEP_LONG_WITHIN if long else KEEP_WITHIN)

    def flush(self) -> None:
        """Hand everything that grows to the log now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.log is None:
            self._growing.clear()
        elif self._unwritten and not self._closed:
            if self._trying is None or self._trying.done():
                self._trying = self._loop.create_task(self._try_again(), name="what the log refused")
        else:
            for event in self._not_handed_over():
                if event.key not in self._joined:
                    self._handed_over[event.key] = event
                    self.log.keep(event, partial(self._tell_kept, event), partial(self._tell_refused, event))

    def forget(self, keys: Iterable[str]) -> None:
        """What grew under these keys is given up, by the person or because it came to nothing."""
        keys = tuple(keys)
        for key in keys:
            self._growing.pop(key, None)
            self._handed_over.pop(key, None)
        if self.log is not None:
            self.log.drop(keys)

    async def close(self) -> None:
        """Write what waits, and end. What the log does not take, or not before this process has to end, is left beside
        it, for the next who opens it; it is lost where that cannot be written either, as the screen has said."""
        if self.log is None or self._closed:
            return
        self._closed = True
        folder, left = self.log.path.parent, bool(self._unwritten or self._on_its_way or self._growing)
        try:
            if left:  # before the log is tried: whoever wants this process to end may not wait for that
                await self._leave_behind(folder, sync=False)
            if self._unwritten:
                await self._try_again()
            self.flush()
        finally:
            await asyncio.to_thread(self.log.close)
        if self._unwritten or self._on_its_way or self._growing:
            await self._leave_behind(folder, sync=True)
        elif left:
            await asyncio.to_thread(late.forget, folder)

    async def _leave_behind(self, folder: Path, *, sync: bool) -> None:
        events = (*chain.from_iterable(self._on_its_way.values()), *self._unwritten)
        waiting = late.LeftBehind(self.number, events, tuple(self._growing.values()))
        await asyncio.to_thread(late.leave, folder, waiting, sync=sync)

    async def _append(self, events: Sequence[Lasting], joined: Collection[str] = ()) -> None:
        if not events:
            return
        if self.log is None:
            for event in events:
                self.store.emit(event)
            return
        async with self._in_order:
            await self._write(events, joined)

    async def _try_again(self) -> None:
        async with self._in_order:
            if self._unwritten:
                await self._write([])

    async def _write(self, events: Sequence[Lasting], joined: Collection[str] = ()) -> None:
        """Write these, behind what waits from before, with what grows under the keys of `joined`.

        Raises RecordRefused where one of these cannot be written."""
        held, self._unwritten = self._unwritten, []
        durable: asyncio.Future[None] = self._loop.create_future()
        self._put(held, events, durable, joined)
        with self.waits.on(SLOW):
            await asyncio.shield(durable)

    def _put(
        self,
        held: Sequence[Lasting],
        events: Sequence[Lasting],
        durable: asyncio.Future[None],
        joined: Collection[str] = (),
    ) -> None:
        """Hand over what is folded already (`held`) and what is folded once it is on disk, in one step; with it goes
        what grows under the keys of `joined`, and where it was refused before, all that grows."""
        assert self.log is not None
        tried_again = bool(held) and bool(self.store.state.session.not_kept)
        ended = [key for event in (*held, *events) for key in ended_by(event, self.store.state)]
        given_up = {key: self._growing.pop(key) for key in ended if key in self._growing}
        for key in ended:
            self._handed_over.pop(key, None)
        kept = [
            event
            for event in self._not_handed_over()
            if event.key in joined or (tried_again and event.key not in self._joined)
        ]
        self._handed_over |= {event.key: event for event in kept}
        self._on_its_way[durable] = [*held, *events]

        def on_disk(number: int) -> None:
            self._loop.call_soon_threadsafe(self._written, events, kept, number, durable)

        def failed(error: SessionError) -> None:
            self._loop.call_soon_threadsafe(self._refused, held, events, kept, given_up, error, durable)

        self.log.append([*held, *events], on_disk, failed, drop=ended, keep=kept)

    def _not_handed_over(self) -> list[Growing]:
        """What grows and the log has not been given yet."""
        return [event for key, event in self._growing.items() if self._handed_over.get(key) is not event]

    def _written(
        self,
        events: Sequence[Lasting],
        kept: Sequence[Growing],
        number: int,
        durable: asyncio.Future[None],
    ) -> None:
        self.number = number
        self._on_its_way.pop(durable)
        self._fold(events, durable)
        for event in kept:
            self._confirm(event)
        self._works_again()

    def _refused(
        self,
        held: Sequence[Lasting],
        events: Sequence[Lasting],
        kept: Sequence[Growing],
        given_up: dict[str, Growing],
        error: SessionError,
        durable: asyncio.Future[None],
    ) -> None:
        """The disk failed: it happened all the same, and is written later. What no log can hold did not happen."""
        self._on_its_way.pop(durable)
        self._growing = {**given_up, **self._growing}
        for event in kept:
            self._take_back(event)
        if not isinstance(error, RecordRefused):
            self._unwritten = [*held, *events, *self._unwritten]
            self._fold(events, durable)
            self._not_kept(error)
        elif events:
            if not durable.done():
                durable.set_exception(error)
            if held:
                self._put(held, (), self._loop.create_future())
        else:
            self.store.emit(e.NoticeGiven("warning", str(error)))
            _settle(durable)

    def _growing_refused(self, error: SessionError) -> None:
        """On the log's thread, or on the loop's: something that nobody waits for was not kept."""
        self._loop.call_soon_threadsafe(self._not_kept, error)

    def _tell_kept(self, event: Growing, _: int) -> None:
        """On the log's thread: this version is on disk."""
        self._loop.call_soon_threadsafe(self._kept, event)

    def _tell_refused(self, event: Growing, error: SessionError) -> None:
        """On the log's thread, or on the loop's: this version is not on disk."""
        self._loop.call_soon_threadsafe(self._version_refused, event, error)

    def _kept(self, event: Growing) -> None:
        self._confirm(event)
        self._works_again()

    def _confirm(self, event: Growing) -> None:
        self._take_back(event)
        if self._growing.get(event.key) is event:
            del self._growing[event.key]

    def _take_back(self, event: Growing) -> None:
        """The log is done with this version."""
        if self._handed_over.get(event.key) is event:
            del self._handed_over[event.key]

    def _version_refused(self, event: Growing, error: SessionError) -> None:
        if isinstance(error, RecordRefused):  # it never will be kept
            self._confirm(event)
        else:
            self._take_back(event)
        self._not_kept(error)

    def _not_kept(self, error: SessionError) -> None:
        """Say once that nothing is kept, and try again soon."""
        if isinstance(error, RecordRefused):
            self.store.emit(e.NoticeGiven("warning", str(error)))
            return
        self._flush_in(AGAIN_AFTER)
        if self.store.state.session.not_kept != str(error):
            self.store.emit(e.KeepingChanged(str(error)))

    def _works_again(self) -> None:
        """The log takes what it is given: hand over what it refused, and say so where there is nothing left of it."""
        if not self.store.state.session.not_kept:
            return
        if not self._unwritten:
            self.store.emit(e.KeepingChanged(""))
        self.flush()

    def _flush_in(self, seconds: float) -> None:
        if self._timer is None and not self._closed:
            self._timer = self._loop.call_later(seconds, self.flush)

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
        case e.BufferSaved(path, text=text):
            buffer = state.buffers.get(path)
            return (f"buffer:{path}",) if buffer is None or buffer.holds(text) else ()
        case e.BufferClosed(path):
            return (f"buffer:{path}", f"cursor:{path}", f"scroll:{path}")
        case _:
            return ()


def _settle(durable: asyncio.Future[None]) -> None:
    if not durable.done():
        durable.set_result(None)
