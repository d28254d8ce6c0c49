"""Validates response streams before litellm parses them: complete events, valid UTF-8 and JSON, explicit
errors.

litellm skips unparsable data, turns errors within a stream into a status 500, and treats a non-streamed
body as an empty reply. Its transports are therefore wrapped (`http_clients.py`).
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from tui_agent.model import connections
from tui_agent.model.failures import ServerError, is_error, lowered, retry_after, status_of

#: Of an incomplete event.
MOST_EVENT_BYTES = 8_000_000
MOST_BODY_BYTES = 32_000_000
MOST_ERROR_BYTES = 65_536
MOST_PIECE_BYTES = 262_144
SLICE_BYTES = 8

_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(r"\r\n|\n|\r")
_ASKS_FOR_A_STREAM = re.compile(rb'"stream":\s*true')
_DONE = "[DONE]"
_AWS_EVENTS = "application/vnd.amazon.eventstream"
_PERHAPS_EVENTS = ("", "application/json", "text/plain", "application/octet-stream")
_AWS_HEAD, _AWS_TAIL = 12, 4
_LAST_EVENTS = frozenset(("message_stop", "response.completed", "response.incomplete"))
#: Beginnings of event types in the Messages and Responses APIs.
_KNOWN_EVENTS = ("message_", "content_block_", "response.")
_BLANK = b" \t\r\n\xef\xbb\xbf"
_WHOLE_BODY = (b"{", b"<")
#: Event type, data on one line, and the parsed data; `None` for `[DONE]`.
_Event = tuple[str, str, dict[str, Any] | None]


class BrokenStream(httpx.ReadError):
    """The message is a predicate whose subject is the server."""


@dataclass
class Wire:
    """Progress of one request. `on_sign_of_life` is called for each message of the model, `on_keep_alive`
    for comments and pings.
    """

    on_sent: Callable[[], None] = lambda: None
    on_sign_of_life: Callable[[], None] = lambda: None
    on_keep_alive: Callable[[], None] = lambda: None
    accepted: bool = False
    checked: bool = False
    usage: bool = False
    #: Whether the server gave an end reason; `None` for unknown formats.
    ended: bool | None = None
    error: ServerError | None = None
    #: Why the stream is unreadable; a predicate whose subject is the server.
    broken: str = ""
    #: Parsed events; those received together are in one list.
    events: AsyncIterator[list[dict[str, Any]]] | None = None


_wire: ContextVar[Wire | None] = ContextVar("wire", default=None)


def watch(wire: Wire) -> None:
    """Records later requests of this task."""
    _wire.set(wire)


class ValidatingTransport(httpx.AsyncBaseTransport):
    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        wire = _wire.get()
        if wire is None:
            return await connections.send_with_retry(self._transport.handle_async_request, request)
        wire.on_sent()
        try:
            response = await connections.send_with_retry(self._transport.handle_async_request, request)
        except (httpx.TimeoutException, httpx.ConnectError, asyncio.CancelledError):
            raise
        except Exception:
            wire.broken = "broke the connection"
            raise
        wire.on_sign_of_life()
        if response.status_code >= 400:
            return await _refused(response, wire)
        if response.has_redirect_location:
            if response.status_code not in (307, 308):
                return response
            try:
                own, to = request.url, request.url.join(response.headers["location"])
                same = (to.scheme, to.port) in ((own.scheme, own.port), ("https", None))
                if same and to.host == own.host:
                    return response
                host = to.host
            except (httpx.InvalidURL, ValueError):
                host = "an address that cannot be read"
            await response.aclose()
            said = f"it sends the request on to {host[:200]}, and a prompt is not sent to another host than yours"
            body = {"error": {"message": said}}
            wire.error = ServerError(400, body, None, {})
            return httpx.Response(400, json=body)
        wire.accepted = True
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _AWS_EVENTS:
            response.stream = _AwsEvents(response.stream, wire)
            return response
        asks = kind in _PERHAPS_EVENTS and _ASKS_FOR_A_STREAM.search(request.content) is not None
        if kind not in ("text/event-stream", "text/html") and not asks:
            return response
        headers = {**_plain(response.headers), "content-type": "text/event-stream"}
        checked = _ValidatedStream(response, wire, request.url)
        wire.events = checked.values()
        return httpx.Response(
            response.status_code, headers=headers, stream=checked, extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._transport.aclose()


async def _refused(response: httpx.Response, wire: Wire) -> httpx.Response:
    body = b""
    try:
        async for piece in _unpacked(response):
            body += piece
            if len(body) >= MOST_ERROR_BYTES:
                break
    except httpx.HTTPError:
        pass
    finally:
        await response.aclose()
    body = body[:MOST_ERROR_BYTES]
    headers = response.headers
    wire.error = ServerError(response.status_code, _as_json(body), retry_after(headers), lowered(headers))
    # With status 422 litellm repeats the request without the parameters named by the server.
    status = 400 if response.status_code == 422 else response.status_code
    return httpx.Response(status, headers=_plain(response.headers), content=body)


async def _unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yields pieces of at most `MOST_PIECE_BYTES`, so that callers can enforce limits. Raises
    `httpx.HTTPError`.
    """
    if response.headers.get("content-encoding", "").strip().lower() not in ("gzip", "x-gzip", "deflate"):
        async for piece in response.aiter_bytes():
            yield piece
        return
    packed = zlib.decompressobj(zlib.MAX_WBITS | 32)
    async for raw in response.aiter_raw():
        while not packed.eof:
            try:
                piece = packed.decompress(raw, MOST_PIECE_BYTES)
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from error
            raw = packed.unconsumed_tail
            if piece:
                yield piece
            if not raw and len(piece) < MOST_PIECE_BYTES:
                break


def _as_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _plain(headers: httpx.Headers) -> dict[str, str]:
    packed = ("content-encoding", "content-length", "transfer-encoding", "content-type")
    return {name: value for name, value in headers.items() if name.lower() not in packed}


class _ValidatedStream(httpx.AsyncByteStream):
    """Complete events. Raises `BrokenStream`."""

    def __init__(self, response: httpx.Response, wire: Wire, url: httpx.URL) -> None:
        self._response = response
        self._wire = wire
        self._url = url
        self._pieces = self._read()
        self._over = self._closed = False
        self._failed: BrokenStream | None = None
        wire.checked = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self._blocks():
            lines = ((f"event: {kind}\n" if kind else "", f"data: {data}\n\n") for kind, data, _ in block)
            yield "".join(line for pair in lines for line in pair).encode()

    async def values(self) -> AsyncIterator[list[dict[str, Any]]]:
        """Yields JSON objects, without `[DONE]`; those of one piece of the body are in one list."""
        async for block in self._blocks():
            if values := [value for _, _, value in block if value is not None]:
                yield values

    async def _blocks(self) -> AsyncIterator[list[_Event]]:
        """Yields the events before an invalid one, then raises."""
        split = _Split()
        try:
            async for piece in self._pieces:
                block = self._block(split.feed(piece))
                if self._over:  # before the consumer can stop, to free the connection
                    await self.aclose()
                if block:
                    yield block
                if self._failed is not None:
                    raise self._failed
                if self._over:
                    return
                split.check()
            if block := self._block(split.last()):
                yield block
            if self._failed is not None:
                raise self._failed
        except BrokenStream as error:
            self._wire.broken = str(error)
            raise
        finally:
            await self.aclose()

    def _block(self, events: Iterable[bytes]) -> list[_Event]:
        block: list[_Event] = []
        try:
            for event in events:
                block += self._check(event)
                if self._over:
                    break
        except BrokenStream as error:
            self._failed = error
        return block

    async def _read(self) -> AsyncIterator[bytes]:
        if "content-encoding" in self._response.headers:
            self._response.stream = _Slices(self._response.stream)
        try:
            async for piece in _unpacked(self._response):
                yield piece
        except httpx.DecodingError as error:
            raise BrokenStream("sent packed data that cannot be unpacked") from error
        except (httpx.TransportError, OSError) as error:
            if isinstance(error, httpx.TimeoutException | BrokenStream):
                raise
            raise BrokenStream("broke the connection") from error

    def _check(self, event: bytes) -> Iterable[_Event]:
        event = event.strip(_BLANK)
        if event.startswith(_WHOLE_BODY):
            return self._of_body(event)
        kind, data = _fields(event)
        if data == _DONE:
            self._over = True
            return [("", _DONE, None)]
        if not data:
            self._wire.on_keep_alive()
            return ()
        if kind == "error":
            raise self._reported_error(_as_json(data.encode()))
        try:
            try:
                value = _decoder.decode(data)
            except (
                msgspec.DecodeError,
                UnicodeEncodeError,
            ):  # msgspec rejects lone surrogates and large numbers
                value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BrokenStream("sent an event that is not valid JSON") from error
        if not isinstance(value, dict):
            return ()
        if is_error(value):
            raise self._reported_error(value)
        if value.get("type") == "response.failed":
            response = value.get("response")
            raise self._reported_error(
                {"error": response.get("error") if isinstance(response, dict) else None}
            )
        if value.get("type") == "ping":
            self._wire.on_keep_alive()
            return ()
        self._wire.on_sign_of_life()
        self._wire.ended = self._wire.ended or _gives_reason(value)
        self._over = str(value.get("type")) in _LAST_EVENTS
        if not self._wire.usage and "usage" in data:
            self._wire.usage = _holds_usage(value)
        groq = value.get("x_groq")
        if isinstance(groq, dict) and groq.get("usage") and not value.get("usage"):
            value = {**value, "usage": groq["usage"]}
            data = json.dumps(value)
        return [(kind, data.replace("\n", " "), value)]

    def _of_body(self, text: bytes) -> Iterator[_Event]:
        wire = self._wire
        wire.on_sign_of_life()
        body = _as_json(text)
        if isinstance(body, str) and text[:1] == b"<":
            status, headers = self._response.status_code, lowered(self._response.headers)
            wire.error = ServerError(status, body[:MOST_ERROR_BYTES], None, headers)
            raise BrokenStream("sent a page in place of an answer")
        if not isinstance(body, dict):
            raise BrokenStream("sent a body that is not valid JSON")
        if is_error(body):
            raise self._reported_error(body)
        wire.usage = wire.usage or _holds_usage(body)
        match body:
            case {"choices": [{"message": dict()}, *_]}:
                events = _of_completion(body)
            case {"type": "message", "content": list()}:
                events = _of_message(body)
            case _:
                raise BrokenStream("sent a body that holds no answer")
        for event in events:
            wire.ended = wire.ended or _gives_reason(event)
            yield event.get("type", ""), json.dumps(event), event

    def _reported_error(self, body: Any) -> BrokenStream:
        headers = self._response.headers
        self._wire.error = ServerError(status_of(body), body, retry_after(headers), lowered(headers))
        return BrokenStream("ended the answer with an error")

    async def aclose(self) -> None:
        """Closes the connection, or releases it after the final event."""
        if self._closed:
            return
        self._closed = True
        if self._over:
            connections.end(self._response, self._url, self._pieces)
        else:
            await self._response.aclose()


class _AwsEvents(httpx.AsyncByteStream):
    """Complete events in AWS's binary format, unchanged. Raises `BrokenStream`."""

    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire
        wire.checked = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = bytearray()
        try:
            async for piece in self._stream:
                rest += piece
                while event := self._next(rest):
                    yield event
            if rest:
                raise BrokenStream("broke off in the middle of an event")
        except BrokenStream as error:
            self._wire.broken = str(error)
            raise
        except (httpx.ReadError, httpx.RemoteProtocolError) as error:
            self._wire.broken = "broke the connection"
            raise BrokenStream(self._wire.broken) from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _next(self, rest: bytearray) -> bytes:
        """Removes the first event from `rest` and returns it; empty if incomplete.

        An event consists of its size, the size of its headers, a checksum, headers, JSON, and a checksum
        of all these.
        """
        if len(rest) < _AWS_HEAD:
            return b""
        size, headers = struct.unpack_from(">II", rest)
        if not _AWS_HEAD + headers + _AWS_TAIL <= size <= MOST_EVENT_BYTES:
            raise BrokenStream("sent an event of an impossible size")
        if len(rest) < size:
            return b""
        event = bytes(rest[:size])
        del rest[:size]
        if zlib.crc32(event[:-_AWS_TAIL]) != int.from_bytes(event[-_AWS_TAIL:], "big"):
            raise BrokenStream("sent an event with a wrong checksum")
        self._wire.on_sign_of_life()
        value = _as_json(event[_AWS_HEAD + headers : -_AWS_TAIL])
        if isinstance(value, dict) and isinstance(packed := value.get("bytes"), str):
            try:
                value = _as_json(base64.b64decode(packed))
            except ValueError as error:
                raise BrokenStream("sent an event that is not valid base64") from error
        if isinstance(value, dict):
            self._wire.usage = self._wire.usage or _holds_usage(value)
            if (given := _gives_reason(value)) is not None:
                self._wire.ended = self._wire.ended or given
        return event


class _Slices(httpx.AsyncByteStream):
    """Tiny pieces: httpx discards a whole piece that it cannot decompress completely."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            for start in range(0, len(piece), SLICE_BYTES):
                yield piece[start : start + SLICE_BYTES]

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Split:
    """A body that begins with `_WHOLE_BODY` is a single event."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._looked_at = 0
        self._is_body: bool | None = None

    def feed(self, piece: bytes) -> list[bytes]:
        self._rest += piece
        if self._is_body is None:
            begun = self._rest.lstrip(_BLANK)
            self._is_body = begun.startswith(_WHOLE_BODY) if begun else None
        events: list[bytes] = []
        if not self._is_body and _END_OF_EVENT.search(self._rest, max(0, self._looked_at - 3)):
            *events, rest = _END_OF_EVENT.split(bytes(self._rest))
            self._rest = bytearray(rest)
        self._looked_at = len(self._rest)
        return events

    def check(self) -> None:
        """Raises `BrokenStream` if the incomplete event exceeds its limit."""
        if self._looked_at > (MOST_BODY_BYTES if self._is_body else MOST_EVENT_BYTES):
            raise BrokenStream("sent an event without an end")

    def last(self) -> list[bytes]:
        """The last event, which may lack its blank line."""
        rest = bytes(self._rest)
        if self._is_body:
            return [rest]
        try:
            _, data = _fields(rest)
            is_whole = data == _DONE or isinstance(json.loads(data), dict)
        except (ValueError, RecursionError, BrokenStream):
            return []
        return [rest] if is_whole else []


_decoder = msgspec.json.Decoder()


def _fields(event: bytes) -> tuple[str, str]:
    try:
        text = event.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BrokenStream("sent bytes that are not UTF-8") from error
    kind, data = "", []
    for line in _LINE.split(text) if "\r" in text else text.split("\n"):
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data.append(value.removeprefix(" "))
    return kind, "\n".join(data).strip()


def _holds_usage(value: dict[str, Any]) -> bool:
    inner = (value.get("response"), value.get("x_groq"))
    return any(
        one.get("usage") or one.get("usageMetadata") for one in (value, *inner) if isinstance(one, dict)
    )


def _gives_reason(event: dict[str, Any]) -> bool | None:
    """Whether an event states why the reply ends; `None` for unknown formats."""
    match event:
        case {"type": "message_delta", "delta": {"stop_reason": str()}}:
            return True
        case {"stopReason": reason} | {"messageStop": {"stopReason": reason}}:
            return bool(reason)
        case {"choices": [{"finish_reason": str(reason)}, *_]} | {
            "candidates": [{"finishReason": str(reason)}, *_]
        }:
            return bool(reason)
        case {"type": str(kind)} if kind.startswith(_KNOWN_EVENTS):
            return kind in _LAST_EVENTS and kind != "message_stop"
        case (
            {"choices": list()}
            | {"candidates": list()}
            | {"contentBlockIndex": int()}
            | {"messageStart": dict()}
        ):
            return False
    return None


def _of_completion(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a complete response (https://platform.openai.com/docs/api-reference/chat/object) as chunks."""
    choice = body["choices"][0]
    delta = {name: value for name, value in choice["message"].items() if value is not None}
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
    head = {**body, "object": "chat.completion.chunk"}
    usage = head.pop("usage", None)
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}]}
    if usage:
        yield {**head, "choices": [], "usage": usage}


def _of_message(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a complete message (https://docs.anthropic.com/en/api/messages) as events."""
    usage = body.get("usage") or {}
    yield {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    for index, block in enumerate(body["content"]):
        match block:
            case {"type": "text", "text": str(text)}:
                begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
            case {"type": "thinking", "thinking": str(text)}:
                begun = {"type": "thinking", "thinking": "", "signature": ""}
                delta = {"type": "thinking_delta", "thinking": text}
            case {"type": "tool_use", "input": given}:
                begun = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
            case _:
                continue
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        if signature := block.get("signature"):
            signed = {"type": "signature_delta", "signature": signature}
            yield {"type": "content_block_delta", "index": index, "delta": signed}
        yield {"type": "content_block_stop", "index": index}
    ended = {"type": "message_delta", "delta": {"stop_reason": body.get("stop_reason")}}
    yield {**ended, "usage": {"output_tokens": usage.get("output_tokens", 0)}}
    yield {"type": "message_stop"}
