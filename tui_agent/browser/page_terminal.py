"""The pseudo-terminal of a page, attached to a session through its control socket like any terminal."""

from __future__ import annotations

import array
import asyncio
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import Mapping
from typing import Any

from tui_agent.control import sockets
from tui_agent.control.sockets import SessionSocket
from tui_agent.errors import SessionError

#: Bytes of output per frame. The next are read when the page has taken these.
_AT_ONCE = 65_536
#: Largest and smallest size, in cells.
_WIDEST, _NARROWEST = 1000, 2
#: The terminal that xterm.js emulates.
_ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "xterm.js"}
#: Runs a program whose terminal is the one that is named first: a session's first terminal is its own.
_IN_TERMINAL = ("/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1')
#: Seconds within which a session must accept a terminal, or release it at its end.
_WITHIN = 30.0


class PageTerminal:
    """A pseudo-terminal that a session draws on. `session` is the id of that session."""

    def __init__(self, columns: int, rows: int) -> None:
        """Raises `OSError` if the system has no free terminal."""
        self.session = ""
        self._master, self._slave = pty.openpty()
        self._connection: socket.socket | None = None
        #: The program that runs in the terminal in place of the session, such as an editor.
        self._program: asyncio.Task[None] | None = None
        os.set_blocking(self._master, False)
        self._set_size(columns, rows)

    def close(self) -> None:
        """Closes the terminal; the session continues without it. Idempotent."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for descriptor in (self._master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)
        self._master = self._slave = -1

    async def attach(self, place: SessionSocket) -> None:
        """Raises `SessionError`."""
        if self._connection is not None:
            self._connection.close()
        self._connection = await asyncio.to_thread(sockets.reach, place, _WITHIN)
        self.session = place.session
        message = {"type": "attach", "environment": _ENVIRONMENT, "can_stop": False, "can_run": True}
        rights = array.array("i", [self._slave, self._slave])
        try:
            self._connection.sendmsg(
                [json.dumps(message).encode() + b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
            )
        except OSError as error:
            raise SessionError(f"the session {place.session} has just ended", "reload the page") from error
        self._connection.setblocking(False)

    async def read(self) -> bytes:
        """The next output; empty at the end."""
        while self._master >= 0:
            await self._ready(self._master, writing=False)
            try:
                return os.read(self._master, _AT_ONCE)
            except BlockingIOError:
                continue
            except OSError:
                return b""
        return b""

    def read_now(self) -> bytes:
        """The output that is there already."""
        try:
            return os.read(self._master, _AT_ONCE)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Sends typed bytes, as fast as the session reads them."""
        while data and self._master >= 0:
            await self._ready(self._master, writing=True)
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                continue

    def resize(self, columns: int, rows: int) -> None:
        self._set_size(columns, rows)
        self._send({"type": "resized"})

    async def ended(self) -> str:
        """Waits until no session uses the terminal. Returns the reason as a sentence. Follows the user to other
        sessions and updates `session`. Raises `SessionError` if the next session cannot be reached."""
        while True:
            message = await self._end_of_attach()
            match message:
                case {"type": "moved", "session": str(session)}:
                    place = sockets.of_session(session)
                    if place is None:
                        return f"The session {session} has ended."
                    await self.attach(place)
                case {"type": "detached", "words": str(words)}:
                    return words or "The session is open in another terminal."
                case {"type": "result", "ok": False, "error": str(error)}:
                    return error
                case _:
                    return "The session has ended."

    async def _end_of_attach(self) -> Mapping[str, Any]:
        """The message that ends this attach; empty if the connection is lost."""
        buffer = bytearray()
        while self._connection is not None:
            await self._ready(self._connection.fileno(), writing=False)
            try:
                data = self._connection.recv(_AT_ONCE)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                return {}
            buffer += data
            while (end := buffer.find(b"\n")) >= 0:
                message = json.loads(bytes(buffer[:end]))
                del buffer[: end + 1]
                if message.get("type") in ("moved", "ended"):
                    await self._released()
                if message.get("type") == "run" and (self._program is None or self._program.done()):
                    self._program = asyncio.create_task(self._run(message["words"], message["folder"]))
                if message.get("type") in ("moved", "ended", "detached", "result"):
                    return message
        return {}

    async def _run(self, words: list[str], folder: str) -> None:
        """Starts a program in the terminal, and reports its end. A page that goes ends it by SIGHUP."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(*_IN_TERMINAL, os.ttyname(self._slave), *words),
                cwd=folder,
                env={**os.environ, **_ENVIRONMENT},
                start_new_session=True,
            )
            status = await process.wait()
        except OSError:  # the folder is gone
            status = 127
        self._send({"type": "ran", "status": status})

    async def _released(self) -> None:
        assert self._connection is not None
        try:
            async with asyncio.timeout(_WITHIN):
                while await asyncio.get_running_loop().sock_recv(self._connection, _AT_ONCE):
                    pass
        except (OSError, TimeoutError):
            pass  # the session has ended, or will be left to itself

    def _set_size(self, columns: int, rows: int) -> None:
        size = (min(max(each, _NARROWEST), _WIDEST) for each in (rows, columns))
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("4H", *size, 0, 0))

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            if self._connection is not None:
                self._connection.send(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the session has ended, which `ended` reports

    @staticmethod
    async def _ready(descriptor: int, *, writing: bool) -> None:
        """Waits until the descriptor can be read or written."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        add, remove = (
            (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
        )
        add(descriptor, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            remove(descriptor)
