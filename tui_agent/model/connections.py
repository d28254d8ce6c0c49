"""Keep-alive connections to providers, with one retry if the server has closed an idle one.

Closing a body early discards its connection, so the bytes after the last event are read in the
background. Requests are not compressed: no provider documents support for it.
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

from tui_agent.model.failures import Failure
from tui_agent.processes.background import start_task

_log = logging.getLogger(__name__)
#: Maximum idle time in seconds; most providers close earlier or later.
IDLE_SECONDS = 300.0
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS)
#: Limits for reading a body after its last event.
END_SECONDS, MOST_END_BYTES = 0.5, 16_384
#: Seconds that a request waits for another body of the same server; a new TLS connection takes as long.
SHORTLY_SECONDS = 0.25
#: Seconds since the last data for which a connection is assumed to be open.
WARM_SECONDS = 60.0
#: A stale connection fails within this many seconds of the next request.
STALE_SECONDS = 2.0
#: TCP keep-alive: seconds of idle time, seconds between probes, number of probes; milliseconds until
#: unacknowledged data closes the connection, for example after suspend.
_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 20_000))

#: Seconds that a request waits for a new connection to the same server.
OPENING_SECONDS = 0.3
MOST_OPENING_SECONDS = 10.0

_ends: dict[str, set[asyncio.Task[None]]] = {}
_opening: dict[str, asyncio.Task[httpx.Response]] = {}
_used: dict[str, float] = {}


def origin_of(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


class _ConnectionTrace:
    def __init__(self) -> None:
        self.new = False

    async def __call__(self, name: str, info: dict[str, Any]) -> None:
        if not name.endswith("connect_tcp.complete"):
            return
        self.new = True
        stream = info.get("return_value")
        connected = stream.get_extra_info("socket") if stream is not None else None
        if connected is None:
            return
        try:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _ALIVE:
                if (number := getattr(socket, option, None)) is not None:
                    connected.setsockopt(socket.IPPROTO_TCP, number, value)
        except OSError:
            _log.debug("the connection is not looked after", exc_info=True)


Send = Callable[[httpx.Request], Awaitable[httpx.Response]]


async def send_with_retry(send: Send, request: httpx.Request) -> httpx.Response:
    """Repeats a request once if a reused connection failed before the first byte of a response."""
    origin = origin_of(request.url)
    if (opening := _opening.get(origin)) and opening is not asyncio.current_task():
        await asyncio.wait([opening], timeout=OPENING_SECONDS)
    if ends := _ends.get(origin):
        await asyncio.wait(ends, timeout=SHORTLY_SECONDS)
    opened, begun = _ConnectionTrace(), time.monotonic()
    request.extensions = {**request.extensions, "trace": opened}
    try:
        response = await send(request)
    except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
        if opened.new or not isinstance(request.stream, httpx.ByteStream):
            raise
        unconfirmed = any(getattr(one, "errno", 0) == errno.ETIMEDOUT for one in Failure(error).chain)
        if time.monotonic() - begun > STALE_SECONDS and not unconfirmed:
            raise
        _log.info("a connection had been closed meanwhile, the request is sent over another", exc_info=True)
        request.extensions = {**request.extensions, "trace": _ConnectionTrace()}
        response = await send(request)
    _used[origin] = time.monotonic()
    return response


async def preconnect(client: httpx.AsyncClient, address: str) -> None:
    """Opens a connection, unless one was used within the last minute.

    Sends HEAD for the server's root without a key; any response leaves the connection open. Skips plain
    HTTP, which gains nothing. Never raises.
    """
    url = httpx.URL(address)
    origin = origin_of(url)
    is_warm = time.monotonic() - _used.get(origin, -WARM_SECONDS) < WARM_SECONDS
    if url.scheme != "https" or is_warm or origin in _opening:
        return
    root = url.copy_with(raw_path=b"/")
    asking = client.head(root, follow_redirects=False, timeout=MOST_OPENING_SECONDS)
    _opening[origin] = asyncio.create_task(asking, name="connections: opening")
    try:
        await _opening[origin]
    except (httpx.HTTPError, OSError):
        _log.debug("no connection was opened ahead", exc_info=True)
    finally:
        del _opening[origin]


def end(response: httpx.Response, url: httpx.URL, pieces: AsyncIterator[bytes]) -> None:
    origin = origin_of(url)
    _used[origin] = time.monotonic()
    work = _to_the_end(response, pieces)
    start_task(_ends.setdefault(origin, set()), work, "connections: end of a body")


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
