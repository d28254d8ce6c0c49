"""The worker's side of a sub-task in a place: the same session over a copy of the folder."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec.structs import replace

from tui_agent import __version__
from tui_agent.edits.change import Pick
from tui_agent.errors import FileError, PlaceLost, SessionError, TuiAgentError, UsageError
from tui_agent.files.blobs import Blobs
from tui_agent.log.core import Core
from tui_agent.log.journal import Journal
from tui_agent.log.storage import Storage
from tui_agent.model.rate_limit import Allowance
from tui_agent.places.link import PROTOCOL, EventHappened, Hello, Link, TextStored
from tui_agent.places.place import RUN, end_all, home_of, mark
from tui_agent.processes.serve import Handler, Send, redirect_output
from tui_agent.session.preparation import prepare_process
from tui_agent.session.session import Session
from tui_agent.settings.folders import HOME_VARIABLE, user_folders
from tui_agent.settings.loading import LoadedSettings, Prompts
from tui_agent.settings.schema import PlaceSettings
from tui_agent.store import events as e
from tui_agent.store.events import Store
from tui_agent.store.state import State
from tui_agent.subtasks.parent import Capacity, RunSession, SubTaskPart
from tui_agent.subtasks.placed import SENT, Assignment, LinkModel, settings_from
from tui_agent.workspace.workspace import Workspace

#: Seconds for the session's end, and without a request until a process that forks workers ends.
PATIENCE, IDLE = 0.7, 10.0
#: Free bytes below which a failure is attributed to the disk.
ROOM = 1 << 20
#: Events whose texts the parent needs.
_WITH_TEXTS = (e.ChangeProposed, e.ChangeReworked, e.ChangeMoved, e.CheckpointMade)
_KEY = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


class StandardStreams:
    def __init__(self, output: int) -> None:
        self._output = output
        self._input = asyncio.StreamReader(limit=1 << 20)

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._input), sys.stdin)

    async def send(self, data: bytes) -> None:
        await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._output, rest) :]

    async def receive(self) -> bytes:
        return await self._input.read(1 << 18)

    async def close(self) -> None:
        """The process ends next."""

    def reason(self) -> PlaceLost:
        return PlaceLost("The session has ended the worker", "run it again")


class Worker:
    def __init__(self, channel: StandardStreams, home: Path) -> None:
        self._home = home
        self._archive = home / "copy.tar.gz"
        self._session: Session | None = None
        self._sent: set[str] = set()
        handlers = (self.unpack, self.begin, self.turn, self.apply)
        named: dict[str, Handler] = {handler.__name__: handler for handler in handlers}
        self.link = Link(channel, named)
        self.link.post(Hello(PROTOCOL, __version__))

    async def unpack(self, params: dict[str, Any], send: Send) -> None:
        piece = msgspec.convert(params["piece"], bytes)
        try:
            with self._archive.open("ab") as file:
                file.write(piece)
        except OSError as error:
            raise _of_the_disk(error) from error

    async def begin(self, params: dict[str, Any], send: Send) -> None:
        """Raises `SessionError` and `FileError`."""
        try:
            given = msgspec.convert(params, Assignment)
            settings = settings_from(given.settings)
        except ValueError as error:
            raise SessionError(
                f"The sub-task cannot be read here ({error})", "install the same version"
            ) from error
        commands = tuple(replace(check, place=given.place) for check in settings.checks.commands)
        settings = replace(
            settings,
            places=(PlaceSettings(given.place, "sh -c {command}", model=given.commands),),
            subtasks=replace(settings.subtasks, max_depth=0),
            checks=replace(settings.checks, commands=commands),
        )
        root = Path.cwd()
        try:
            if self._archive.exists():
                root = self._home / "copy"
                root.mkdir()
                await asyncio.to_thread(shutil.unpack_archive, self._archive, root, "gztar", filter="tar")
                self._archive.unlink()
            folders = user_folders()
            folders.config.mkdir(parents=True)
            for name, text in given.instructions.items():
                (folders.config / os.path.basename(name)).write_text(text, encoding="utf-8")
        except OSError as error:
            raise _of_the_disk(error) from error
        journal = Journal(Store(State()), None)
        core = Core(
            journal,
            Workspace(root, watched=False),
            Storage(None, None, Blobs(self._home / "blobs"), self._home / "session"),
            LoadedSettings(settings),
            folders,
        )
        self._session = session = Session(
            core,
            start_folder=given.start_folder,
            model=LinkModel(lambda: self.link),
            model_name=given.model,
            interactive=False,
            part=SubTaskPart(given.part, root, Capacity(1), Allowance(), given.only),
            open_child=_no_child,
            open_placed=_no_child,
            prompts=Prompts(given.prompts),
        )
        session.subscribe(self._forward)
        await journal.record(e.SessionStarted(given.task.id, str(root), version=__version__))
        for name, effort in given.efforts.items():
            await journal.record(e.EffortChosen(name, effort))  # ty: ignore[invalid-argument-type]
        journal.publish(e.SessionOpened(given.trusted))
        session.workspace.start(given.paths)

    async def turn(self, params: dict[str, Any], send: Send) -> None:
        session = self._opened()
        await session.chat.submit(params["text"], params["attachments"])
        await session.chat.finished()
        if not session.state.turn.ok:
            self._see_room()

    async def apply(self, params: dict[str, Any], send: Send) -> None:
        """Raises `FileError` and `PlaceLost`."""
        try:
            await self._opened().review.apply(msgspec.convert(params["picks"], list[Pick]))
        except TuiAgentError:
            self._see_room()
            raise

    def _see_room(self) -> None:
        """Raises `PlaceLost` after a failure on a full disk, so that the sub-task restarts elsewhere."""
        if any(
            shutil.disk_usage(folder).free < ROOM for folder in (self._home, self._opened().workspace.root)
        ):
            raise PlaceLost("The disk of the place is full", "free some space there")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close(within=PATIENCE)

    def _opened(self) -> Session:
        if self._session is None:
            raise SessionError("The worker has no sub-task", "this is an error in tui-agent")
        return self._session

    def _forward(self, event: e.Event, state: State) -> None:
        if type(event).__name__ not in SENT:
            return
        plain = msgspec.to_builtins(event)
        if isinstance(event, _WITH_TEXTS):
            blobs = self._opened().storage.blobs
            for key in _KEY.findall(str(plain)):
                if key not in self._sent and blobs.has(key):
                    self._sent.add(key)
                    with suppress(FileError):
                        self.link.post(TextStored(blobs.get(key)))
        self.link.post(EventHappened(plain))


async def _no_child(*_: Any, **__: Any) -> RunSession:
    raise SessionError("A sub-task in a place is not split", 'set subtasks.place to ""')


def _of_the_disk(error: OSError) -> FileError:
    return FileError(
        f"The copy in the place could not be written ({error.strerror})", "free some space there"
    )


def run_forks() -> NoReturn:
    """Forks a worker for each request on standard input, a socket: its name and folder, with its standard streams.
    Answers with the id of its process. Ends with the other side, or after some time without a request."""
    requests = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no worker stays as a zombie
    is_prepared = False
    while select.select([requests], (), (), IDLE)[0]:
        request, streams, _, _ = socket.recv_fds(requests, 1 << 13, 3)
        if not request:
            break
        pid = os.fork()
        if not pid:
            requests.close()
            _become(request, streams)
        for stream in streams:
            os.close(stream)
        requests.send(str(pid).encode())
        if not is_prepared:  # The first fork does not wait for this.
            is_prepared = True
            prepare_process()
            gc.collect()
            gc.freeze()  # otherwise a collection in a worker would copy the pages of all objects
    os._exit(0)


def _become(request: bytes, streams: Sequence[int]) -> NoReturn:
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        name, folder = os.fsdecode(request).split("\0")
        mark(name)
        os.chdir(folder)
        run()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def run() -> NoReturn:
    if not stat.S_ISFIFO(mode := os.fstat(0).st_mode) and not stat.S_ISSOCK(mode):
        raise UsageError(
            "Standard input is closed", "keep it open, such as -i of docker run and kubectl exec"
        )
    output, name = redirect_output(), os.environ.setdefault(RUN, secrets.token_hex(8))
    home = home_of(name)
    home.mkdir(mode=0o700)
    os.environ[HOME_VARIABLE] = str(home)
    try:
        asyncio.run(_work(output, home, name))
    finally:
        _end(name)


async def _work(output: int, home: Path, name: str) -> None:
    streams = StandardStreams(output)
    await streams.open()
    worker = Worker(streams, home)
    ended = asyncio.ensure_future(worker.link.ended())
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.cancel)
    await asyncio.wait([ended])
    await worker.link.close()  # After a signal, as by a queue, nothing is sent: the machine counts as lost.
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE + 0.3):
            await worker.close()
    _end(name)


def _end(name: str) -> NoReturn:
    end_all(name)
    os._exit(0)
