"""HTTP/1.1 on loopback: connections that stay open, bodies in chunks, on a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class StrictRequest:
    """A request: `body` is its JSON (None if it has none), `at` is `time.monotonic()`.

    `connection` numbers connections. `gone` is set if the client hung up before the end, `done` at the end.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    at: float
    connection: int = 0
    body: Any = None
    status: int = 0
    gone: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class Response:
    """A status with a JSON body (None is no body), or with pieces of a body; `closes` ends the connection after it."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Generator[bytes] | None = None
    pause: float = 0.0
    closes: bool = False


Handler = Callable[[StrictRequest], Awaitable[Response]]


class Loopback:
    """The listening socket, from `start` to `stop`. The handler runs in the loop of the thread."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="strict server", daemon=True)
        self._serving: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        listening = asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self._server = asyncio.run_coroutine_threadsafe(_made(listening), self._loop).result(PATIENCE_SECONDS)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._converse(reader, writer, self.connections))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        await asyncio.wait([task])

    async def _converse(self, reader: StreamReader, writer: StreamWriter, connection: int) -> None:
        try:
            while (request := await _read(reader)) is not None:
                request.connection = connection
                response = await self._handler(request)
                request.status = response.status
                closes = response.closes or request.headers.get("connection", "").lower() == "close"
                try:
                    await _send(response, reader, writer, closes)
                except (ConnectionError, asyncio.CancelledError):
                    request.gone.set()
                    raise
                finally:
                    request.done.set()
                if closes:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _made(server: Awaitable[asyncio.Server]) -> asyncio.Server:
    return await server


async def _read(reader: StreamReader) -> StrictRequest | None:
    line = (await reader.readline()).decode()
    if not line.strip():
        return None
    method, address, _ = line.split(" ", 2)
    path, _, query = address.partition("?")
    headers: dict[str, str] = {}
    while header := (await reader.readline()).decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    raw = await _body(reader, headers)
    fields = dict(parse_qsl(query, keep_blank_values=True))
    return StrictRequest(method, unquote(path), fields, headers, raw, time.monotonic())


async def _body(reader: StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    chunks = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(chunks)


async def _send(response: Response, reader: StreamReader, writer: StreamWriter, closes: bool) -> None:
    head = {"content-type": "application/json", **response.headers}
    head["connection"] = "close" if closes else "keep-alive"
    if response.pieces is None:
        raw = b"" if response.body is None else json.dumps(response.body, ensure_ascii=False).encode()
        writer.write(_head(response.status, head | {"content-length": str(len(raw))}) + raw)
        await writer.drain()
        return
    head = {**head, "content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
    writer.write(_head(response.status, head))
    try:
        for piece in response.pieces:
            if reader.at_eof():
                raise ConnectionResetError
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(response.pause)
    finally:
        response.pieces.close()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} .", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
