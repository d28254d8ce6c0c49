"""The child's side: answers calls that come on standard input, until it is closed.

A program for a child is a module that ends in `if __name__ == "__main__": run(build)`. `build(announce)`
returns the methods by name and may import what is heavy: `print` no longer reaches the protocol by then.
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
#: Gets the parameters and `send`, which streams one item; what it returns is the answer. May be cancelled.
Handler = Callable[[dict[str, Any], Send], Awaitable[Any]]
#: Tells the parent of something that it did not ask about. May be called from any thread.
Announce = Callable[[dict[str, Any]], None]
Build = Callable[[Announce], Mapping[str, Handler]]

#: The environment variable in which the parent leaves its process id.
PARENT = "TUI_AGENT_PARENT"
GRACE_SECONDS = 1.0
_SET_PARENT_DEATH_SIGNAL = 1


def run(build: Build) -> None:
    """Serve until standard input ends, then end the process, whatever its threads are doing."""
    output = take_output()
    end_with_parent()
    debug_log.to_stream(sys.stderr)
    status = 0
    try:
        asyncio.run(_serve(build, ParentPipe(output)))
    except BaseException as error:  # the outermost edge: the last line that the parent reads says why
        status = 1
        _log.exception("the child ended with a fault")
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    sys.stderr.flush()
    if os.getpgrp() == os.getpid():  # what we started and nobody waits for any more ends with us
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    os._exit(status)


def take_output() -> int:
    """A private copy of descriptor 1; from here on, what anyone prints goes to standard error."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def end_with_parent() -> None:
    """On Linux the kernel ends us with our parent; elsewhere the end of standard input has to do."""
    parent = os.environ.pop(PARENT, "")
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(
        _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0
    )  # heard even where we are stopped
    if parent and os.getppid() != whole_number(parent):
        os._exit(0)  # it died before we asked to be told


class ParentPipe:
    """The way to the parent: whole lines, from any thread.

    Writing blocks while the pipe is full. The parent always reads, so it is never full for long, unless the
    parent is stopped; then there is nothing to do for us either.
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
                os._exit(0)  # nobody is left to read


async def _serve(build: Build, output: ParentPipe) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    gc.disable()  # imports make no garbage, and looking for it is a tenth of their time
    methods = build(lambda event: output.write(wire.Announced(event)))
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
    await _stop(list(running.values()))


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)


async def _answer(methods: Mapping[str, Handler], call: wire.Call, output: ParentPipe) -> None:
    """Run one call to its end and say what came of it; a cancelled one ends without a word."""

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
    except Exception as error:  # the child's outer edge: the parent is told, and the child goes on
        _log.exception("%s failed", call.method)
        what = f"{call.method} failed: {type(error).__name__}: {error}"
        output.write(
            wire.CallFailed(call.id, "ChildFailed", what, "try again; `tui-agent doctor` shows more")
        )
