"""The child's side: serves calls from standard input until it is closed.

A child program is a module that ends in `if __name__ == "__main__": run(build)`. `build(announce)` returns
the methods by name. It may import heavy modules; by then `print` writes to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tui_agent import debug_log
from tui_agent.errors import ChildFailed, TuiAgentError
from tui_agent.files.numbers import whole_number
from tui_agent.processes import wire
from tui_agent.processes.wire import lines

_log = logging.getLogger(__name__)
Send = Callable[[Any], Awaitable[None]]
#: Called with the parameters and `send`, which streams one item. Returns the result. May be cancelled.
Handler = Callable[[dict[str, Any], Send], Awaitable[Any]]
#: Sends an unsolicited message to the parent, from any thread.
Announce = Callable[[dict[str, Any]], None]
Build = Callable[[Announce], Mapping[str, Handler]]

#: Environment variable with the parent's process id.
PARENT = "TUI_AGENT_PARENT"
GRACE_SECONDS = 1.0
_SET_PARENT_DEATH_SIGNAL = 1


def run(build: Build) -> None:
    """Serve until standard input closes, then exit even if threads are running."""
    output = redirect_output()
    end_with_parent()
    debug_log.to_stream(sys.stderr)
    status = 0
    try:
        asyncio.run(_serve(build, ParentPipe(output)))
    except BaseException as error:  # Outermost handler: the reason becomes the last line of standard error.
        status = 1
        _log.exception("the child ended with a fault")
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.stderr.flush()
    if os.getpgrp() == os.getpid():  # Ends leftover processes of the group as well.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    os._exit(status)


def redirect_output() -> int:
    """Duplicates descriptor 1 and redirects it to standard error, so that `print` cannot corrupt the
    protocol."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def end_with_parent() -> None:
    """Exit with the parent: by a kernel signal on Linux, elsewhere when standard input closes."""
    parent = os.environ.pop(PARENT, "")
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(
        _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0
    )  # Delivered even to a suspended process.
    if parent and os.getppid() != whole_number(parent):
        os._exit(0)  # The parent exited before the signal was requested.


class ParentPipe:
    """Writes whole lines to the parent, from any thread.

    A write blocks while the pipe is full. The parent reads continuously, so this is brief unless the
    parent is suspended.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, message: wire.FromChild) -> None:
        rest = memoryview(wire.encode(message))
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except BrokenPipeError:
                os._exit(0)  # The parent has exited.


async def _serve(build: Build, output: ParentPipe) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    gc.disable()  # Imports create no garbage, and collection takes a tenth of their time.
    methods = build(lambda event: output.write(wire.Announcement(event)))
    gc.freeze()
    gc.enable()
    output.write(wire.Ready())
    running: dict[int, asyncio.Task[None]] = {}
    async for line in lines(reader):
        match wire.from_parent.decode(line):
            case wire.Call() as call:
                task = loop.create_task(_answer(methods, call, output))
                running[call.id] = task
                task.add_done_callback(lambda _, id=call.id: running.pop(id, None))
            case wire.Cancel(id) if id in running:
                running[id].cancel()
    tasks = list(running.values())
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)


async def _answer(methods: Mapping[str, Handler], call: wire.Call, output: ParentPipe) -> None:
    """Runs a call and sends its result or error; sends nothing if it is cancelled."""

    async def send(value: Any) -> None:
        output.write(wire.StreamItem(call.id, value))
        await asyncio.sleep(0)

    try:
        handler = methods.get(call.method)
        if handler is None:
            raise ChildFailed(
                f"There is no method {call.method!r} in the child", "this is a fault in tui-agent"
            )
        output.write(wire.CallResult(call.id, await handler(call.params, send)))
    except TuiAgentError as error:
        output.write(wire.failure(call.id, error))
    except (
        Exception
    ) as error:  # Outermost handler of a call: the parent receives the error and the child continues.
        _log.exception("%s failed", call.method)
        what = f"{call.method} failed: {type(error).__name__}: {error}"
        output.write(
            wire.CallFailed(call.id, "ChildFailed", what, "try again; `tui-agent doctor` shows more")
        )
