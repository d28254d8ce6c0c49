"""Frames between a session and its worker in a place, in both directions over one pair of byte streams.

A frame is its length (four bytes), 1 if it is compressed (one byte), and JSON. The worker sends `Hello`
first, and is refused if it is of another version. Both sides call each other with the messages of
`processes.serve`. All frames of one side arrive in order, so a result follows the events before it.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from tui_agent import __version__
from tui_agent.errors import PlaceLost, TuiAgentError
from tui_agent.processes.serve import (
    Call,
    CallFailed,
    CallResult,
    Cancel,
    Handler,
    Reader,
    StreamItem,
    as_error,
    encoded,
    failure,
)

PROTOCOL = 1
#: Bytes of a frame, packed and not; bytes of all frames from the other side; a longer frame is packed.
LARGEST, MOST_BYTES, PACKED = 64 << 20, 4 << 30, 500
#: Sent after frames, because srun passes on whole lines only. No size of a frame begins with it.
NEWLINE = b"\n"
#: Seconds between signs of life, and of silence after which the other side counts as lost.
BEAT, SILENCE = 5.0, 30.0
_log = logging.getLogger(__name__)


class Hello(Struct, tag="hello", tag_field="t"):
    protocol: int
    version: str


class Beat(Struct, tag="beat", tag_field="t"):
    """A sign of life."""


class EventHappened(Struct, tag="event", tag_field="t"):
    event: dict[str, Any]


class TextStored(Struct, tag="text", tag_field="t"):
    """A content to which later events refer by its hash."""

    data: bytes


Frame = Hello | Beat | EventHappened | TextStored | Call | Cancel | StreamItem | CallResult | CallFailed
_reader: Reader[Frame] = Reader(Frame)
Taken = Callable[[EventHappened | TextStored], Awaitable[None]]


class Channel(Protocol):
    async def send(self, data: bytes) -> None:
        """Raises OSError if the other side is gone."""
        ...

    async def receive(self) -> bytes:
        """Returns b"" at the end."""
        ...

    async def close(self) -> None:
        """Ends the other side and waits for its end."""
        ...

    def reason(self) -> PlaceLost:
        """Why the other side is gone."""
        ...


def packed(frame: Frame) -> bytes:
    """Raises `PlaceLost` if it is too large."""
    body = encoded(frame)
    if len(body) > LARGEST:
        raise PlaceLost(f"A message of {len(body) >> 20} MiB is too large for a place", "run it here")
    is_packed = len(body) >= PACKED
    if is_packed:
        body = zlib.compress(body, 1)
    return len(body).to_bytes(4, "big") + bytes([is_packed]) + body


class Frames:
    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Raises ValueError for bytes that are not frames."""
        self._data += data
        found: list[Frame] = []
        while len(self._data) >= 5:
            if self._data.startswith(NEWLINE):
                del self._data[:1]
                continue
            size = int.from_bytes(self._data[:4], "big")
            if size > LARGEST or self._data[4] > 1:
                raise ValueError("not a frame")
            if len(self._data) < 5 + size:
                break
            body = bytes(self._data[5 : 5 + size])
            if self._data[4]:
                decompressor = zlib.decompressobj()
                try:
                    body = decompressor.decompress(body, LARGEST)
                except zlib.error as error:
                    raise ValueError(str(error)) from error
                if decompressor.unconsumed_tail:
                    raise ValueError("too large")
            del self._data[: 5 + size]
            found.append(_reader.decode(body))
        return found


class Link:
    """One side. `handlers` answer the other side's calls; `taken` gets its events and contents, in order."""

    def __init__(self, channel: Channel, handlers: Mapping[str, Handler], taken: Taken | None = None) -> None:
        """With `taken`, the first frame may take as long as a queue."""
        self.sent = self.received = 0
        self._channel, self._handlers, self._taken = channel, handlers, taken
        self._frames = Frames()
        self._waiting: dict[int, asyncio.Queue[StreamItem | CallResult | CallFailed]] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._last = 0
        self._out: deque[Frame] = deque()
        self._news, self._drained = asyncio.Event(), asyncio.Event()
        self._hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self._lost: PlaceLost | None = None
        self._tasks = [
            asyncio.create_task(self._read(), name="link: read"),
            asyncio.create_task(self._write(), name="link: write"),
        ]

    def post(self, frame: Frame) -> None:
        if self._lost is None:
            self._out.append(frame)
            self._news.set()

    async def greeted(self) -> None:
        """Waits for the other side. Raises `PlaceLost` if it is of another version."""
        hello = await asyncio.shield(self._hello)
        if (hello.protocol, hello.version) != (PROTOCOL, __version__):
            raise PlaceLost(
                f"tui-agent is version {hello.version[:40]} there and {__version__} here",
                f"install tui-agent {__version__} there",
            )

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Raises the error of the other side, or `PlaceLost`."""
        return [value async for value in self._exchange(method, params)][-1]

    async def stream(self, method: str, params: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Yields the items before the result. Closing it cancels the call."""
        exchange = self._exchange(method, params, items=True)
        try:
            async for item in exchange:
                yield item
        finally:
            await exchange.aclose()

    async def _exchange(
        self, method: str, params: dict[str, Any], *, items: bool = False
    ) -> AsyncGenerator[Any, None]:
        if self._lost is not None:
            raise self._lost
        self._last += 1
        number, queue = self._last, asyncio.Queue[StreamItem | CallResult | CallFailed]()
        self._waiting[number] = queue
        self.post(Call(number, method, params))
        try:
            while True:
                match await queue.get():
                    case StreamItem(value=value):
                        yield value
                    case CallFailed() as failed:
                        raise as_error(failed)
                    case CallResult(value=value):
                        if not items:
                            yield value
                        return
        finally:
            if self._waiting.pop(number, None) is not None and queue.empty():
                self.post(Cancel(number))

    async def ended(self) -> PlaceLost:
        """Waits until the other side is gone. Returns the reason."""
        await asyncio.wait(self._tasks[:1])
        return self._lost or self._channel.reason()

    async def close(self) -> None:
        """Ends the other side; running calls fail."""
        self._lose(PlaceLost("The worker was ended", "run it again"))
        try:
            await self._channel.close()
        finally:
            for task in (*self._tasks, *self._running.values()):
                task.cancel()
            await asyncio.gather(*self._tasks, *self._running.values(), return_exceptions=True)

    async def _read(self) -> None:
        try:
            while True:
                is_begun = self._hello.done() or self._taken is None
                async with asyncio.timeout(SILENCE if is_begun else None):
                    data = await self._channel.receive()
                if not data:
                    self._lose(self._channel.reason())
                    return
                self.received += len(data)
                if self.received > MOST_BYTES:
                    raise ValueError("too many bytes")
                for frame in self._frames.feed(data):
                    await self._take(frame)
        except TimeoutError:
            self._lose(
                PlaceLost(f"The worker was silent for {SILENCE:.0f} s", "see whether the place is reached")
            )
        except TuiAgentError as error:
            self._lose(error if isinstance(error, PlaceLost) else PlaceLost(error.what, error.remedy))
        except Exception as error:
            _log.debug("a frame was not understood", exc_info=True)
            words = f"The worker's answer cannot be read ({type(error).__name__}: {str(error)[:200]})"
            self._lose(
                PlaceLost(words, "let only the worker write to its output: run it without a terminal (-t)")
            )

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Hello() if not self._hello.done():
                self._hello.set_result(frame)
            case EventHappened() | TextStored():
                if self._taken is not None:
                    await self._taken(frame)
            case Call(id):
                task = asyncio.create_task(self._answer(frame))
                self._running[id] = task
                task.add_done_callback(lambda _: self._running.pop(id, None))
            case Cancel(id) if id in self._running:
                self._running[id].cancel()
            case StreamItem(id) if id in self._waiting:
                self._waiting[id].put_nowait(frame)
            case CallResult(id) | CallFailed(id) if id in self._waiting:
                self._waiting.pop(id).put_nowait(frame)

    async def _answer(self, call: Call) -> None:
        async def send(value: Any) -> None:
            self.post(StreamItem(call.id, value))
            if len(self._out) > 1000:
                self._drained.clear()
                await self._drained.wait()

        try:
            self.post(CallResult(call.id, await self._handlers[call.method](call.params, send)))
        except TuiAgentError as error:
            self.post(failure(call.id, error))
        except Exception as error:
            _log.exception("%s failed", call.method)
            words = f"{call.method} failed: {type(error).__name__}: {error}"
            self.post(CallFailed(call.id, "Fault", words, "this is an error in tui-agent"))

    async def _write(self) -> None:
        with suppress(OSError):
            while True:
                if not self._out:
                    self._news.clear()
                    try:
                        async with asyncio.timeout(BEAT):
                            await self._news.wait()
                    except TimeoutError:
                        self._out.append(Beat())
                data = bytearray()
                while self._out and len(data) < 1 << 20:
                    data += packed(self._out.popleft())
                data += NEWLINE
                self.sent += len(data)
                await self._channel.send(bytes(data))
                self._drained.set()

    def _lose(self, why: PlaceLost) -> None:
        if self._lost is not None:
            return
        self._lost = why
        if not self._hello.done():
            self._hello.set_exception(why)
            self._hello.exception()
        for number, queue in self._waiting.items():
            queue.put_nowait(failure(number, why))
        self._waiting.clear()
        for task in self._running.values():
            task.cancel()
