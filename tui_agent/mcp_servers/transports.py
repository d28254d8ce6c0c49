"""Transports of servers: programs with standard streams, and addresses with streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
import mcp_types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from tui_agent.files.text import one_line
from tui_agent.mcp_servers.login import ServerAccess, WantsLogin, with_token
from tui_agent.mcp_servers.servers import ToolServer
from tui_agent.model.certificates import verification

#: Bytes of one message, and of output since the last request.
MAX_LINE, MAX_UNASKED = 32_000_000, 96_000_000
#: Seconds for a server to end without and with a signal.
PATIENCE, INSIST = 1.0, 0.5
_CHUNK = 1 << 18
_KEPT = 20
_SET_PARENT_DEATH_SIGNAL = 1
#: Variables of a server besides its configuration.
INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
)


class ServerProgram:
    """`fault` is the reason that this side ended it, or ""."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.fault = ""
        self.printed: deque[str] = deque(maxlen=_KEPT)
        self.noise = ""

    def ending(self) -> str:
        """Returns "" while it runs."""
        status = self.process.returncode
        if self.fault:
            return self.fault
        if status is None:
            return ""
        last = next((line for line in reversed(self.printed) if line.strip()), self.noise)
        words = f" ({one_line(last.strip())[:200]})" if last else ""
        return f"ended by signal {-status}{words}" if status < 0 else f"ended with status {status}{words}"


async def start(command: str, args: list[str], env: Mapping[str, str], folder: str) -> ServerProgram:
    """Starts a server in its own process group. Raises OSError or ValueError."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        command,
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**inherited, **env},
        cwd=folder,
        process_group=0,
        preexec_fn=_end_with_us if sys.platform.startswith("linux") else None,
    )
    return ServerProgram(process)


@asynccontextmanager
async def transport(program: ServerProgram) -> AsyncGenerator[Any]:
    """Yields the streams of a server for the SDK, then ends the process."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    unasked = 0

    async def read() -> None:
        nonlocal unasked
        assert program.process.stdout is not None
        parts: list[bytes] = []
        size = 0
        async with to_session:
            while chunk := await program.process.stdout.read(_CHUNK):
                unasked += len(chunk)
                first, *rest = chunk.split(b"\n")
                parts.append(first)
                size += len(first)
                for following in rest:
                    if not await deliver(b"".join(parts)):
                        return
                    parts, size = [following], len(following)
                if size > MAX_LINE:
                    return end_for(f"it sent a message of more than {MAX_LINE // 1_000_000} MB")
                if unasked > MAX_UNASKED:
                    return end_for(f"it sent more than {MAX_UNASKED // 1_000_000} MB of unrequested output")

    async def deliver(line: bytes) -> bool:
        if not line.strip():
            return True
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            program.noise = line[:200].decode(errors="replace")
            return True
        try:
            await to_session.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return False
        return True

    def end_for(why: str) -> None:
        program.fault = why
        signal_all(program, signal.SIGKILL)

    async def write() -> None:
        nonlocal unasked
        assert program.process.stdin is not None
        async with from_session:
            async for message in from_session:
                unasked = 0
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    program.process.stdin.write(line.encode(errors="surrogatepass") + b"\n")
                    await program.process.stdin.drain()
                except (BrokenPipeError, ConnectionResetError):
                    await to_session.aclose()
                    return

    async def overhear() -> None:
        assert program.process.stderr is not None
        half = b""
        while chunk := await program.process.stderr.read(_CHUNK):
            *lines, half = (half + chunk).split(b"\n")
            half = half[-2_000:]
            program.printed.extend(line[:2_000].decode(errors="replace") for line in lines[-_KEPT:])
        if half:
            program.printed.append(half.decode(errors="replace"))

    tasks = [asyncio.create_task(part()) for part in (read, write, overhear)]
    try:
        yield from_server, to_server
    finally:
        await asyncio.shield(_end(program, tasks))
        for stream in (to_session, from_server, to_server, from_session):
            await stream.aclose()


async def _end(program: ServerProgram, tasks: list[asyncio.Task[None]]) -> None:
    process = program.process
    assert process.stdin is not None
    process.stdin.close()
    for seconds, number in ((PATIENCE, signal.SIGTERM), (INSIST, signal.SIGKILL)):
        if program.fault:
            break
        try:
            await asyncio.wait_for(process.wait(), seconds)
            break
        except TimeoutError:
            signal_all(program, number)
    signal_all(program, signal.SIGKILL)
    await asyncio.wait(tasks, timeout=INSIST)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), INSIST)


def signal_all(program: ServerProgram, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.process.pid, number)


def _end_with_us() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


#: Bytes of an answer that is not a stream of events.
MAX_ANSWER = 32_000_000
#: Seconds to connect, and between two pieces of an answer.
CONNECT, BETWEEN = 10.0, 3_600.0


class BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MAX_ANSWER:
                raise httpx2.ReadError(f"it sent an answer of more than {MAX_ANSWER // 1_000_000} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Remembers the last refusal, which is missing from the SDK's errors."""

    def __init__(self, url: str) -> None:
        super().__init__(verify=verification())
        self._url = httpx2.URL(url)
        self.refused = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if request.url == self._url:
            self.refused = response.status_code if response.status_code >= 400 else 0
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream") and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = BoundedStream(response.stream)
        return response


class ServerAddress:
    def __init__(
        self, server: ToolServer, access: ServerAccess | None = None, between: float = BETWEEN
    ) -> None:
        self._server, self._access, self._between = server, access, between
        self._sending = BoundedTransport(server.settings.url)

    def fault(self, error: BaseException) -> str:
        """Returns the reason in a few words; "" if the error has it."""
        for one in _leaves(error):
            if isinstance(one, WantsLogin):
                return str(one)
            if isinstance(one, httpx2.ConnectError | httpx2.ConnectTimeout):
                return "its address cannot be reached"
            if isinstance(one, httpx2.TimeoutException):
                return "it did not answer in time"
        status = self._sending.refused
        if status in (401, 403):
            return f"it requires a login (status {status}): run `tui-agent mcp login {self._server.name}`"
        return f"it answered with status {status}" if status else ""

    async def transport(self, last: AsyncExitStack) -> Any:
        """Returns the transport for the SDK; `last` closes its HTTP client."""
        settings = self._server.settings
        access = self._access
        if access is None and "authorization" not in {name.lower() for name in settings.headers}:
            access = await with_token(self._server)
        client = httpx2.AsyncClient(
            headers=settings.headers,
            auth=access,
            transport=self._sending,
            timeout=httpx2.Timeout(CONNECT, read=self._between),
            follow_redirects=False,
        )
        await last.enter_async_context(client)
        return streamable_http_client(settings.url, http_client=client)


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    found, cause = [error], error.__cause__ or error.__context__
    while cause is not None and len(found) < 10:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found
