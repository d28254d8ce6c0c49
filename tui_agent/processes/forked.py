"""A forked child process, which shares the modules its parent has imported. Linux only.

`python -m module` takes 0.1 s until it listens, mostly for imports. The fork replaces its session,
streams, environment, import path and log, so that it behaves like a new process.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import sys
import threading
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO, TextIOWrapper
from typing import Any, Final, NamedTuple, NoReturn

from tui_agent.files.numbers import whole_number
from tui_agent.processes import serve

#: Fields of /proc/self/stat with the bounds of the initial environment; see proc_pid_stat(5).
_ENVIRONMENT_FROM, _ENVIRONMENT_TO = 50, 51
#: The parent's stream objects. Closing them would close the new descriptors.
_before: Final[list[Any]] = []


class ProcessCopy(NamedTuple):
    """A running child and the parent's ends of its standard streams."""

    pid: int
    stdin: int
    stdout: int
    stderr: int


def can_fork() -> bool:
    """Whether fork is safe: pidfd is available and this process has a single thread."""
    if not sys.platform.startswith("linux") or threading.active_count() > 1:
        return False
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is None
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def fork(module: str, variables: Mapping[str, str]) -> ProcessCopy:
    """Forks a child that serves `module` with exactly these variables. Raises `OSError`."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    gc.freeze()  # A garbage collection would write to every object and so copy its page.
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe() for _ in range(3))
        pid = os.fork()
    except OSError:
        for pair in pipes:
            _close(*pair)
        raise
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = pipes
    if pid == 0:
        become(module, variables, (stdin, stdout, stderr))
    _close(stdin, stdout, stderr)
    return ProcessCopy(pid, our_stdin, our_stdout, our_stderr)


def become(module: str, variables: Mapping[str, str], streams: tuple[int, int, int]) -> NoReturn:
    """Turns a fork into the equivalent of `python -P -m module`. Never returns, even on errors."""
    try:
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _before.extend((sys.stdin, sys.stdout, sys.stderr))
        sys.stdin = TextIOWrapper(FileIO(0, closefd=False))
        sys.stdout = TextIOWrapper(FileIO(1, "w", closefd=False), line_buffering=True)
        sys.stderr = TextIOWrapper(
            FileIO(2, "w", closefd=False), errors="backslashreplace", line_buffering=True
        )
        logging.getLogger().handlers.clear()
        threading.excepthook = threading.__excepthook__
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        foreign = {
            *os.environ.get("PYTHONPATH", "").split(os.pathsep),
            "" if sys.flags.safe_path else sys.path[0],
        }
        ours = variables.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = [*ours, *(path for path in sys.path if path not in foreign and path not in ours)]
        sys.argv[:] = [module]
        # Replace the environment, including the copy in /proc/PID/environ
        os.environ.clear()
        with suppress(OSError, IndexError), open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # Fields from the third on.
            start, end = (whole_number(fields[at - 3]) for at in (_ENVIRONMENT_FROM, _ENVIRONMENT_TO))
            if 0 < start < end:
                import ctypes

                ctypes.memset(start, 0, end - start)
        os.environ.update(variables)
        serve.run(importlib.import_module(module).build)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        os._exit(1)
    os._exit(1)


class ForkedProcess:
    """The subset of asyncio's `Process` that `Connection` uses."""

    def __init__(self, pid: int, stdin: StreamWriter, stdout: StreamReader, stderr: StreamReader) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: StreamWriter | None = stdin
        self.stdout: StreamReader | None = stdout
        self.stderr: StreamReader | None = stderr
        self._ended = asyncio.Event()
        self._handle = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._handle, self._reap)

    async def wait(self) -> int:
        """Waits for the exit status; negative for the signal that ended the process."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        self._loop.remove_reader(self._handle)
        _close(self._handle)
        try:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # Its status was already collected.
            self.returncode = 255
        self._ended.set()


async def adopt(child: ProcessCopy) -> ForkedProcess:
    """Attach the child to the running loop."""
    loop = asyncio.get_running_loop()
    readers = []
    for descriptor in (child.stdout, child.stderr):
        reader = StreamReader()
        await loop.connect_read_pipe(lambda reader=reader: StreamReaderProtocol(reader), FileIO(descriptor))
        readers.append(reader)
    transport, protocol = await loop.connect_write_pipe(
        lambda: StreamReaderProtocol(StreamReader()), FileIO(child.stdin, "w")
    )
    return ForkedProcess(child.pid, StreamWriter(transport, protocol, None, loop), *readers)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
