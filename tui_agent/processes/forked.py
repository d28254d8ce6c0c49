"""A child process that is a copy of this one, on Linux: it has imported already what both need.

`python -m module` computes 0.1 s until it listens, most of it imports that its parent has just made. A copy shares
them, and is otherwise made into what that would be: its own session, streams, environment, path of imports and log.
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

#: Where /proc/self/stat says where the variables are that a process was started with; see proc_pid_stat(5).
_ENVIRONMENT_FROM, _ENVIRONMENT_TO = 50, 51
#: The streams that the copy had before: what closes them would close those that it has now.
_before: Final[list[Any]] = []


class ProcessCopy(NamedTuple):
    """A child that runs, and our ends of its standard streams."""

    pid: int
    stdin: int
    stdout: int
    stderr: int


def can_fork() -> bool:
    """Whether a copy of this process would work: Linux says when it ends, and no other thread holds a lock."""
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
    """Begin a copy that serves what `module` builds, with no variables but these. Raises `OSError`."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    gc.freeze()  # a look for garbage would write to each object, and copy its page
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
    """In a copy: be what `python -P -m module` would be. Never returns, whatever goes wrong."""
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
        _set_environment(variables)
        serve.run(importlib.import_module(module).build)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        os._exit(1)
    os._exit(1)


def _set_environment(variables: Mapping[str, str]) -> None:
    """Have these variables alone, also for who reads /proc/PID/environ."""
    os.environ.clear()
    with suppress(OSError, IndexError), open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()  # from the third one on
        start, end = (whole_number(fields[at - 3]) for at in (_ENVIRONMENT_FROM, _ENVIRONMENT_TO))
        if 0 < start < end:
            import ctypes

            ctypes.memset(start, 0, end - start)
    os.environ.update(variables)


class ForkedProcess:
    """What asyncio's `Process` is, as far as a `Connection` uses it."""

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
        """Its exit status, once it has ended; the negative number of the signal that ended it."""
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
        except ChildProcessError:  # somebody else has asked for its status
            self.returncode = 255
        self._ended.set()


async def adopt(child: ProcessCopy) -> ForkedProcess:
    """The child, as one of the running loop."""
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
