"""An HTTP proxy with allowed hosts, for programs in a view.

It knows names, not contents: a program can send anything to an allowed host.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from tui_agent.files.numbers import whole_number
from tui_agent.web.addresses import is_public

#: Bytes of a request's head; seconds for its arrival, and to connect.
MOST_HEAD, HEAD_WITHIN, CONNECT_WITHIN = 64 * 1024, 30.0, 20.0
MOST_CONNECTIONS, MOST_REFUSED = 500, 200
HTTPS = 443
_PIECE = 1 << 18
#: This machine, for programs in a view with their own loopback.
HERE = "host.local"

#: Returns a host's addresses. Raises OSError.
Resolve = Callable[[str, int], Awaitable[list[str]]]


class Target(NamedTuple):
    """A host name in lower-case ASCII without a final dot, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return self.host if self.port == HTTPS else f"{self.host}:{self.port}"


class RequestRefused(Exception):
    """Has an HTTP status and a sentence."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


def target(host: str, port: int) -> Target:
    """Raises ValueError for an IP address or an invalid name."""
    name = host.rstrip(".").lower()
    with suppress(ValueError):
        ipaddress.ip_address(name.strip("[]"))
        raise ValueError("an address instead of a name")
    name = name.encode("idna").decode() if not name.isascii() else name
    labels = name.split(".")
    if len(name) > 253 or not all(
        0 < len(label) < 64 and label.replace("-", "a").replace("_", "a").isalnum() for label in labels
    ):
        raise ValueError("not a host name")
    if all(label.isdigit() or label.startswith("0x") for label in labels):
        raise ValueError("an address instead of a name")  # resolvers read 127.1 and 0x7f000001 as addresses
    return Target(name, port)


def parse_allowed(entry: str) -> Target:
    """Raises ValueError."""
    host, colon, port = entry.strip().rpartition(":")
    number = whole_number(port, 0) if colon else HTTPS
    if not 0 < number < 1 << 16:
        raise ValueError("not a port")
    return target(host if colon else entry.strip(), number)


def allowed(entries: Iterable[str]) -> set[Target]:
    found = set()
    for entry in entries:
        with suppress(ValueError):
            found.add(parse_allowed(entry))
    return found


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class HostProxy:
    """Serves CONNECT and absolute requests on a listening socket in a view. `refused` counts them by target."""

    def __init__(
        self,
        allowed: Iterable[Target],
        *,
        on_refused: Callable[[Target], object] = lambda _: None,
        resolve: Resolve = _resolved,
        here: Mapping[Target, int] | None = None,
    ) -> None:
        """`on_refused` is called at the first refused request to each target. `here`: ports of this machine
        that play allowed targets; no setting leads to it.
        """
        self.allowed = set(allowed)
        self.refused: dict[Target, int] = {}
        self._on_refused = on_refused
        self._resolve = resolve
        self._here = here or {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, listener: int) -> None:
        """Raises OSError."""
        opened = socket.socket(fileno=socket.dup(listener))
        opened.setblocking(False)
        self._server = await asyncio.start_server(self._connected, sock=opened, limit=MOST_HEAD)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            await self._forward(reader, writer)
        except RequestRefused as refused:
            body = f"tui-agent: {refused}\n".encode("utf-8", "replace")
            head = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            self._connections.discard(task)
            with suppress(OSError):
                if not writer.is_closing():
                    writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_WITHIN):
            head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise RequestRefused("400 Bad Request", "This request is not for a proxy.")
        method, named, _ = words
        if method == "CONNECT":
            host, _, port = named.rpartition(":")
            wanted = self._wanted(host, whole_number(port, 0))
            to_host, host_writer = await self._opened(wanted)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            try:
                parts = urlsplit(named)
                usual = {"http": 80, "https": HTTPS}[parts.scheme if parts.hostname else ""]
                number = parts.port or usual
            except (KeyError, ValueError):
                raise RequestRefused("400 Bad Request", "This proxy needs an absolute address.") from None
            wanted = self._wanted(parts.hostname or "", number)
            path = re.sub("^[^/?#]*", "", named.partition("://")[2]).partition("#")[0]
            path = path if path.startswith("/") else f"/{path}"
            to_host, host_writer = await self._opened(wanted, secure=usual == HTTPS)
            host = wanted.host if wanted.port == usual else f"{wanted.host}:{wanted.port}"
            kept = [
                one
                for one in rest.split(b"\r\n")
                if one and not one.lower().startswith((b"proxy-", b"connection:", b"keep-alive:", b"host:"))
            ]
            request = f"{method} {path} HTTP/1.1\r\nHost: {host}".encode("latin-1")
            host_writer.write(b"\r\n".join([request, *kept, b"Connection: close", b"", b""]))
        try:
            await asyncio.gather(_copy(reader, host_writer), _copy(to_host, writer))
        finally:
            host_writer.close()

    def _wanted(self, host: str, port: int) -> Target:
        try:
            wanted = target(host, port)
        except ValueError as error:
            raise RequestRefused(
                "403 Forbidden", f"Only named hosts are reached from here ({error})."
            ) from None
        if wanted not in self.allowed:
            if wanted not in self.refused and len(self.refused) < MOST_REFUSED:
                self.refused[wanted] = 0
                self._on_refused(wanted)
            if wanted in self.refused:
                self.refused[wanted] += 1
            raise RequestRefused(
                "403 Forbidden", f"{wanted} is not on the list of hosts that may be reached from here."
            )
        return wanted

    async def _opened(
        self, wanted: Target, *, secure: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Refuses an address that is not public, since a name can resolve to one, except for a port of this
        machine that the user allowed.
        """
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                port = self._here.get(wanted, wanted.port)
                if wanted.host == HERE or wanted in self._here:
                    addresses = ["127.0.0.1"]
                else:
                    addresses = await self._resolve(wanted.host, wanted.port)
                    if not all(is_public(address) for address in addresses):
                        raise RequestRefused(
                            "403 Forbidden", f"{wanted.host} has an address that is not public."
                        )
                error: OSError | None = None
                for address in addresses:
                    try:
                        return await asyncio.open_connection(
                            address,
                            port,
                            limit=_PIECE,
                            ssl=ssl.create_default_context() if secure else None,
                            server_hostname=wanted.host if secure else None,
                        )
                    except OSError as failed:
                        error = failed
                raise error or OSError("no address")
        except (OSError, TimeoutError) as failed:
            raise RequestRefused(
                "502 Bad Gateway", f"{wanted} cannot be reached: {failed or 'no answer'}."
            ) from failed


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
    except (OSError, RuntimeError):
        writer.close()
