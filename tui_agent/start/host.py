"""The host (Linux only): a single-threaded process that has drawn a first frame, and forks a program for each
screen.

One, the *spare*, waits for a terminal. The host only passes on connections; its end does not affect
sessions. It exits after some idle time.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import select
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

import textual

import tui_agent
from tui_agent.control import sockets
from tui_agent.start import ACCEPTED, END, LOCK, READY
from tui_agent.start.spare import Spare
from tui_agent.ui.textual_patches.sequences import known

#: Seconds from a start until the next spare is forked, and from a spare that failed.
RENEW_AFTER, AFTER_FAILURE = 0.1, 15.0
#: Modules of other commands and of child processes, with the libraries that only these import.
_OF_OTHERS = (
    *("tui_agent.browser", "tui_agent.editors", "tui_agent.headless", "tui_agent.mcp_servers"),
    *("tui_agent.rehearsal.demo", "tui_agent.rehearsal.project"),
    *("tui_agent.model.worker", "tui_agent.model.direct_client", "tui_agent.model.litellm_client"),
    *("tui_agent.model.completion", "tui_agent.model.http_clients", "tui_agent.model.httpcore_patch"),
    *("tui_agent.model.connections", "tui_agent.model.event_stream"),
    *("tui_agent.web.page_reader", "tui_agent.workspace.worker", "tui_agent.workspace.watcher"),
    *("tui_agent.model.provider_errors", "tui_agent.model.request_errors"),
    *("tui_agent.model.failures", "tui_agent.model.wires.generate", "tui_agent.model.wires.messages"),
    *("tui_agent.model.wires.responses", "tui_agent.git.commits", "tui_agent.git.repository"),
    *("tui_agent.git.worktrees", "tui_agent.workspace.git_listing", "tui_agent.session.worker"),
    *("tui_agent.log.web_page", "tui_agent.places.proof"),
)
#: Those of `_OF_OTHERS` that a session imports when it needs them.
_OF_SESSIONS = (
    "tui_agent.headless.event_lines",
    "tui_agent.headless.running_sessions",
    "tui_agent.mcp_servers.client",
    "tui_agent.mcp_servers.offer",
    "tui_agent.mcp_servers.servers",
)


class Program:
    def __init__(self, channel: socket.socket) -> None:
        #: Receives connections, and returns messages. Closed when the program ends.
        self.channel = channel
        self.is_ready = self.is_given = self.is_accepted = False


class ProgramHost:
    def __init__(
        self, server: socket.socket, place: Path, lock: int, files: tuple[object, ...], idle: float
    ) -> None:
        """`server` listens at `place`; both are removed at the end. `lock` is the descriptor that is locked
        for it, `files` the `_fingerprint` of the imported modules.
        """
        self._server, self._place, self._lock, self._idle = server, place, lock, idle
        self._programs: dict[int, Program] = {}
        self._files = files
        self._since = time.monotonic()
        self._renew_at = 0.0
        self._ends = self._is_resized = False
        self._poll = select.poll()
        self._poll.register(server, select.POLLIN)

    def run(self) -> socket.socket | None:
        """Serves until it is idle for long, or its files have changed, and then ends the process.

        Returns its channel in each program, and `None` in the host if its frame has the wrong size.
        """
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            is_asked = False
            while not self._ends:
                if self._spare() is None and (is_asked or time.monotonic() >= self._renew_at):
                    if self._is_resized and not is_asked:
                        self._is_resized = False
                        return None
                    if (channel := self._fork()) is not None:
                        return channel
                is_asked = False
                now = time.monotonic()
                due = [self._since + self._idle + 0.001]
                if self._spare() is None:
                    due.append(self._renew_at)
                for number, _ in self._poll.poll(max(1, round((min(due) - now) * 1000))):
                    if number != self._server.fileno():
                        self._hear(self._programs[number])
                    elif self._spare() is not None:
                        self._accept()
                    else:
                        is_asked = True
                if not any(one.is_accepted for one in self._programs.values()):
                    self._ends |= time.monotonic() - self._since > self._idle
                else:
                    self._since = time.monotonic()
            self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self) -> NoReturn:
        """Removes the socket. Programs without a terminal end, because their channel is closed."""
        with suppress(OSError):
            os.unlink(self._place)
        with suppress(OSError):
            os.unlink(self._place.with_suffix(LOCK))
        os._exit(0)

    def _spare(self) -> Program | None:
        free = [one for one in self._programs.values() if not one.is_given]
        return next((one for one in free if one.is_ready), free[0] if free else None)

    def _fork(self) -> socket.socket | None:
        """Returns the channel in the program. The host ends with more than one thread or without a fork."""
        if len(os.listdir("/proc/self/task")) != 1:
            self._ends = True
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pid = os.fork()
        except OSError:
            self._ends = True
            return None
        if pid:
            theirs.close()
            self._programs[ours.fileno()] = Program(ours)
            self._poll.register(ours, select.POLLIN)
            return None
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        os.close(self._lock)
        self._server.close()
        ours.close()
        for program in self._programs.values():
            program.channel.close()
        return theirs

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:
            return
        with connection:
            if not sockets.is_ours(connection):
                return
            self._since = time.monotonic()
            if _fingerprint() != self._files:
                self._ends = True
                return
            program = self._spare()
            assert program is not None
            with suppress(OSError):  # a launcher that no longer waits leaves the program to the next one
                if not program.is_ready:
                    connection.send(b'{"type": "wait"}\n')
                socket.send_fds(program.channel, [b"c"], [connection.fileno()])
                program.is_given = True
                self._renew_at = time.monotonic() + RENEW_AFTER

    def _hear(self, program: Program) -> None:
        try:
            message = program.channel.recv(64)
        except OSError:
            message = b""
        if not message:
            self._poll.unregister(program.channel)
            del self._programs[program.channel.fileno()]
            program.channel.close()
            if not program.is_given:
                self._renew_at = time.monotonic() + AFTER_FAILURE
        elif message == READY:
            program.is_ready = True
        elif message == END:
            self._ends = True
        elif message.startswith(ACCEPTED):
            program.is_accepted = True
            before = shutil.get_terminal_size()
            columns, _, lines = message[1:].partition(b"x")
            os.environ.update(COLUMNS=columns.decode(), LINES=lines.decode())
            self._is_resized |= shutil.get_terminal_size() != before


def serve(folder: Path, name: str, lock: int, idle: float) -> int:
    """Runs the host at the socket `name`, whose `lock` is held. Returns its exit status."""
    import_everything()
    if not known():
        return 1  # a version of Textual whose terminal cannot be parked
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no program stays as a zombie
    files = _fingerprint()

    @cache
    def host() -> ProgramHost:
        return ProgramHost(sockets.listening(folder, name), folder / name, lock, files, idle)

    Spare(lambda: host().run()).run()


def import_everything() -> None:
    """Imports all that a session may import later, because another version may replace files while it runs."""
    for found in pkgutil.walk_packages(tui_agent.__path__, "tui_agent."):
        name = found.name
        is_of_sessions = name in _OF_SESSIONS or not name.startswith(_OF_OTHERS)
        if is_of_sessions and not name.endswith("__main__"):
            with suppress(ModuleNotFoundError):
                importlib.import_module(name)


def _fingerprint() -> tuple[object, ...]:
    """Changes with each replaced file of the program, and each library that is installed or removed."""
    paths = [
        path
        for name, module in list(sys.modules.items())
        if name.startswith("tui_agent") and (path := getattr(module, "__file__", None))
    ]
    paths += [os.path.dirname(textual.__path__[0]), os.path.dirname(tui_agent.__file__)]
    try:
        return tuple((status.st_mtime_ns, status.st_ino) for status in map(os.stat, paths))
    except OSError:
        return (time.monotonic(),)
