"""Client side of a child process that speaks JSON lines: requests, streams, cancellation, restart.

`python -m module` takes 0.1 s until it listens, mostly for imports. A fork is ready at once and shares
its parent's modules; it replaces its session, streams, environment, import path and log.
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
import time
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from io import FileIO, TextIOWrapper
from typing import Any, Final, Literal, NamedTuple, NoReturn

from tui_agent.errors import ChildFailed
from tui_agent.files.numbers import whole_number
from tui_agent.processes import serve
from tui_agent.processes.ending import ended
from tui_agent.processes.environment import for_any
from tui_agent.processes.serve import lines

#: See proc_pid_stat(5).
_ENVIRONMENT_FROM, _ENVIRONMENT_TO = 50, 51
#: The parent's stream objects. Closing them would close the new descriptors.
_before: Final[list[Any]] = []


class ProcessCopy(NamedTuple):
    pid: int
    stdin: int
    stdout: int
    stderr: int


def can_fork() -> bool:
    """Whether pidfd is available and this process has a single thread."""
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
    gc.freeze()  # garbage collection would copy every page
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
    """Turns a fork into `python -P -m module`."""
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
        os.environ.clear()
        with suppress(OSError, IndexError), open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
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
    """The part of asyncio's `Process` that `Connection` uses."""

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
        except ChildProcessError:
            self.returncode = 255
        self._ended.set()


async def adopt(child: ProcessCopy) -> ForkedProcess:
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


Reply = serve.StreamItem | serve.CallResult | serve.CallFailed
#: Seconds from closing a child's input to a signal.
PATIENCE_SECONDS = 2.0
#: Seconds from the signal to the kill.
INSIST_SECONDS = 0.5
LAST_WORDS_SECONDS = 0.5


class Connection:
    """Callbacks are called on the loop."""

    def __init__(
        self,
        process: Process | ForkedProcess,
        name: str,
        stderr: deque[str],
        on_ready: Callable[[], None],
        on_event: Callable[[dict[str, Any]], None],
        on_death: Callable[[], None],
    ) -> None:
        self.process = process
        self.alive = True
        self._name = name
        self._log = logging.getLogger(f"tui_agent.child.{name}")
        self._stderr = stderr
        self._on_ready = on_ready
        self._on_event = on_event
        self._on_death = on_death
        self._waiting: dict[int, asyncio.Queue[Reply]] = {}
        self._last_id = 0
        self._listening = asyncio.create_task(self._listen(), name=f"{name}: replies")
        self._overhearing = asyncio.create_task(self._overhear(), name=f"{name}: standard error")

    async def call(self, method: str, params: dict[str, Any]) -> tuple[int, asyncio.Queue[Reply]]:
        """Replies arrive in the returned queue, with a `CallFailed` if the child dies."""
        self._last_id += 1
        id, queue = self._last_id, asyncio.Queue[Reply]()
        line = serve.encode(serve.Call(id, method, params))
        self._waiting[id] = queue
        try:
            assert self.process.stdin is not None
            try:
                self.process.stdin.write(line)
                await self.process.stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                pass
        except BaseException:
            self.forget(id)
            raise
        return id, queue

    def forget(self, id: int) -> None:
        """Drops a pending call and cancels it in the child."""
        if self._waiting.pop(id, None) is not None and self.alive and self.process.stdin is not None:
            self.process.stdin.write(serve.encode(serve.Cancel(id)))

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            await asyncio.wait([self._listening], timeout=PATIENCE_SECONDS)
            if not self._listening.done():
                self._signal(signal.SIGTERM)
                self._signal(signal.SIGCONT)  # a suspended child handles no other signal
                await asyncio.wait([self._listening], timeout=INSIST_SECONDS)
        finally:
            if not self._listening.done():
                self._signal(signal.SIGKILL)
        await self._listening

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        try:
            async for line in lines(self.process.stdout):
                message = serve.from_child.decode(line)
                match message:
                    case serve.Ready():
                        self._on_ready()
                    case serve.Announcement(event):
                        self._on_event(event)
                    case serve.StreamItem(id) if id in self._waiting:
                        self._waiting[id].put_nowait(message)
                    case serve.CallResult(id) | serve.CallFailed(id) if id in self._waiting:
                        self._waiting.pop(id).put_nowait(message)
        except ValueError as error:
            self._stderr.append(f"not understood: {error}")
        if self.process.returncode is None:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await ended(self.process)
            except TimeoutError:
                with suppress(ProcessLookupError):  # it ended just now
                    self.process.kill()
                await ended(self.process)
        # A surviving grandchild may keep standard error open
        await asyncio.wait([self._overhearing], timeout=LAST_WORDS_SECONDS)
        self._overhearing.cancel()
        self.alive = False
        self._log.info("%s", self.exit_reason().what)
        for id, queue in self._waiting.items():
            queue.put_nowait(serve.failure(id, self.exit_reason()))
        self._waiting.clear()
        self._on_death()

    def exit_reason(self) -> ChildFailed:
        status = self.process.returncode
        how = (
            f"was ended by signal {-status}"
            if status is not None and status < 0
            else f"ended with status {status}"
        )
        last = f" ({self._stderr[-1]})" if status and status > 0 and self._stderr else ""
        return ChildFailed(f"The {self._name} process {how}{last}", "try again: it restarts")

    async def _overhear(self) -> None:
        assert self.process.stderr is not None
        async for line in lines(self.process.stderr):
            text = line.decode(errors="replace")[:2000]
            self._stderr.append(text)
            self._log.info("%s", text)


def variables(env: Mapping[str, str]) -> dict[str, str]:
    return {**for_any(), serve.PARENT: str(os.getpid()), **env}


async def spawn(module: str, env: Mapping[str, str]) -> Process:
    """Starts a child in a new session, so that Ctrl+C in the terminal does not reach it. `-P` keeps the
    working directory, which may be untrusted, off the import path.
    """
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=variables(env),
            start_new_session=True,
        )
    except OSError as error:
        raise ChildFailed(
            f"{module} cannot be started ({error.strerror})", "free some memory and try again"
        ) from error


ChildState = Literal["idle", "starting", "ready", "failed", "closed"]
MOST_STARTS = 5
WITHIN_SECONDS = 60.0
STDERR_LINES = 200


class ChildProcess:
    """Runs `python -m module`, from the first use or `start()` until `close()` or the end of this process.

    `name` is used in messages ("model"). `on_event`, and the callback of `listen`, are called on the loop and
    must not raise. An instance belongs to the event loop that first uses it.
    """

    def __init__(
        self,
        module: str,
        *,
        name: str = "",
        env: Mapping[str, str] | None = None,
        on_event: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:
        self.state: ChildState = "idle"
        self.name = name or module
        self._module = module
        self.environment = dict(env or {})
        self._on_state: Callable[[ChildState], None] = lambda state: None
        self._on_event = on_event
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._connection: Connection | None = None
        self._forked: ProcessCopy | None = None
        self._starting = asyncio.Lock()

    def listen(self, on_state: Callable[[ChildState], None]) -> None:
        self._on_state = on_state

    @property
    def pid(self) -> int | None:
        return self._connection.process.pid if self._connection and self._connection.alive else None

    @property
    def stderr(self) -> tuple[str, ...]:
        """Last lines, including those of earlier processes."""
        return tuple(self._stderr)

    def fork(self) -> None:
        """Forks the first process, if the platform allows it, for adoption by `start`. Call it before the
        event loop runs.
        """
        if can_fork():
            with suppress(OSError):
                self._forked = fork(self._module, variables(self.environment))

    async def start(self) -> None:
        """Starts it ahead of the first request, which reports a failure."""
        with suppress(ChildFailed):
            await self._connected()

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, timeout: float | None = None
    ) -> Any:
        """Raises the child's exception, or `ChildFailed` if the child died or `timeout` (seconds) passed."""
        connection = await self._connected()
        id, replies = await connection.call(method, params or {})
        try:
            async with asyncio.timeout(timeout):
                while True:
                    match await replies.get():
                        case serve.CallResult(value=value):
                            return value
                        case serve.CallFailed() as failure:
                            raise serve.as_error(failure)
        except TimeoutError:
            what = f"The {self.name} process did not answer {method!r} within {timeout:g} s"
            raise ChildFailed(what, "try again") from None
        finally:
            connection.forget(id)

    async def stream(self, method: str, params: dict[str, Any] | None = None) -> AsyncGenerator[Any, None]:
        """Yields a method's items. Closing the generator cancels the call. Raises as `ask` does."""
        connection = await self._connected()
        id, replies = await connection.call(method, params or {})
        try:
            while True:
                match await replies.get():
                    case serve.StreamItem(value=value):
                        yield value
                    case serve.CallResult():
                        return
                    case serve.CallFailed() as failure:
                        raise serve.as_error(failure)
        finally:
            connection.forget(id)

    async def close(self) -> None:
        """Ends the child for good; pending calls fail."""
        self._enter("closed")
        async with self._starting:
            if self._connection is not None:
                await self._connection.close()

    async def _connected(self) -> Connection:
        async with self._starting:
            if self.state == "closed":
                raise ChildFailed(f"The {self.name} process was closed", "start tui-agent again")
            if self._connection is None or not self._connection.alive:
                # A child may die at every start
                now = time.monotonic()
                if len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_SECONDS:
                    why = f" ({self._stderr[-1]})" if self._stderr else ""
                    what = f"The {self.name} process died {MOST_STARTS} times within a minute{why}"
                    raise ChildFailed(what, "wait a minute and try again, or see `tui-agent doctor`")
                self._starts.append(now)
                self._enter("starting")
                try:
                    forked, self._forked = self._forked, None
                    process = await (adopt(forked) if forked else spawn(self._module, self.environment))
                except ChildFailed:
                    self._enter("failed")
                    raise
                logging.getLogger(f"tui_agent.child.{self.name}").info("started as process %d", process.pid)
                self._connection = Connection(
                    process,
                    self.name,
                    self._stderr,
                    on_ready=lambda: self._enter("ready"),
                    on_event=self._on_event,
                    on_death=lambda: self._enter("failed"),
                )
            return self._connection

    def _enter(self, state: ChildState) -> None:
        if self.state not in ("closed", state):
            self.state = state
            self._on_state(state)
