"""Connections to providers: kept open after a reply, and replaced if the server has closed one of them meanwhile.

A body that is closed before its end costs its connection, so the few bytes after a reply's last event are read in the
background. Requests are not compressed: no provider documents that it accepts that.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx

_log = logging.getLogger(__name__)
#: So many seconds a connection without a request is kept; most providers close it earlier or later.
IDLE_SECONDS = 300.0
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS)
#: After the last event of a reply so many seconds and bytes are read until the end of its body.
END_SECONDS, MOST_END_BYTES = 0.5, 16_384
#: A request waits so many seconds for a body of the same server that is being read to its end: a new connection through
#: TLS would take as long.
SHORTLY_SECONDS = 0.25
#: A server that was heard within so many seconds has a connection open.
WARM_SECONDS = 60.0
#: A connection that was closed while nobody used it breaks within so many seconds of the next request.
STALE_SECONDS = 2.0
#: Seconds until the system asks whether the other side is still there, between such questions, and how often it asks;
#: milliseconds after which bytes that nobody has confirmed end the connection (a machine that slept, for example).
_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 20_000))

#: A request waits so many seconds for a connection to the same server that is being opened.
OPENING_SECONDS = 0.3
#: A connection that is not open after so many seconds is not waited for.
MOST_OPENING_SECONDS = 10.0

_ends: dict[str, set[asyncio.Task[None]]] = {}
_opening: dict[str, asyncio.Task[None]] = {}
_used: dict[str, float] = {}


def origin_of(url: httpx.URL) -> str:
    """The scheme, host and port of an address."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def used_within(url: httpx.URL, seconds: float) -> bool:
    """Whether something was received from the server of an address in the last so many seconds."""
    return time.monotonic() - _used.get(origin_of(url), -seconds) < seconds


class _Opened:
    """Notes whether a request opened a connection of its own, and sets up that connection."""

    def __init__(self) -> None:
        self.new = False

    async def __call__(self, name: str, info: dict[str, Any]) -> None:
        if name.endswith("connect_tcp.complete"):
            self.new = True
            _set_up(info.get("return_value"))


def _set_up(stream: Any) -> None:
    """Have the system look after a connection, where it can."""
    connected = stream.get_extra_info("socket") if stream is not None else None
    if connected is None:
        return
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _ALIVE:
            if (option := getattr(socket, name, None)) is not None:
                connected.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError:
        _log.debug("the connection is not looked after", exc_info=True)


Send = Callable[[httpx.Request], Awaitable[httpx.Response]]


async def sent(send: Send, request: httpx.Request) -> httpx.Response:
    """The response to a request. It is sent a second time if its connection had been closed before: it was not new,
    and it broke at once and before the first byte of a response."""
    origin = origin_of(request.url)
    if (opening := _opening.get(origin)) and opening is not asyncio.current_task():
        await asyncio.wait([opening], timeout=OPENING_SECONDS)
    if ends := _ends.get(origin):
        await asyncio.wait(ends, timeout=SHORTLY_SECONDS)
    opened, begun = _Opened(), time.monotonic()
    request.extensions = {**request.extensions, "trace": opened}
    try:
        response = await send(request)
    except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
        if opened.new or not isinstance(request.stream, httpx.ByteStream):
            raise
        if time.monotonic() - begun > STALE_SECONDS and not _is_unconfirmed(error):
            raise
        _log.info("a connection had been closed meanwhile, the request is sent over another", exc_info=True)
        request.extensions = {**request.extensions, "trace": _Opened()}
        response = await send(request)
    _used[origin] = time.monotonic()
    return response


def _is_unconfirmed(error: BaseException | None) -> bool:
    """Whether the bytes that were sent have reached nobody."""
    while error is not None:
        if isinstance(error, OSError) and error.errno == errno.ETIMEDOUT:
            return True
        error = error.__cause__ or error.__context__
    return False


async def open_ahead(client: httpx.AsyncClient, address: str) -> None:
    """Open a connection to a server ahead of the first request, unless one was used within the last minute.

    The root of the server is asked for its headers, without a key: whatever it answers, the connection stays. Without
    TLS there is nothing to save. Never fails.
    """
    url = httpx.URL(address)
    origin = origin_of(url)
    if url.scheme != "https" or used_within(url, WARM_SECONDS) or origin in _opening:
        return
    task = _opening[origin] = asyncio.create_task(_open(client, url), name="connections: opening")
    try:
        await task
    finally:
        del _opening[origin]


async def _open(client: httpx.AsyncClient, url: httpx.URL) -> None:
    try:
        await client.head(url.copy_with(raw_path=b"/"), follow_redirects=False, timeout=MOST_OPENING_SECONDS)
    except (httpx.HTTPError, OSError):
        _log.debug("no connection was opened ahead", exc_info=True)


def end(response: httpx.Response, url: httpx.URL, pieces: AsyncIterator[bytes]) -> None:
    """Read what is left of a body in the background, and close it; with its end its connection is free."""
    origin = origin_of(url)
    _used[origin] = time.monotonic()
    ends = _ends.setdefault(origin, set())
    task = asyncio.create_task(_to_the_end(response, pieces), name="connections: end of a body")
    ends.add(task)
    task.add_done_callback(ends.discard)


async def _to_the_end(response: httpx.Response, pieces: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(END_SECONDS):
            left = MOST_END_BYTES
            async for piece in pieces:
                left -= len(piece)
                if left < 0:
                    break
    except (TimeoutError, httpx.HTTPError, OSError):
        _log.debug("the body has no end", exc_info=True)
    finally:
        await response.aclose()
