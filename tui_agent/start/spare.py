"""A program that the host has forked after it drew a first frame for no terminal; it waits for one.

A launcher hands over its terminal, folder, variables, umask and limits. If the start
is unusual (a wrong option, a question before the screen), the program refuses, and the launcher starts
cold.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import click
from click.exceptions import Exit
from textual.events import Resize
from textual.geometry import Size

from tui_agent import cli, debug_log
from tui_agent.control.launcher import is_one_terminal
from tui_agent.control.server import LentTerminal, receive
from tui_agent.errors import TuiAgentError
from tui_agent.files.numbers import whole_number
from tui_agent.headless import arguments, output
from tui_agent.headless.arguments import ScreenOptions
from tui_agent.headless.running_sessions import detached_in
from tui_agent.processes.serve import trim_memory
from tui_agent.settings import loading
from tui_agent.settings.folders import user_folders
from tui_agent.start import ACCEPTED, END, READY
from tui_agent.ui.app import Beginning, WorkspaceApp
from tui_agent.ui.run import run_app
from tui_agent.ui.textual_patches.forked_loop import ForkableLoop

#: Seconds in which a launcher must send its request, and its maximum bytes.
WITHIN, MOST_BYTES = 1.0, 4_000_000
#: Seconds for timers and frames that are due, which would otherwise run in each program.
DUE = 0.1
#: Of a request: the three standard streams and the folder.
DESCRIPTORS = 4
_WORDS_FROM, _WORDS_TO = 48, 49
#: The host's stream objects. Closing them would close the new descriptors.
_before: list[Any] = []


class UnusualStart(Exception):
    """The start is not a usual one."""


_UNUSUAL = (
    *(UnusualStart, TuiAgentError, click.ClickException, Exit, OSError),
    *(ValueError, LookupError, TypeError, RecursionError),
)


class Spare:
    """A program without a terminal, until `_arrive` gets one."""

    def __init__(self, fork: Callable[[], socket.socket | None]) -> None:
        """`fork` is `ProgramHost.run`."""
        self._fork = fork
        self._loop = ForkableLoop()
        #: In the host `None`.
        self._channel: socket.socket | None = None
        self._lent: LentTerminal | None = None
        self._drawn_as: dict[str, Any] = {}
        self._files: tuple[object, ...] = ()
        self._wanted: dict[str, Any] = {}

    def run(self) -> NoReturn:
        """Ends the process with the status of the session."""
        status = 1
        try:
            with debug_log.defer_output():
                status = self._draw(asyncio.Runner(loop_factory=lambda: self._loop))
                if self._channel is not None and self._lent is None:
                    status = self._draw(None)
                if self._wanted and self._lent is not None:
                    status = run_app(**self._wanted, lent=self._lent, serve=cli.serve)
        except TuiAgentError as error:
            output.error(f"{error.what}: {error.remedy}")
            status = error.exit_status
        except Exception as error:
            found = debug_log.fault("unexpected error", error)
            output.error(f"{found.what}: {found.remedy}")
            status = found.exit_status
        finally:
            sys.stderr.flush()
            if self._lent is not None:  # closed, unless the session could not be opened
                self._lent.send({"type": "ended", "status": status})
            debug_log.stop()
            os._exit(status)

    def _draw(self, loop: asyncio.Runner | None) -> int:
        config = user_folders().config
        loaded = loading.load(None, None, False, ())
        self._files = _files(config)
        self._drawn_as = {
            "theme": loaded.settings.theme,
            "keys": loaded.settings.keys,
            "plain": loaded.settings.screen.plain,
            "follows_background": "theme" not in loaded.sources,
            "folders": (config,),
            "begin_with": (),
        }
        return run_app(_never, **self._drawn_as, loop=loop, arrival=self._arrive)

    async def _arrive(self, app: WorkspaceApp) -> Beginning | None:
        """Waits for a launcher. Returns `None` if its screen has to be another one."""
        if self._channel is None:
            self._channel = await self._forked(app)
            if self._is_outdated():
                return None
        try:
            self._channel.send(READY)
        except OSError:
            os._exit(0)
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()
        loop.add_reader(self._channel, lambda: arrived.done() or arrived.set_result(None))
        await arrived
        loop.remove_reader(self._channel)
        descriptors: list[int] = []
        with suppress(OSError):
            receive(self._channel, descriptors)
        if not descriptors:
            os._exit(0)
        connection = socket.socket(fileno=descriptors[0])
        try:
            request, descriptors = _received(connection)
            _adopt(request, descriptors)
            wanted = cli.screen_arguments(_options(request["words"]))
            if not loading.load(user_folders(), None, False, ()).settings.start.keep_ready:
                self._channel.send(END)
                raise UnusualStart
            size = b"%dx%d" % tuple(request["size"])
            connection.send(b'{"type": "accepted"}\n')
            with suppress(OSError):
                self._channel.send(ACCEPTED + size)
        except _UNUSUAL:
            with suppress(OSError):
                connection.send(b'{"type": "refused"}\n')
            os._exit(0)
        _set_title(request["words"])
        debug_log.start(user_folders().state)
        self._lent = LentTerminal(connection, True, True)
        differs = any(wanted[name] != value for name, value in self._drawn_as.items())
        if differs or self._is_outdated() or os.environ.get("NO_COLOR"):
            self._wanted = wanted
            return None
        return Beginning(wanted["open_session"], wanted["reopen"], wanted["pick_from"], cli.serve, self._lent)

    async def _forked(self, app: WorkspaceApp) -> socket.socket:
        while True:
            await asyncio.sleep(DUE)
            gc.collect()
            gc.freeze()  # a collection in a program would copy the pages of all objects
            trim_memory()
            if (channel := self._fork()) is not None:
                self._loop.renew()
                return channel
            size = Size(*shutil.get_terminal_size())
            app.post_message(Resize(size, size))

    def _is_outdated(self) -> bool:
        return _files(*self._drawn_as["folders"]) != self._files


def _files(config: Path) -> tuple[object, ...]:
    """The states of the user's files that the first frame depends on."""
    paths = [config / "settings.toml", config / "keys.toml", *sorted((config / "themes").glob("*"))]
    found = []
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            found.append((path.name, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


async def _never() -> NoReturn:
    raise AssertionError("no launcher has arrived")


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    connection.settimeout(WITHIN)
    connection.send(b'{"type": "ready", "pid": %d}\n' % os.getpid())
    data = bytearray()
    descriptors: list[int] = []
    while not data.endswith(b"\n"):
        piece = receive(connection, descriptors)
        data += piece
        if not piece or len(data) > MOST_BYTES or len(descriptors) > DESCRIPTORS:
            raise UnusualStart
    connection.settimeout(None)
    request = json.loads(data)
    if not isinstance(request, dict) or request.get("type") != "start" or len(descriptors) != DESCRIPTORS:
        raise UnusualStart
    if not is_one_terminal(descriptors[:3]) or not stat.S_ISDIR(os.fstat(descriptors[3]).st_mode):
        raise UnusualStart
    return request, descriptors


def _adopt(request: Mapping[str, Any], descriptors: list[int]) -> None:
    """Takes over the launcher's streams, folder, variables, umask and limits. Raises `OSError` and
    `ValueError`.
    """
    os.fchdir(descriptors[3])
    for number in range(3):
        os.dup2(descriptors[number], number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["variables"])
    os.umask(request["umask"])
    for number, soft, hard in request["limits"]:
        if resource.getrlimit(number) != (soft, hard):
            resource.setrlimit(number, (soft, hard))
    _before.extend((sys.stdin, sys.stdout, sys.stderr))
    sys.stdin = sys.__stdin__ = TextIOWrapper(FileIO(0, closefd=False))
    sys.stdout = sys.__stdout__ = TextIOWrapper(
        FileIO(1, "w", closefd=False), errors="backslashreplace", line_buffering=True
    )
    sys.stderr = sys.__stderr__ = TextIOWrapper(
        FileIO(2, "w", closefd=False), errors="backslashreplace", line_buffering=True
    )


def _options(words: list[str]) -> ScreenOptions:
    """Returns options that open the screen without a question. Raises `UnusualStart` and errors of the
    command line.
    """
    command = cli.tui_agent.commands["open"]
    given = command.make_context("tui-agent", list(words)).params
    path, resume = given.pop("path"), given.pop("resume")
    options = cli.options_of(path, resume, given)
    cli.needs_a_terminal()
    if options.record or options.replay or (not options.named and arguments.why_ask_first(options.workspace)):
        raise UnusualStart
    if options.resume is None and not options.continue_newest and any(detached_in(options.workspace)):
        raise UnusualStart
    return options


def _set_title(words: list[str]) -> None:
    with suppress(OSError, ValueError):
        Path("/proc/self/comm").write_text("tui-agent")
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (whole_number(fields[at - 3]) for at in (_WORDS_FROM, _WORDS_TO))
        title = "\0".join(("tui-agent", *words)).encode(errors="surrogateescape")[: end - start - 1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(title.ljust(end - start, b"\0"))
