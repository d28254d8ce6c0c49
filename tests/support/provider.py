"""An OpenAI-compatible server on loopback that answers what a test scripts, and remembers what it was asked.

    with Provider() as provider:
        provider.answer("Hello")                                  # streamed word by word, then usage
        provider.answer(Answer(calls=(ToolCall("read_files", {"actions": []}),)))
        provider.answer(Answer(status=429, retry_after=2))        # an error, with a body like OpenAI's
        provider.answer(Answer("half a sentence", cut_after=2))   # the connection breaks after two pieces
        provider.answer(lambda request: Answer(request.last_text))
        environment = provider.environment                        # OPENAI_API_BASE, OPENAI_API_KEY
        …
        assert provider.requests[0].body["messages"][-1]["content"] == "…"

Answers are used in the order in which they were scripted, one a request; when none is left, `provider.otherwise`
is used, which says so with status 400. The model is to be named like `openai/test-model`. The server runs on a
thread of its own; everything here may be called from any thread. `Answer(hold_after=n)` waits after n pieces for
`provider.release()`, so that a test can look at a stream that is half-way, without sleeping. The same answers
also come in Anthropic's own form, to a model named like `anthropic/test-model`, and as one message of OpenAI's
Responses.
"""

from __future__ import annotations

import asyncio
import json
import struct
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Self

from support import anthropic_wire, openai_wire
from support.openai_wire import Answer, RawAnswer, ToolCall

__all__ = ["Answer", "Provider", "RawAnswer", "Request", "ToolCall", "dead_url"]
PATIENCE_SECONDS = 30.0
BEAT_SECONDS = 0.05
CHAT, MESSAGES, RESPONSES = "/chat/completions", "/messages", "/responses"
GENERATE = ":streamGenerateContent"
#: Bedrock streams events of AWS: its own, or those of a model's vendor.
BEDROCK = ("/converse-stream", "/invoke-with-response-stream")


@dataclass(slots=True)
class Request:
    """One request as it came: `at` is `time.monotonic()`; `gone` is set when the client hung up before the end."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    gone: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    #: When the last byte of the answer was sent, by `time.monotonic()`.
    ended: float = 0.0
    raw: bytes = b""

    @property
    def last_text(self) -> str:
        """The words of the last message."""
        content = (self.body.get("messages") or self.body["input"])[-1]["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


Script = Answer | Callable[[Request], Answer]


class Provider:
    """The server, from `with` to its end."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.otherwise: Script = Answer(status=400, message="the test scripted no answer for this request")
        self._answers: deque[Script] = deque()
        self._changed = threading.Condition()
        self._release = threading.Event()
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="provider", daemon=True)
        self.port = 0
        #: Uploaded files as they came, by id, how many there ever were, and whether any are taken.
        self.files: dict[str, bytes] = {}
        #: The same in order, deleted or not.
        self.uploaded: list[bytes] = []
        self.uploads = 0
        self.takes_files = True

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE_SECONDS)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    @property
    def url(self) -> str:
        """What goes into `OPENAI_API_BASE`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """What a program must find in its environment to come here."""
        return {
            "OPENAI_API_BASE": self.url,
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_KEY": "test",
            "ANTHROPIC_API_BASE": self.url.removesuffix("/v1"),
            "TUI_AGENT_PLANNER_MODEL": "none",  # a plan is a request of its own: who wants one says so
        }

    def answer(self, *answers: str | Script) -> None:
        """Put these at the end of the script."""
        self._answers.extend(Answer(answer) if isinstance(answer, str) else answer for answer in answers)

    @property
    def left(self) -> int:
        """How many scripted answers nobody has asked for."""
        return len(self._answers)

    def reset(self) -> None:
        """Forget what was scripted and what was asked."""
        self._answers.clear()
        self.requests.clear()
        self._release.clear()
        self.files.clear()
        self.uploaded.clear()
        self.uploads, self.takes_files = 0, True

    def release(self) -> None:
        """Let every answer that holds, or will hold, go on."""
        self._release.set()

    def wait_for(self, requests: int) -> list[Request]:
        """Block until so many requests came; fails after half a minute. From a loop, use `asyncio.to_thread`."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= requests, PATIENCE_SECONDS):
                raise AssertionError(f"{len(self.requests)} requests came, not {requests}")
        return self.requests

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _stop(self) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One request a connection: that a connection is over then says that an answer is."""
        task = asyncio.create_task(self._converse(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        await asyncio.wait([task])

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            request = await _read(reader)
            if request is not None:
                await self._serve(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _serve(self, request: Request, reader: StreamReader, writer: StreamWriter) -> None:
        if "/files" in request.path:
            await self._serve_file(request, writer)
            return
        if not request.path.partition("?")[0].endswith((CHAT, MESSAGES, RESPONSES, GENERATE, *BEDROCK)):
            await _send(writer, 200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]})
            return
        with self._changed:
            script = self._answers.popleft() if self._answers else self.otherwise
            self.requests.append(request)
            self._changed.notify_all()
        answer = script if isinstance(script, Answer) else script(request)
        answering = asyncio.create_task(self._answer(answer, request, writer))
        answering.add_done_callback(lambda _: setattr(request, "ended", time.monotonic()))
        hanging_up = asyncio.create_task(reader.read())
        try:
            await asyncio.wait([answering, hanging_up], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not answering.done():
                request.gone.set()
            answering.cancel()
            hanging_up.cancel()
            await asyncio.gather(answering, hanging_up, return_exceptions=True)
            request.done.set()

    async def _serve_file(self, request: Request, writer: StreamWriter) -> None:
        """Keeps what is uploaded in `files` by id, takes it out when it is deleted; `takes_files` false refuses."""
        if not self.takes_files:
            refusal = {"error": {"message": "no files here", "type": "invalid_request_error"}}
            await _send(writer, 400, refusal)
        elif request.method == "DELETE":
            file_id = request.path.rpartition("/")[2]
            gone = self.files.pop(file_id, None) is not None
            await _send(writer, 200, {"id": file_id, "object": "file", "deleted": gone})
        else:
            self.uploads += 1
            file_id = f"file-{self.uploads}"
            self.files[file_id] = request.raw
            self.uploaded.append(request.raw)
            made = {"id": file_id, "object": "file", "bytes": len(request.raw), "created_at": 1700000000}
            await _send(writer, 200, {**made, "filename": "x", "purpose": "user_data", "status": "processed"})

    async def _answer(self, answer: Answer, request: Request, writer: StreamWriter) -> None:
        await asyncio.sleep(answer.delay)
        if answer.raw is not None:
            await _send_raw(answer.raw, writer)
        elif answer.hang:
            await asyncio.Event().wait()
        elif answer.status != 200:
            headers = {"retry-after": str(answer.retry_after)} if answer.retry_after is not None else {}
            wire = anthropic_wire if request.path.endswith(MESSAGES) else openai_wire
            await _send(writer, answer.status, wire.error_body(answer), headers)
        elif request.body.get("stream"):
            await self._stream(answer, request, writer)
        else:
            await _send(writer, 200, openai_wire.completion(answer, request.body))

    async def _stream(self, answer: Answer, request: Request, writer: StreamWriter) -> None:
        writer.write(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        for number, event in enumerate(_sse(answer, request)):
            if number == answer.cut_after:
                if answer.cut_cleanly:
                    writer.write(b"0\r\n\r\n")
                await writer.drain()
                return
            if number == answer.hang_after:
                await asyncio.Event().wait()
            if number == answer.hold_after:
                await asyncio.to_thread(self._release.wait, PATIENCE_SECONDS)
            if number:
                await asyncio.sleep(answer.pause)
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def dead_url() -> str:
    """An address on loopback where nobody listens."""
    with Provider() as provider:
        return provider.url


def _sse(answer: Answer, request: Request) -> Iterator[bytes]:
    wires = {MESSAGES: "anthropic", RESPONSES: "responses"}
    wire = next((wire for end, wire in wires.items() if request.path.endswith(end)), "openai")
    return sse(answer, wire, request.body)


def sse(answer: Answer, wire: str, body: dict[str, Any] | None = None) -> Iterator[bytes]:
    """The events of an answer as they go over one of the wires, "openai", "anthropic" or "responses"."""
    body = body or {"stream_options": {"include_usage": True}}
    if wire in ("anthropic", "responses"):
        events = anthropic_wire.events(answer, body) if wire == "anthropic" else openai_wire.responses(answer)
        yield from map(anthropic_wire.sse, events)
        return
    for event in openai_wire.events(answer, body):
        yield f"data: {json.dumps(event)}\n\n".encode()
    yield b"data: [DONE]\n\n"


async def _read(reader: StreamReader) -> Request | None:
    line = (await reader.readline()).decode()
    if not line:
        return None
    method, address, _ = line.split(" ", 2)
    path = address.partition("?")[0]
    headers: dict[str, str] = {}
    while header := (await reader.readline()).decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    body = json.loads(raw) if raw and "json" in headers.get("content-type", "") else {}
    return Request(method, path, headers, body, time.monotonic(), raw=raw)


async def _send(
    writer: StreamWriter, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> None:
    raw = json.dumps(body).encode()
    head = {"content-type": "application/json", "content-length": str(len(raw)), **(headers or {})}
    writer.write(_head(status, head) + raw)
    await writer.drain()


async def _send_raw(raw: RawAnswer, writer: StreamWriter) -> None:
    """As it is written; in chunks unless its headers give a length."""
    chunked = all(name.lower() != "content-length" for name in raw.headers)
    head = {"content-type": "text/event-stream"} | ({"transfer-encoding": "chunked"} if chunked else {})
    writer.write(_head(raw.status, head | raw.headers))

    async def send(piece: bytes) -> None:
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked and piece else piece)
        await writer.drain()

    for piece in raw.pieces:
        await send(piece)
        await asyncio.sleep(raw.pause)
    match raw.ends:
        case "close":
            writer.write(b"0\r\n\r\n" if chunked else b"")
            await writer.drain()
        case "hold":
            await asyncio.Event().wait()
        case "beat":
            while True:
                await send(raw.beats)
                await asyncio.sleep(BEAT_SECONDS)
        case "reset":
            await asyncio.sleep(BEAT_SECONDS)  # a reset throws away what the other side has not read yet
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        case "half":
            writer.write_eof()
            await asyncio.Event().wait()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} .", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join([*lines, "connection: close"]) + "\r\n\r\n").encode()
