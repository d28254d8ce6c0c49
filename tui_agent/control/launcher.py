"""Hands this process's terminal to a running session and waits until it is returned."""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import sys
import termios
from collections.abc import Callable, Iterator
from typing import Any

from tui_agent.control import sockets
from tui_agent.control.shell import can_be_continued
from tui_agent.control.sockets import SessionSocket
from tui_agent.control.terminal_variables import present
from tui_agent.errors import SessionError

#: Takes back all modes of the screen, for a session that was killed.
RESET = (
    "\x1b[?2004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
ENDED_BY_SIGNAL = 128


def attach(place: SessionSocket, note: Callable[[str], object]) -> int:
    """Attaches this terminal to a session, and to those that the user opens there. Returns the exit status. `note`
    prints a last line. Raises `SessionError`."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SessionError(
            "a session needs a terminal, and standard input or output is not one",
            "run this in a terminal, or use `tui-agent logs`",
        )
    while True:
        with sockets.reach(place) as connection:
            connection.settimeout(None)
            launcher = Launcher(connection)
            status, words = launcher.run()
        following = sockets.of_session(launcher.moved_to) if launcher.moved_to else None
        if following is None:
            if words:
                note(f"tui-agent: {words}\n")
            return status
        place = following


class Launcher:
    """The process that owns the terminal while a session draws on it."""

    def __init__(self, connection: socket.socket) -> None:
        """`connection` is a new connection to the session."""
        self._connection = connection
        self._input = bytearray()
        self._before: list[Any] | None = None
        self._signals: list[int] = []
        self._is_in_use = False
        #: The id of the session that the user opened in place of this one; "" for none.
        self.moved_to = ""

    def run(self) -> tuple[int, str]:
        """Attaches until the session ends or leaves the terminal. Returns the exit status and a sentence. Raises
        `SessionError`."""
        self._before = termios.tcgetattr(0)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT, signal.SIGINT):
            signal.signal(number, lambda number, _: self._signals.append(number))
        self._hand_over()
        try:
            while True:
                ready, _, _ = select.select([self._connection, reader], [], [])
                if reader in ready:
                    os.read(reader, 256)
                for number in self._taken_signals():
                    if number in (signal.SIGTERM, signal.SIGHUP):
                        return ENDED_BY_SIGNAL + number, ""
                    if number == signal.SIGWINCH:
                        self._send({"type": "resized"})
                if self._connection in ready:
                    for message in self._messages():
                        if (ended := self._handle(message)) is not None:
                            return ended
        finally:
            signal.set_wakeup_fd(-1)
            self._restore()

    def _taken_signals(self) -> list[int]:
        taken, self._signals = self._signals, []
        return taken

    def _hand_over(self) -> None:
        message = {"type": "attach", "environment": present(), "can_stop": can_be_continued()}
        data = json.dumps(message).encode() + b"\n"
        rights = array.array("i", [0, 1])
        self._is_in_use = True
        sent = self._connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        self._connection.sendall(data[sent:])

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the session has ended, which the next read reports

    def _messages(self) -> Iterator[dict[str, Any]]:
        try:
            data = self._connection.recv(65_536)
        except TimeoutError:
            return
        except OSError:
            data = b""
        if not data:
            yield {"type": "lost"}
            return
        self._input += data
        while (end := self._input.find(b"\n")) >= 0:
            line = bytes(self._input[:end])
            del self._input[: end + 1]
            yield json.loads(line)

    def _handle(self, message: dict[str, Any]) -> tuple[int, str] | None:
        """Returns the end, or None."""
        match message:
            case {"type": "detached", "words": words}:
                self._is_in_use = False
                return 0, str(words)
            case {"type": "moved", "session": session}:
                self._wait_for_end()
                self.moved_to = str(session)
                return 0, ""
            case {"type": "suspended"}:
                self._stop()
            case {"type": "ended", "status": status}:
                self._wait_for_end()
                self._is_in_use = False
                return int(status), ""
            case {"type": "lost"}:
                raise SessionError("the session ended unexpectedly", "`tui-agent --resume` opens it again")
            case {"type": "result", "ok": False, "error": error}:
                self._is_in_use = False
                return 1, str(error)
        return None

    def _stop(self) -> None:
        self._restore()
        self._is_in_use = False
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self._before = termios.tcgetattr(0)
        self._hand_over()

    def _wait_for_end(self) -> None:
        self._connection.settimeout(10)
        try:
            while self._connection.recv(65_536):
                pass
        except OSError:
            pass

    def _restore(self) -> None:
        try:
            if self._is_in_use:
                os.write(1, RESET.encode())
            if self._before is not None:
                termios.tcsetattr(0, termios.TCSANOW, self._before)
        except (OSError, termios.error):
            pass  # the terminal has closed
