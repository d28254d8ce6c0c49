"""Client of the process that holds the SDK, which starts when a server is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.errors import ChildFailed, ServerFailed, install_command
from tui_agent.mcp_servers.offer import ServerOffer
from tui_agent.mcp_servers.servers import ToolServer
from tui_agent.processes.background import start_task
from tui_agent.processes.child import ChildProcess
from tui_agent.processes.environment import for_servers

WORKER = "tui_agent.mcp_servers.worker"
#: Seconds beyond the worker's own limits after which it counts as dead.
BEYOND = 15.0
#: Seconds for the start of the process and of a server, and its lists.
OFFER_SECONDS = 45.0


class Sampling(Struct, frozen=True):
    """Messages (`role`, `text`) of a server that the model answers, in at most `most` tokens."""

    system: str
    messages: tuple[dict[str, str], ...]
    most: int


class ServerQuestion(Struct, frozen=True):
    """A server's question: words and JSON schema of the answer, a page to open (`url`), or texts for the
    model.
    """

    id: int
    server: str
    message: str = ""
    schema: dict[str, Any] = {}
    url: str = ""
    sampling: Sampling | None = None


#: Accepts with the content, declines, or cancels.
Answer = Callable[[ServerQuestion], Awaitable[tuple[str, dict[str, Any]]]]


class CalledResult(Struct, frozen=True):
    """A long text is in the file `kept`. `pictures` are files."""

    text: str
    failed: bool = False
    kept: str = ""
    bytes: int = 0
    pictures: tuple[str, ...] = ()


def need_sdk() -> None:
    """Raises ServerFailed without the SDK."""
    if find_spec("mcp") is None:
        raise ServerFailed(
            "MCP servers need the package mcp, which is not installed",
            f"install it with `{install_command('tui-agent[mcp]')}`",
        )


class ServerProcess:
    """Calls servers of one folder; raises `ServerFailed`. `keep` is the folder of long results, `asked`
    answers questions of servers.
    """

    def __init__(self, folder: Path, keep: Path, asked: Answer | None = None) -> None:
        self._folder, self._keep, self._asked = str(folder), str(keep), asked
        self._answering: set[asyncio.Task[None]] = set()
        self.child = ChildProcess(WORKER, name="servers", env=for_servers(), on_event=self._on_question)

    async def offer(self, server: ToolServer) -> ServerOffer:
        return msgspec.convert(await self._ask("offer", server, {}, OFFER_SECONDS), ServerOffer)

    async def call(
        self, server: ToolServer, tool: str, arguments: dict[str, Any], seconds: float
    ) -> CalledResult:
        params = {"tool": tool, "arguments": arguments, "timeout": seconds}
        return msgspec.convert(await self._ask("call", server, params), CalledResult)

    async def read(self, server: ToolServer, uri: str, seconds: float) -> CalledResult:
        params = {"uri": uri, "timeout": seconds}
        return msgspec.convert(await self._ask("read", server, params, seconds + OFFER_SECONDS), CalledResult)

    async def prompt(self, server: ToolServer, name: str, arguments: dict[str, str], seconds: float) -> str:
        params = {"name": name, "arguments": arguments, "timeout": seconds}
        return str(await self._ask("prompt", server, params, seconds + OFFER_SECONDS))

    async def login(self, server: ToolServer, pasted: asyncio.Queue[str]) -> AsyncGenerator[str, None]:
        """Yields the page to open, if a login is needed; an address in `pasted` ends it."""

        async def paste() -> None:
            await self.child.ask("paste", {"text": await pasted.get()}, BEYOND)

        pasting = asyncio.create_task(paste(), name="servers: pasted")
        try:
            params = {"server": msgspec.to_builtins(server)}
            async with aclosing(self.child.stream("login", params)) as steps:
                async for step in steps:
                    if url := step.get("open"):
                        yield str(url)
        except ChildFailed as error:
            raise ServerFailed(error.what, error.remedy) from error
        finally:
            pasting.cancel()

    async def end(self, name: str) -> None:
        if self.child.pid is not None:
            await self.child.ask("end", {"name": name}, BEYOND)

    async def close(self) -> None:
        for task in self._answering:
            task.cancel()
        await self.child.close()

    async def _ask(
        self, method: str, server: ToolServer, params: dict[str, Any], seconds: float | None = None
    ) -> Any:
        need_sdk()
        sent = {"server": msgspec.to_builtins(server), "folder": self._folder, "keep": self._keep, **params}
        try:
            return await self.child.ask(method, sent, seconds)
        except ChildFailed as error:
            raise ServerFailed(error.what, error.remedy) from error

    def _on_question(self, event: dict[str, Any]) -> None:
        try:
            question = msgspec.convert(event, ServerQuestion)
        except msgspec.ValidationError:
            return
        start_task(self._answering, self._answer(question), "servers: question")

    async def _answer(self, question: ServerQuestion) -> None:
        action, content = await self._asked(question) if self._asked else ("decline", {})
        await self.child.ask("answer", {"id": question.id, "action": action, "content": content})
