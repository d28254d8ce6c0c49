"""The single writer of events: first to the log, then to the store.

A file next to the log keeps events that it refused until the session ended, for the next process that
opens the session.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import RecordRefused, SessionError
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import write_private
from tui_agent.log.log import Log
from tui_agent.log.records import VERSION, EventBody, Record, body_of, checksum, growing, lasting
from tui_agent.store import events as e
from tui_agent.store.events import Event, Growing, Lasting, Store
from tui_agent.store.state import State

SAY_AFTER = 1.0


class Wait:
    def __init__(self, words: str, changed: Callable[[], None]) -> None:
        self.words = words
        self._changed = changed

    def is_now(self, words: str) -> None:
        """Keeps the elapsed time."""
        self.words = words
        self._changed()


class Waits:
    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` gets the description of the newest long wait, or ""."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._long: list[Wait] = []
        self._told = ""

    @contextmanager
    def on(self, words: str) -> Generator[Wait]:
        wait = Wait(words, self._say)
        timer = self._loop.call_later(SAY_AFTER, self._took_long, wait)
        try:
            yield wait
        finally:
            timer.cancel()
            if wait in self._long:
                self._long.remove(wait)
                self._say()

    def _took_long(self, wait: Wait) -> None:
        self._long.append(wait)
        self._say()

    def _say(self) -> None:
        words = self._long[-1].words if self._long else ""
        if words != self._told:
            self._told = words
            self._tell(words)


REFUSED = "late"


class RefusedEvents(Struct, frozen=True):
    """To append after record `number`, with the growing events of that time."""

    number: int
    events: tuple[Lasting, ...]
    growing: tuple[Growing, ...]


class _StoredEvents(Struct, frozen=True):
    """Each event as its type and JSON."""

    number: int
    events: tuple[tuple[str, bytes], ...]
    growing: tuple[tuple[str, str, bytes], ...]


def store_refused(folder: Path, late: RefusedEvents, *, sync: bool) -> None:
    """Ignores errors, which cannot be reported at this stage. Without `sync` the file survives this process
    but not a power failure.
    """
    events = [(body.type, body.data) for body in map(_body, late.events) if body is not None]
    kept = [(event.key, body.type, body.data) for event in late.growing if (body := _body(event)) is not None]
    left = _StoredEvents(late.number, tuple(events), tuple(kept))
    with suppress(OSError):
        write_private(folder / REFUSED, msgspec.msgpack.encode(left), sync=sync)


def forget_refused(folder: Path) -> None:
    with suppress(OSError):
        os.unlink(folder / REFUSED)


def append_refused(log: Log) -> list[str]:
    """Returns sentences about unreadable events. Blocking.

    Skips events in the log. Raises SessionError if the log refuses them again; the file is then kept.
    """
    folder = log.path.parent
    try:
        left = msgspec.msgpack.decode(read_start(folder / REFUSED), type=_StoredEvents)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return [f"what the log had refused cannot be read ({error})"]
    lost: list[str] = []
    there = max(0, log.count() - left.number)
    found = [lasting(_record(kind, data)) for kind, data in left.events[there:]]
    kept = [growing(_record(kind, data), key) for key, kind, data in left.growing]
    lost += [one for one in (*found, *kept) if isinstance(one, str)]
    failures: list[SessionError] = []
    log.append(
        [one for one in found if not isinstance(one, str)],
        lambda _: None,
        failures.append,
        keep=[one for one in kept if not isinstance(one, str)],
    )
    log.count()
    if failures:
        raise failures[0]
    forget_refused(folder)
    return lost


def _body(event: Event) -> EventBody | None:
    try:
        return body_of(event)
    except RecordRefused:
        return None


def _record(kind: str, data: bytes) -> Record:
    row = (0, 0.0, kind, VERSION, data)
    return Record(*row, checksum(*row))


_log = logging.getLogger(__name__)
#: Maximum delay before the log gets a growing text, in seconds. A key press must be durable within one
#: second, which includes the editor's debounce, the disk and a busy machine.
KEEP_WITHIN = 0.15
#: The same for an open file with more characters: each write contains the whole text.
LONG_TEXT, KEEP_LONG_WITHIN = 200_000, 0.4
AGAIN_AFTER = 2.0
SLOW = "waiting for the disk: session log"


class _Call:
    """Lasting events of one caller. `joined` are keys of growing events for the same transaction; `done` is set once
    the events are durable and folded."""

    def __init__(self, events: Sequence[Lasting], joined: Collection[str] = ()) -> None:
        self.events, self.joined = events, joined
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Journal:
    """Writes events to the log and folds them into the store. Without a log it only folds.

    Calls that wait for an earlier write share the next transaction.

    While the log cannot be written, the session continues in memory and the screen shows it. Unwritten
    events are retried every few seconds, with the next event, and at the end. Growing events are held
    until the log confirms that exact version.
    """

    def __init__(self, store: Store, log: Log | None, number: int = 0) -> None:
        self.store = store
        self.log = log
        self.number = number
        self._loop = asyncio.get_running_loop()
        self._in_order = asyncio.Lock()
        self._unwritten: list[Lasting] = []
        #: Calls for the next transaction, and the task that writes them.
        self._gathered: list[_Call] = []
        self._gathering: asyncio.Task[None] | None = None
        #: Events in the log's queue, by their first call.
        self._on_its_way: dict[_Call, Sequence[Lasting]] = {}
        #: Calls of `record_soon` that are not durable yet.
        self._soon: set[asyncio.Future[None]] = set()
        #: Newest unconfirmed event of each key, and the version passed to the log.
        self._growing: dict[str, Growing] = {}
        self._handed_over: dict[str, Growing] = {}
        #: Keys whose newest event belongs in the transaction of a pending record, not before it.
        self._joined: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._trying: asyncio.Task[None] | None = None
        self.waits = Waits(lambda words: store.emit(e.WaitingChanged(words)))
        self._closed = False
        if log is not None:
            # The log calls it on its thread or on the loop.
            log.on_error = partial(self._loop.call_soon_threadsafe, self._not_kept)

    @property
    def keeps(self) -> bool:
        return self.log is not None and not self._unwritten and not self._soon

    async def record(self, *events: Event) -> None:
        """Folds the events in order; lasting events are on disk first."""
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
        """Waits only for earlier writes: the events are durable only after a later `record`. Raises
        RecordRefused.
        """
        if self.log is not None and self._in_order.locked():
            await self._append(events)
            return
        async with self._in_order:
            if self.log is not None:
                for event in events:
                    body_of(event)
                held, self._unwritten = [*self._unwritten, *events], []
                call = _Call(())
                self._soon.add(call.done)
                call.done.add_done_callback(self._soon.discard)
                self._enqueue(held, [call])
            for event in events:
                self.store.emit(event)
        await asyncio.sleep(0)  # A turn that never waits must not block the keyboard.

    async def record_with(self, growing: Sequence[Growing], *events: Lasting) -> None:
        """Folds `growing` now, and stores it in the same transaction: after a kill, both are present or
        neither. Raises as `record` does.
        """
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
        """No event can intervene between `make` and the recording."""
        async with self._in_order:
            events = make()
            if self.log is not None and events:
                await self._write(_Call(events))
                return
        for event in events:
            self.store.emit(event)

    def publish(self, event: Event) -> None:
        self.store.emit(event)

    def grow(self, event: Growing) -> None:
        self.store.emit(event)
        self._growing[event.key] = event
        long = isinstance(event, e.BufferEdited) and len(event.text) > LONG_TEXT
        self._flush_in(KEEP_LONG_WITHIN if long else KEEP_WITHIN)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.log is None:
            self._growing.clear()
        elif self._unwritten and not self._closed:
            if self._trying is None or self._trying.done():
                self._trying = self._loop.create_task(self._try_again(), name="what the log refused")
        else:
            on_loop = self._loop.call_soon_threadsafe  # the log's thread calls back
            for event in self._not_handed_over():
                if event.key not in self._joined:
                    self._handed_over[event.key] = event
                    wait = ExitStack()
                    wait.enter_context(self.waits.on(SLOW))
                    self.log.keep(
                        event,
                        partial(on_loop, self._on_confirmed, event, wait),
                        partial(on_loop, self._version_refused, event, wait),
                    )

    def forget(self, keys: Iterable[str]) -> None:
        keys = tuple(keys)
        for key in keys:
            self._growing.pop(key, None)
            self._handed_over.pop(key, None)
        if self.log is not None:
            self.log.drop(keys)

    async def close(self) -> None:
        """Writes events that the log refuses, or cannot write before this process must exit, to a file for
        the next process. If that fails too, they are lost, as the screen has reported.
        """
        if self.log is None or self._closed:
            return
        self._closed = True
        folder, left = self.log.path.parent, bool(self._unwritten or self._on_its_way or self._growing)
        try:
            if left:  # First: a terminating process may not wait for the log.
                await self._leave_behind(folder, sync=False)
            if self._unwritten:
                await self._try_again()
            self.flush()
        finally:
            await asyncio.to_thread(self.log.close)
        if self._unwritten or self._on_its_way or self._growing:
            await self._leave_behind(folder, sync=True)
        elif left:
            await asyncio.to_thread(forget_refused, folder)

    async def _leave_behind(self, folder: Path, *, sync: bool) -> None:
        events = (*chain.from_iterable(self._on_its_way.values()), *self._unwritten)
        waiting = RefusedEvents(self.number, events, tuple(self._growing.values()))
        await asyncio.to_thread(store_refused, folder, waiting, sync=sync)

    async def _append(self, events: Sequence[Lasting], joined: Collection[str] = ()) -> None:
        if not events:
            return
        if self.log is None:
            for event in events:
                self.store.emit(event)
            return
        call = _Call(events, joined)
        if not self._in_order.locked():
            async with self._in_order:
                await self._write(call)
            return
        self._gathered.append(call)
        if len(self._gathered) == 1:
            self._gathering = self._loop.create_task(self._write_gathered(), name="events that waited")
        try:
            await asyncio.shield(call.done)
        except asyncio.CancelledError:
            if call in self._gathered:
                self._gathered.remove(call)
            raise

    async def _write_gathered(self) -> None:
        async with self._in_order:
            calls, self._gathered = self._gathered, []
            if calls:
                held, self._unwritten = self._unwritten, []
                self._enqueue(held, calls)
                with self.waits.on(SLOW):
                    await asyncio.wait([call.done for call in calls])

    async def _try_again(self) -> None:
        async with self._in_order:
            if self._unwritten:
                await self._write(_Call(()))

    async def _write(self, call: _Call) -> None:
        held, self._unwritten = self._unwritten, []
        self._enqueue(held, [call])
        with self.waits.on(SLOW):
            await asyncio.shield(call.done)

    def _enqueue(self, held: Sequence[Lasting], calls: Sequence[_Call]) -> None:
        """Enqueues already folded events (`held`) and those of `calls`, to fold once durable, with the growing
        events of their joined keys, in one step. After a refusal, includes all growing events.
        """
        assert self.log is not None
        events = [event for call in calls for event in call.events]
        joined = {key for call in calls for key in call.joined}
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
        self._on_its_way[calls[0]] = [*held, *events]

        on_loop = self._loop.call_soon_threadsafe  # the log's thread calls back
        self.log.append(
            [*held, *events],
            partial(on_loop, self._written, calls, kept),
            partial(on_loop, self._refused, held, calls, kept, given_up),
            drop=ended,
            keep=kept,
        )

    def _not_handed_over(self) -> list[Growing]:
        return [event for key, event in self._growing.items() if self._handed_over.get(key) is not event]

    def _written(self, calls: Sequence[_Call], kept: Sequence[Growing], number: int) -> None:
        self.number = number
        self._on_its_way.pop(calls[0])
        for call in calls:
            self._fold(call)
        for event in kept:
            self._confirm(event)
        self._works_again()

    def _refused(
        self,
        held: Sequence[Lasting],
        calls: Sequence[_Call],
        kept: Sequence[Growing],
        given_up: dict[str, Growing],
        error: SessionError,
    ) -> None:
        """Folds events that a disk failure refused, to write them later. An invalid event fails only its own call."""
        self._on_its_way.pop(calls[0])
        self._growing = {**given_up, **self._growing}
        for event in kept:
            self._roll_back(event)
        events = [event for call in calls for event in call.events]
        if not isinstance(error, RecordRefused):
            self._unwritten = [*held, *events, *self._unwritten]
            for call in calls:
                self._fold(call)
            self._not_kept(error)
        elif len(calls) > 1:
            for call in calls:
                self._enqueue(held, [call])
                held = ()
        elif events:
            if not calls[0].done.done():
                calls[0].done.set_exception(error)
            if held:
                self._enqueue(held, [_Call(())])
        else:
            self.store.emit(e.NoticeGiven("warning", str(error)))
            _settle(calls[0].done)

    def _on_confirmed(self, event: Growing, wait: ExitStack, _: int) -> None:
        wait.close()
        self._confirm(event)
        self._works_again()

    def _confirm(self, event: Growing) -> None:
        self._roll_back(event)
        if self._growing.get(event.key) is event:
            del self._growing[event.key]

    def _roll_back(self, event: Growing) -> None:
        if self._handed_over.get(event.key) is event:
            del self._handed_over[event.key]

    def _version_refused(self, event: Growing, wait: ExitStack, error: SessionError) -> None:
        wait.close()
        if isinstance(error, RecordRefused):
            self._confirm(event)
        else:
            self._roll_back(event)
        self._not_kept(error)

    def _not_kept(self, error: SessionError) -> None:
        if isinstance(error, RecordRefused):
            self.store.emit(e.NoticeGiven("warning", str(error)))
            return
        self._flush_in(AGAIN_AFTER)
        if self.store.state.session.not_kept != str(error):
            self.store.emit(e.KeepingChanged(str(error)))

    def _works_again(self) -> None:
        if not self.store.state.session.not_kept:
            return
        if not self._unwritten:
            self.store.emit(e.KeepingChanged(""))
        self.flush()

    def _flush_in(self, seconds: float) -> None:
        if self._timer is None and not self._closed:
            self._timer = self._loop.call_later(seconds, self.flush)

    def _fold(self, call: _Call) -> None:
        try:
            for event in call.events:
                self.store.emit(event)
        except Exception as error:
            _log.exception("an event could not be folded")
            if not call.done.done():
                call.done.set_exception(error)
        _settle(call.done)


def ended_by(event: Lasting, state: State) -> tuple[str, ...]:
    """Returns keys of the growing events that this event completes. A draft changed since continues to grow."""
    match event:
        case e.TurnStarted(_, words, False) | e.MessageQueued(words):
            # A sent draft must not reappear.
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
