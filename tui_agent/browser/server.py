"""HTTP server of `tui-agent serve`: files of the page, and a WebSocket for each terminal.

A page is a shell on this machine, so each request must pass all of: the exact host (DNS rebinding), a cookie
(`HttpOnly`, `SameSite=Strict`) that a link with a token sets once, and for a WebSocket the exact origin. On a
WebSocket, binary frames are bytes of the terminal. Text frames are JSON: `{"size": [columns, rows]}` from the page,
`{"session": id}` and `{"ended": sentence}` to it.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import hmac
import json
import logging
import os
import pty
import secrets
import socket
import ssl
import struct
import termios
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tui_agent.control import sockets
from tui_agent.control.sockets import SessionSocket, begin
from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.text import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


#: Bytes of output per frame. More is read when the page has taken these.
_AT_ONCE = 65_536
_WIDEST, _NARROWEST = 1000, 2
#: The terminal that xterm.js emulates.
_ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "xterm.js"}
#: Runs a program whose terminal is the first argument: a session's first terminal is its own.
_IN_TERMINAL = ("/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1')
#: Seconds within which a session must accept a terminal, or release it at its end.


class PageTerminal:
    """A pseudo-terminal on which the session with id `session` draws."""

    def __init__(self, columns: int, rows: int) -> None:
        """Raises `OSError` without a free terminal."""
        self.session = ""
        self._master, self._slave = pty.openpty()
        self._connection: socket.socket | None = None
        self._program: asyncio.Task[None] | None = None
        os.set_blocking(self._master, False)
        self._set_size(columns, rows)

    def close(self) -> None:
        """The session continues without it. Idempotent."""
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
        try:
            return os.read(self._master, _AT_ONCE)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
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
        """Waits until no session uses the terminal. Returns the reason as a sentence. Follows the user to
        other sessions and updates `session`. Raises `SessionError` if the next session cannot be reached.
        """
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
                    with suppress(OSError, TimeoutError):  # until the session has let the terminal go
                        async with asyncio.timeout(_WITHIN):
                            while await asyncio.get_running_loop().sock_recv(self._connection, _AT_ONCE):
                                pass
                if message.get("type") == "run" and (self._program is None or self._program.done()):
                    self._program = asyncio.create_task(self._run(message["words"], message["folder"]))
                if message.get("type") in ("moved", "ended", "detached", "result"):
                    return message
        return {}

    async def _run(self, words: list[str], folder: str) -> None:
        """A closed page ends it by SIGHUP."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(*_IN_TERMINAL, os.ttyname(self._slave), *words),
                cwd=folder,
                env={**os.environ, **_ENVIRONMENT},
                start_new_session=True,
            )
            status = await process.wait()
        except OSError:
            status = 127
        self._send({"type": "ran", "status": status})

    def _set_size(self, columns: int, rows: int) -> None:
        size = (min(max(each, _NARROWEST), _WIDEST) for each in (rows, columns))
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("4H", *size, 0, 0))

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            if self._connection is not None:
                self._connection.send(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    @staticmethod
    async def _ready(descriptor: int, *, writing: bool) -> None:
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


_log = logging.getLogger(__name__)
LINK_VALID = 60.0
#: Bytes of a frame from a page (a paste of 10 MB fits), and pages at once.
LONGEST_FRAME, MOST_PAGES = 16_000_000, 64
FILES: Mapping[str, tuple[str, str]] = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/xterm/xterm.mjs": ("xterm/xterm.mjs", "text/javascript; charset=utf-8"),
    "/xterm/addon-fit.mjs": ("xterm/addon-fit.mjs", "text/javascript; charset=utf-8"),
    "/xterm/xterm.css": ("xterm/xterm.css", "text/css; charset=utf-8"),
}
#: Ports that browsers leave out of `Host` and `Origin`.
USUAL_PORTS = {"http": 80, "https": 443}
_TERMINAL = "/terminal"
_WITHIN = 30.0


class BrowserServer:
    def __init__(self, workspace: Path, scheme: str, host: str) -> None:
        """`host` is the host of the links, without a port."""
        self._workspace = workspace
        self._scheme, self._host, self._authority = scheme, host, host
        self._cookie_name, self._cookie = "tui-agent", secrets.token_urlsafe(32)
        self._tokens: dict[str, float] = {}
        self._pages: set[ServerConnection] = set()
        self._beginning = asyncio.Lock()

    @asynccontextmanager
    async def listening(self, address: str, port: int, tls: ssl.SSLContext | None) -> AsyncGenerator[Server]:
        """Port 0 is any free one. Raises `OSError`."""
        async with serve(
            self._terminal,
            address,
            port,
            ssl=tls,
            process_request=self._answer,
            max_size=LONGEST_FRAME,
            max_queue=4,
            write_limit=65_536,
            compression=None,
            server_header=None,
            open_timeout=10,
            logger=_log,
        ) as server:
            actual = next(iter(server.sockets)).getsockname()[1]
            shown = f"[{self._host}]" if ":" in self._host else self._host
            self._authority = shown if actual == USUAL_PORTS[self._scheme] else f"{shown}:{actual}"
            self._cookie_name = f"tui-agent-{actual}"  # cookies do not distinguish ports
            yield server

    def new_link(self) -> str:
        """Returns a link that signs one browser in, once and within `LINK_VALID` seconds."""
        now = time.monotonic()
        self._tokens = {token: until for token, until in self._tokens.items() if until > now}
        token = secrets.token_urlsafe(32)
        self._tokens[token] = now + LINK_VALID
        return f"{self._scheme}://{self._authority}/?token={token}"

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        hosts = request.headers.get_all("Host")
        if hosts != [self._authority]:
            return _refusal(HTTPStatus.FORBIDDEN, "This address is not served.")
        try:
            parts = urlsplit(request.path)
        except ValueError:
            return _refusal(HTTPStatus.NOT_FOUND, "There is no such page.")
        if (token := parse_qs(parts.query).get("token")) is not None:
            return self._sign_in(token[-1])
        if not self._is_signed_in(request.headers):
            return _refusal(
                HTTPStatus.FORBIDDEN, "Not signed in: press Enter where tui-agent serve runs for a new link."
            )
        if parts.path == _TERMINAL:
            if request.headers.get_all("Origin") != [f"{self._scheme}://{self._authority}"]:
                return _refusal(HTTPStatus.FORBIDDEN, "Another page may not open a terminal.")
            if len(self._pages) >= MOST_PAGES:
                return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "Too many pages are open: close one.")
            return None
        if parts.path not in FILES:
            return _refusal(HTTPStatus.NOT_FOUND, "There is no such page.")
        name, kind = FILES[parts.path]
        body = files("tui_agent.browser").joinpath("page", *name.split("/")).read_bytes()
        return _response(HTTPStatus.OK, kind, body)

    def _sign_in(self, token: str) -> Response:
        for known, until in list(self._tokens.items()):
            if hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass")):
                del self._tokens[known]
                if until > time.monotonic():
                    cookie = f"{self._cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"
                    cookie += "; Secure" if self._scheme == "https" else ""
                    return _response(
                        HTTPStatus.SEE_OTHER, "text/plain", b"", {"Location": "/", "Set-Cookie": cookie}
                    )
        return _refusal(
            HTTPStatus.FORBIDDEN,
            "This link was used or has expired: press Enter where tui-agent serve runs for a new one.",
        )

    def _is_signed_in(self, headers: Headers) -> bool:
        try:
            cookies = SimpleCookie("; ".join(headers.get_all("Cookie")))
        except CookieError:
            return False
        given = cookies.get(self._cookie_name)
        return given is not None and hmac.compare_digest(given.value.encode(), self._cookie.encode())

    async def _terminal(self, connection: ServerConnection) -> None:
        self._pages.add(connection)
        terminal: PageTerminal | None = None
        try:
            async with asyncio.timeout(_WITHIN):
                columns, rows = _size(await connection.recv()) or (80, 24)
            assert connection.request is not None
            wanted = parse_qs(urlsplit(connection.request.path).query)
            place = await self._session(wanted.get("session", [""])[-1], "new" in wanted)
            terminal = PageTerminal(columns, rows)
            await terminal.attach(place)
            await connection.send(json.dumps({"session": terminal.session}))
            await self._relay(connection, terminal)
        except (TuiAgentError, OSError) as error:
            with suppress(ConnectionClosed):
                await connection.send(json.dumps({"ended": one_line(str(error))}))
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            self._pages.discard(connection)
            if terminal is not None:
                terminal.close()

    async def _relay(self, connection: ServerConnection, terminal: PageTerminal) -> None:
        async def output() -> None:
            while data := await terminal.read():
                await connection.send(data)

        async def typed() -> None:
            async for message in connection:
                if isinstance(message, bytes):
                    await terminal.write(message)
                elif size := _size(message):
                    terminal.resize(*size)

        ended = asyncio.create_task(terminal.ended())
        tasks = [ended, asyncio.create_task(output()), asyncio.create_task(typed())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, TuiAgentError | OSError):
                raise result
        if isinstance(results[0], str):
            while data := terminal.read_now():
                await connection.send(data)
            await connection.send(json.dumps({"ended": one_line(results[0])}))

    async def _session(self, wanted: str, new: bool) -> SessionSocket:
        """The running session with this id, or the folder's newest, or a new one."""
        async with self._beginning:  # 50 tabs that open at once begin one session
            running = await asyncio.to_thread(sockets.places)
            if not new:
                if place := next((one for one in running if one.session == wanted), None):
                    return place
                if here := await asyncio.to_thread(sockets.states_in, self._workspace):
                    return here[0][0]
            if wanted and not new:
                with suppress(SessionError):
                    return await asyncio.to_thread(begin, self._workspace, wanted)
            return await asyncio.to_thread(begin, self._workspace)


def _size(message: str | bytes) -> tuple[int, int] | None:
    try:
        found = json.loads(message)["size"] if isinstance(message, str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if isinstance(found, list) and len(found) == 2 and all(isinstance(one, int) for one in found):
        return found[0], found[1]
    return None


def _refusal(status: HTTPStatus, sentence: str) -> Response:
    return _response(status, "text/plain; charset=utf-8", f"{sentence}\n".encode())


def _response(status: HTTPStatus, kind: str, body: bytes, more: Mapping[str, str] | None = None) -> Response:
    headers = Headers(
        {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Connection": "close",
            "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
            "style-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            **(more or {}),
        }
    )
    return Response(status.value, status.phrase, headers, body)
