"""The child's side: serves calls from standard input until it is closed; and the messages, in JSON lines.

parent → child   Call, Cancel
child → parent   Ready once, Announced at any time; for each call StreamItems, then CallResult or CallFailed

A child program is a module that ends in `if __name__ == "__main__": run(build)`. `build(announce)` returns
the methods by name. It may import heavy modules; by then `print` writes to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
import threading
from asyncio import StreamReader
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from tui_agent import debug_log, errors
from tui_agent.errors import ChildFailed, TuiAgentError
from tui_agent.files.numbers import whole_number


class Call(Struct, tag="call", tag_field="t"):
    id: int
    method: str
    params: dict[str, Any]


class Cancel(Struct, tag="cancel", tag_field="t"):
    id: int


class Ready(Struct, tag="ready", tag_field="t"):
    """The child is ready to receive calls."""


class StreamItem(Struct, tag="item", tag_field="t"):
    id: int
    value: Any


class CallResult(Struct, tag="answer", tag_field="t"):
    id: int
    value: Any = None


class CallFailed(Struct, tag="failure", tag_field="t"):
    """`kind`: a class in `tui_agent.errors`."""

    id: int
    kind: str
    what: str
    remedy: str


class Announcement(Struct, tag="announced", tag_field="t"):
    event: dict[str, Any]


FromParent = Call | Cancel
FromChild = Ready | StreamItem | CallResult | CallFailed | Announcement

_T = TypeVar("_T")


class Reader(Generic[_T]):
    """Preserves lone surrogates, which only Python's own JSON parser accepts."""

    def __init__(self, kinds: Any) -> None:
        self._kinds = kinds
        self._decoder: msgspec.json.Decoder[_T] = msgspec.json.Decoder(kinds)

    def decode(self, line: bytes) -> _T:
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.convert(json.loads(line), self._kinds)


_encoder = msgspec.json.Encoder()
from_parent: Reader[FromParent] = Reader(FromParent)
from_child: Reader[FromChild] = Reader(FromChild)


def encode(message: FromParent | FromChild) -> bytes:
    """Returns one line. Raises as `encoded`."""
    return encoded(message) + b"\n"


def encoded(message: Struct) -> bytes:
    """Raises `TypeError` or `ValueError` for values that JSON cannot represent."""
    try:
        return _encoder.encode(message)
    except (
        UnicodeEncodeError,
        OverflowError,
    ):  # lone surrogates and large integers are valid JSON
        return json.dumps(msgspec.to_builtins(message)).encode()


def failure(id: int, error: TuiAgentError) -> CallFailed:
    return CallFailed(id, type(error).__name__, error.what, error.remedy)


def as_error(failure: CallFailed) -> TuiAgentError:
    """Returns the original class, otherwise `ChildFailed`, which refers to the debug log."""
    kind = getattr(errors, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, TuiAgentError):
        told = kind(failure.what, failure.remedy)
    else:
        told = ChildFailed(failure.what, failure.remedy)
    path = debug_log.place()
    if isinstance(told, ChildFailed) and path:
        told.remedy = f"{told.remedy}; what it wrote is in {path}"
    return told


CHUNK_BYTES = 1 << 18


async def lines(reader: StreamReader) -> AsyncGenerator[bytes, None]:
    """Yields lines without newlines. Drops an incomplete last line of a writer that died."""
    parts: list[bytes] = []
    while chunk := await reader.read(CHUNK_BYTES):
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for following in rest:
            yield b"".join(parts)
            parts = [following]


_log = logging.getLogger(__name__)
Send = Callable[[Any], Awaitable[None]]
#: Called with the parameters and `send`, which streams one item. Returns the result. May be cancelled.
Handler = Callable[[dict[str, Any], Send], Awaitable[Any]]
Announce = Callable[[dict[str, Any]], None]
Build = Callable[[Announce], Mapping[str, Handler]]

PARENT = "TUI_AGENT_PARENT"
GRACE_SECONDS = 1.0
#: Bytes of a call after which free memory is returned to the system, and delay in seconds.
LARGE, TRIM_AFTER = 1_000_000, 0.5
_SET_PARENT_DEATH_SIGNAL = 1


def trim_memory() -> None:
    """glibc otherwise keeps free memory in per-thread arenas."""
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def run(build: Build) -> None:
    """Serves until standard input closes; then exits even if threads are running."""
    output = redirect_output()
    end_with_parent()
    debug_log.to_stream(sys.stderr)
    status = 0
    try:
        asyncio.run(_serve(build, ParentPipe(output)))
    except BaseException as error:  # outermost handler: the reason becomes the last line of standard error
        status = 1
        _log.exception("the child process failed")
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.stderr.flush()
    if os.getpgrp() == os.getpid():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    os._exit(status)


def redirect_output() -> int:
    """After this `print` cannot corrupt the protocol. Returns a duplicate of descriptor 1."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def end_with_parent() -> None:
    """Ends this process with its parent: by a kernel signal on Linux, otherwise when standard input closes."""
    parent = os.environ.pop(PARENT, "")
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if parent and os.getppid() != whole_number(parent):
        os._exit(0)


class ParentPipe:
    """Writes whole lines, from any thread.

    A write blocks while the pipe is full. The parent reads continuously, so this is brief unless it is
    suspended.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, message: FromChild) -> None:
        rest = memoryview(encode(message))
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except BrokenPipeError:
                os._exit(0)


async def _serve(build: Build, output: ParentPipe) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    gc.disable()  # imports create no garbage, and collection takes a tenth of their time
    methods = build(lambda event: output.write(Announcement(event)))
    gc.freeze()
    gc.enable()
    output.write(Ready())
    running: dict[int, asyncio.Task[None]] = {}

    def take(line: bytes) -> None:
        """A function, because variables of the loop would keep the last line and its message."""
        match from_parent.decode(line):
            case Call() as call:
                task = loop.create_task(_answer(methods, call, output))
                running[call.id] = task
                task.add_done_callback(lambda _, id=call.id: running.pop(id, None))
                if len(line) > LARGE:
                    task.add_done_callback(lambda _: loop.call_later(TRIM_AFTER, trim_memory))
            case Cancel(id) if id in running:
                running[id].cancel()

    reading = lines(reader)
    while (line := await anext(reading, None)) is not None:
        take(line)
        del line
    tasks = list(running.values())
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)


async def _answer(methods: Mapping[str, Handler], call: Call, output: ParentPipe) -> None:
    async def send(value: Any) -> None:
        output.write(StreamItem(call.id, value))
        await asyncio.sleep(0)

    try:
        handler = methods.get(call.method)
        if handler is None:
            raise ChildFailed(
                f"There is no method {call.method!r} in the child", "this is an error in tui-agent"
            )
        output.write(CallResult(call.id, await handler(call.params, send)))
    except TuiAgentError as error:
        output.write(failure(call.id, error))
    except Exception as error:  # outermost handler of a call: the child continues
        _log.exception("%s failed", call.method)
        what = f"{call.method} failed: {type(error).__name__}: {error}"
        output.write(CallFailed(call.id, "ChildFailed", what, "try again; `tui-agent doctor` shows more"))
