"""Places of kind `dask`: a task starts `tui-agent worker` and carries its bytes over queues of the
scheduler.

Dask may run a task again when it loses a worker. Each start therefore asks its session first, which
answers one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import AsyncGenerator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tui_agent import __version__
from tui_agent.errors import PlaceLost, install_command
from tui_agent.files.numbers import whole_number
from tui_agent.places.contents import Contents, tar_stream
from tui_agent.places.place import ROOM, RUN, end_all, engine_environment, home_of

if TYPE_CHECKING:
    from distributed import Client

_log = logging.getLogger(__name__)
#: Seconds to reach the scheduler, and until an ended worker is killed.
CONNECT, PATIENCE = 10.0, 1.5
PIECE = 1 << 20


class Cluster:
    """The connection of a session to a scheduler."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self._address = name, address
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    async def client(self) -> Client:
        """Raises `PlaceLost`."""
        async with self._connecting:
            if self._client is not None and self._client.status in ("closed", "closing", "connecting"):
                await self._client.close()
                self._client = None
            if self._client is not None:
                return self._client
            try:
                distributed = await asyncio.to_thread(import_module, "distributed")
            except ImportError as error:
                raise PlaceLost(
                    f"The place {self.name} needs distributed, which is not installed",
                    install_command("tui-agent[cluster]"),
                ) from error
            try:
                client: Client = await distributed.Client(
                    self._address, asynchronous=True, timeout=CONNECT, set_as_default=False
                )
            except (OSError, TimeoutError, ValueError) as error:
                raise PlaceLost(
                    f"The scheduler of {self.name} cannot be reached at {self._address}",
                    "start it, and see that `run` has its address",
                ) from error
            self._client = client
            return client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


class DaskChannel:
    """A worker run by a task of the cluster, as a `Channel`.

    The first start of the task has it; the scheduler's repetitions are refused and count as a loss.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.start = self._said = ""
        self._granted: Any = None
        self._begun = asyncio.Event()
        self._getting: asyncio.Task[Any] | None = None

    async def open(self) -> None:
        """Raises `PlaceLost`."""
        self._client = client = await self._cluster.client()
        from distributed import Queue

        self._queue = Queue
        self._task = f"tui-agent-{secrets.token_hex(8)}"
        self._out = await Queue(names(self._task, "")[0], client=client)
        self._future = client.submit(work, self._task, key=self._task, pure=False, retries=0)
        self._ending = asyncio.ensure_future(_end_of(self._future))

    async def send(self, data: bytes) -> None:
        await self._begun.wait()
        if self._client.status != "running":
            raise BrokenPipeError
        await self._granted.put(data)

    async def receive(self) -> bytes:
        while True:
            self._getting = self._getting or asyncio.ensure_future(self._out.get())
            await asyncio.wait([self._getting, self._ending], return_when=asyncio.FIRST_COMPLETED)
            if not self._getting.done():
                self._said = self._said or self._ending.result()
                return b""
            try:
                start, data, said = self._getting.result()
            except Exception as error:
                _log.debug("the scheduler no longer answers", exc_info=True)
                self._said = f"{type(error).__name__}: {str(error)[:200]}"
                return b""
            finally:
                self._getting = None
            if data:
                if start == self.start:
                    return data
            elif said:
                if start == self.start:
                    self._said = said
                    return b""
            else:
                first = self._granted is None
                queue = await self._queue(names(self._task, start)[1], client=self._client)
                await queue.put(GRANTED if first else b"")
                if not first:
                    self._said = "its machine was lost"
                    return b""
                self.start, self._granted = start, queue
                self._begun.set()

    async def close(self) -> None:
        """Withdraws a task that has not begun."""
        try:
            async with asyncio.timeout(2 * PATIENCE):
                if self._granted is not None:
                    await self._granted.put(b"")
                    await asyncio.wait([self._ending], timeout=PATIENCE)
                await self._client.cancel([self._future], force=True)
                self._out.close()
                if self._granted is not None:
                    self._granted.close()
        except Exception:
            _log.debug("the task was not withdrawn", exc_info=True)
        for task in filter(None, (self._getting, self._ending)):
            task.cancel()

    def reason(self) -> PlaceLost:
        name = self._cluster.name
        if "No module named 'tui_agent" in self._said:
            return PlaceLost(
                f"tui-agent is not installed in {name}", f"install tui-agent {__version__} there"
            )
        words = f" ({self._said})" if self._said else ""
        return PlaceLost(f"The worker in {name} ended early{words}", "see the dashboard of the cluster")


async def _end_of(future: Any) -> str:
    try:
        error = await future.exception()
    except Exception as raised:
        _log.debug("the end of a task is unknown", exc_info=True)
        error = raised
    return "" if error is None else f"{type(error).__name__}: {str(error)[:200]}"


async def packed(contents: Contents) -> AsyncGenerator[bytes, None]:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    archive = tar_stream(contents, {path: item.mtime for path, item in contents.items.items()}, {})

    def next_piece() -> bytes:
        made = bytearray()
        for data in archive:
            made += compressor.compress(data)
            if len(made) >= PIECE:
                return bytes(made)
        return bytes(made) + compressor.flush()

    while True:
        piece = await asyncio.to_thread(next_piece)
        yield piece
        if len(piece) < PIECE:
            return


#: Seconds of silence after which the session counts as gone.
SILENCE = 30.0
GRANTED = b"begin"


def names(task: str, start: str) -> tuple[str, str]:
    """Returns the queues to the session, and to one start of the task."""
    return f"{task}-out", f"{task}-in-{start}"


def work(task: str) -> None:
    """Returns when the session ends the worker, or is silent."""
    from distributed import Queue, get_client

    client, start = get_client(), secrets.token_hex(8)
    sending, receiving = (Queue(name, client=client) for name in names(task, start))
    try:
        sending.put((start, b"", ""))
        if receiving.get(timeout=SILENCE) == GRANTED:
            _work(start, sending, receiving)
    except TimeoutError:
        return
    finally:
        for queue in (sending, receiving):
            queue.close()


def _work(start: str, sending: Any, receiving: Any) -> None:
    with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory(prefix="tui-agent-") as folder:
        given, to_worker = os.pipe()
        from_worker, printed = os.pipe()
        with open(to_worker, "wb", buffering=0) as feed, open(from_worker, "rb", buffering=0) as output:
            try:
                pid = _starter.start(start, folder, (given, printed, said.fileno()))
            finally:
                os.close(given)
                os.close(printed)
            ended = threading.Event()

            def relay() -> None:
                while data := output.read(1 << 18):
                    sending.put((start, data, ""))
                ended.set()
                said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
                line = said.read().decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
                sending.put((start, b"", line or "without a word"))

            relaying = threading.Thread(target=relay, daemon=True)
            relaying.start()
            try:
                with suppress(BrokenPipeError):
                    while rest := memoryview(receiving.get(timeout=SILENCE)):
                        while rest:
                            rest = rest[feed.write(rest) :]
            finally:
                feed.close()
                if not ended.wait(PATIENCE):
                    with suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                if home_of(start).exists():  # The worker removes it last.
                    end_all(start)
                relaying.join(PATIENCE)


class WorkerStarter:
    """Starts the workers of this machine as forks of a process that has imported their modules. That process ends with
    this one, or after some time without a task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def start(self, name: str, folder: str, streams: tuple[int, int, int]) -> int:
        """Returns the id of a process that leads a group of its own. Raises OSError."""
        words = (sys.executable, "-P", "-m", "tui_agent", "worker")
        environment = engine_environment(os.environ)
        if sys.platform != "linux":
            return subprocess.Popen(
                words,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                cwd=folder,
                env={**environment, RUN: name},
                start_new_session=True,
            ).pid
        with self._lock:
            for _ in range(2):  # It may have ended meanwhile.
                if self._requests is None:
                    self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    with theirs:
                        self._process = subprocess.Popen(
                            (*words, "--forks"),
                            stdin=theirs.fileno(),
                            stdout=subprocess.DEVNULL,
                            stderr=streams[2],
                            env={**environment, ROOM: name},
                            start_new_session=True,
                        )
                with suppress(OSError):
                    socket.send_fds(self._requests, [f"{name}\0{folder}".encode()], streams)
                    if answer := self._requests.recv(32):
                        return whole_number(answer)
                self._requests.close()
                self._requests = None
        raise ChildProcessError("the worker ended at its start")


_starter = WorkerStarter()
