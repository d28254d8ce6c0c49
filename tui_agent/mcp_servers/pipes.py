"""A server that is a program: its process, and its standard streams as a transport of the SDK.

Unlike the SDK's transport, it bounds lines and unasked output, keeps the last lines of standard error, and ends the
process with this one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from tui_agent.files.text import one_line

#: Maximum bytes of one message, and of output since the last request.
MAX_LINE, MAX_UNASKED = 32_000_000, 96_000_000
#: Seconds for a server to end by itself, and then after a signal.
PATIENCE, INSIST = 1.0, 0.5
_CHUNK = 1 << 18
_KEPT = 20
_SET_PARENT_DEATH_SIGNAL = 1
#: Variables of a server besides those of its configuration.
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
    """A started server. `fault` is the reason that this side ended it, or ""."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.fault = ""
        self.said: deque[str] = deque(maxlen=_KEPT)
        self.noise = ""

    def ending(self) -> str:
        """ "" while it runs."""
        status = self.process.returncode
        if self.fault:
            return self.fault
        if status is None:
            return ""
        last = next((line for line in reversed(self.said) if line.strip()), self.noise)
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
    """The streams of a server for the SDK. Ends the process."""
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
            program.said.extend(line[:2_000].decode(errors="replace") for line in lines[-_KEPT:])
        if half:
            program.said.append(half.decode(errors="replace"))

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
    signal_all(program, signal.SIGKILL)  # What the server started may outlive it.
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
