"""Servers of the Model Context Protocol in a session: read when the first turn needs them, started when
called.

The first request fixes the list of tools, from lists of earlier sessions. A request never waits for a
server: the prompt names one without a stored list, and its tools are called by name.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from tui_agent.errors import ServerFailed, TuiAgentError
from tui_agent.log.core import Core, call
from tui_agent.processes.background import start_task
from tui_agent.store import events as e
from tui_agent.store.conversation import ListedTool, ServerToolsSlice
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.mcp_servers.client import ServerProcess, ServerQuestion
    from tui_agent.mcp_servers.offer import ServerOffer
    from tui_agent.mcp_servers.servers import ConfiguredServers, ToolServer
    from tui_agent.tools.tool import AskPerson, ServerCalls, ServerResult

WORKSPACE_FILE = ".mcp.json"
#: Folder of long results in the session's folder.
RESULTS = "server-results"
#: Characters of all schemas above which tools are called by name.
MAX_INLINE = 40_000
MAX_RESOURCES = 10
_RESOURCE = re.compile(
    r"(?<![\w@])@([A-Za-z0-9][A-Za-z0-9_-]*):([a-zA-Z][a-zA-Z0-9+.-]*:[^\s\"'<>]*[^\s\"'<>.,;:!?)])"
)
MAX_NOTICES = 5


class McpServers:
    def __init__(self, core: Core, notice: Callable[..., Coroutine[Any, Any, None]]) -> None:
        self._core, self._notice = core, notice
        self._loading: asyncio.Task[None] | None = None
        self._listing: dict[str, asyncio.Task[ServerOffer]] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._process: ServerProcess | None = None
        self._configured: ConfiguredServers | None = None
        self._parent: McpServers | None = None
        self._asking: dict[str, list[AskPerson]] = {}
        #: Answers a server with the model: system prompt, messages, maximum tokens. Raises a `TuiAgentError`.
        self._sample: Callable[[str, Sequence[dict[str, str]], int], Awaitable[str]] | None = None
        #: By server; from an earlier session until the server starts.
        self.offers: dict[str, ServerOffer] = {}

    @property
    def state(self) -> State:
        return self._core.state

    @property
    def servers(self) -> tuple[ToolServer, ...]:
        return self._configured.servers if self._configured else ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about entries that are left out."""
        return self._configured.problems if self._configured else ()

    @property
    def calls(self) -> ServerCalls | None:
        listed = self.state.server_tools
        if not (listed.inline or listed.by_name):
            return None
        from tui_agent.tools.tool import ServerCalls

        at = self._parent or self
        return ServerCalls(at.find, at.call_tool, at.tools_of, at.covers)

    @call(changes=False)
    def start(self) -> None:
        if self._loading is None and (loading := self._begin()):
            loading.add_done_callback(lambda _: self._list_unknown())

    @call(changes=False)
    async def read(self) -> None:
        if loading := self._begin():
            await asyncio.shield(loading)

    def _begin(self) -> asyncio.Task[None] | None:
        file = self._core.workspace.root / WORKSPACE_FILE
        if self._parent is not None or not (self._core.settings.mcp.servers or os.path.lexists(file)):
            return None
        if self._loading is None:
            self._loading = asyncio.create_task(self._load(), name="servers: configuration")
        return self._loading

    @call(changes=False)
    async def ready(self) -> None:
        """Fixes the list of tools before a first request."""
        await self.read()
        state = self.state
        if (
            self._configured is None
            or state.conversation.messages
            or state.server_tools != ServerToolsSlice()
        ):
            return
        servers = self._configured.on
        known = [one for server in servers for one in _tools(server.name, self.offers.get(server.name))]
        unknown = tuple(server.name for server in servers if server.name not in self.offers)
        size = sum(len(str(one.schema)) + len(one.description) for one in known)
        few = len(known) <= self._core.settings.mcp.inline_tools and size <= MAX_INLINE
        # The provider's schema for structured replies accepts no other schemas.
        if few and not unknown and state.model.protocol == "tools":
            listed = ServerToolsSlice(inline=tuple(known))
        else:
            named = tuple((one.name, one.description[:200]) for one in known)
            listed = ServerToolsSlice(named=named, unknown=unknown)
        if listed != ServerToolsSlice():
            await self._core.journal.record(e.ServerToolsListed(listed))

    @call(changes=False)
    async def share(self, parent: McpServers) -> None:
        self._parent = parent
        listed = parent.state.server_tools
        if listed.inline or listed.by_name:
            await self._core.journal.record(e.ServerToolsListed(listed))

    @call(changes=False)
    async def close(self) -> None:
        tasks = [*self._listing.values(), *([self._loading] if self._loading else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.close()

    @call(changes=False)
    def prompts(self) -> dict[str, str]:
        return {
            f"{server.name}:{prompt.name}": prompt.description or f"A prompt of {server.name}"
            for server in self.servers
            if server.on and server.name in self.offers
            for prompt in self.offers[server.name].prompts
        }

    @call(changes=False)
    async def prompt(self, name: str, words: str) -> str:
        """The last argument takes the rest of `words`. Raises `ServerFailed`."""
        at, _, own = name.partition(":")
        server = self._server(at)
        wanted = next(one.arguments for one in self.offers[at].prompts if one.name == own)
        given = words.split(None, max(0, len(wanted) - 1)) if words else []
        missing = [one for one in wanted[len(given) :] if not one.endswith("?")]
        if missing:
            usage = " ".join(wanted)
            raise ServerFailed(f"/{name} needs {', '.join(missing)}", f"write /{name} {usage}")
        arguments = {one.rstrip("?"): word for one, word in zip(wanted, given, strict=False)}
        return await self._use_process().prompt(server, own, arguments, self._core.settings.mcp.timeout)

    @call(changes=False)
    def suggest(self, query: str, count: int) -> list[tuple[str, str]]:
        """Pairs of `server:uri` and name that begin with the query, or contain it after `server:`."""
        found = []
        for server in self.servers:
            if server.on and server.name in self.offers:
                name, _, words = query.partition(":")
                for resource in self.offers[server.name].resources:
                    whole = f"{server.name}:{resource.uri}"
                    held = name == server.name and words.lower() in f"{resource.uri} {resource.name}".lower()
                    if query and (whole.startswith(query) or held):
                        found.append((whole, resource.name))
        return found[:count]

    @call(changes=False)
    async def with_resources(self, text: str) -> tuple[str, str]:
        """The message without `@server:uri`, and the resources' text. Raises `ServerFailed`."""
        names = {server.name for server in self.servers if server.on}
        found: list[str] = []

        def name(match: re.Match[str]) -> str:
            if match[1] not in names:
                return match[0]
            if match[0] not in found:
                found.append(match[0])
            return f"resource {found.index(match[0]) + 1}"

        words = _RESOURCE.sub(name, text)
        sections = []
        for number, mention in enumerate(found[:MAX_RESOURCES], 1):
            at, _, uri = mention[1:].partition(":")
            result = await self._use_process().read(self._server(at), uri, self._core.settings.mcp.timeout)
            kept = f"\n(All of it is in {result.kept})" if result.kept else ""
            sections.append(f"Resource {number}, {uri} of the server {at}:\n{result.text}{kept}")
        return words, "\n\n".join(sections)

    @call(changes=False)
    async def find(self, name: str) -> ListedTool:
        """Raises ServerFailed."""
        server = self._server(name.partition("__")[0])
        offer = await self._live(server)
        found = next((one for one in _tools(server.name, offer) if one.name == name), None)
        if found is None:
            near = ", ".join(one.name for one in _tools(server.name, offer)[:20])
            raise ServerFailed(
                f"The server {server.name} has no tool {name[:80]}", f"its tools are: {near or 'none'}"
            )
        return found

    @call(changes=False)
    async def call_tool(
        self, listed: ListedTool, arguments: dict[str, Any], asking: AskPerson
    ) -> ServerResult:
        """`asking` answers the server's questions. Raises `ServerFailed`."""
        from tui_agent.tools.tool import ServerResult

        now = await self.find(listed.name)
        if now.digest != listed.digest:
            raise ServerFailed(
                f"{listed.name} was not called, because its server now describes it differently",
                "a new session offers it as it is now",
            )
        process = self._use_process()
        seconds = self._core.settings.mcp.timeout
        waiting = self._asking.setdefault(listed.server, [])
        waiting.append(asking)
        try:
            found = await process.call(self._server(listed.server), listed.tool, arguments, seconds)
        finally:
            waiting.remove(asking)
        return ServerResult(found.text, found.failed, found.kept, found.bytes, found.pictures)

    @call(changes=False)
    async def tools_of(self, name: str) -> tuple[tuple[str, str], ...]:
        """Raises ServerFailed."""
        server = self._server(name)
        return tuple((one.name, one.description) for one in _tools(server.name, await self._live(server)))

    @call(changes=False)
    def covers(self, name: str) -> str:
        return next((server.digest for server in self.servers if server.name == name), "")

    def _server(self, name: str) -> ToolServer:
        for server in self.servers:
            if server.name == name and server.on:
                return server
        names = ", ".join(server.name for server in self.servers if server.on) or "none"
        raise ServerFailed(f"There is no server {name[:60]}", f"the servers are: {names}")

    def _use_process(self) -> ServerProcess:
        if self._process is None:
            from tui_agent.mcp_servers.client import ServerProcess

            keep = self._core.storage.folder / RESULTS
            self._process = ServerProcess(self._core.workspace.root, keep, self._answer)
        return self._process

    async def _answer(self, question: ServerQuestion) -> tuple[str, dict[str, Any]]:
        """Declines if no turn waits for the server."""
        waiting = self._asking.get(question.server)
        if not waiting:
            await self._notice(
                f"A question of the server {question.server} was declined: no call of it runs", "warning"
            )
            return "decline", {}
        if question.sampling is not None:
            if self._sample is None or not self._server(question.server).settings.sampling:
                return "decline", {"why": f"The person does not allow {question.server} to use the model."}
            try:
                text = await self._sample(
                    question.sampling.system, question.sampling.messages, question.sampling.most
                )
            except TuiAgentError as error:
                await self._notice(
                    f"The server {question.server} got no answer of the model: {error}", "warning"
                )
                return "decline", {"why": str(error)}
            await self._notice(f"The model answered a text of the server {question.server}")
            return "accept", {"text": text, "model": self.state.model.name}
        schema = {"url": question.url} if question.url else question.schema
        return await waiting[-1](question.server, question.message, schema)

    @call(changes=False)
    def sample_with(self, sample: Callable[[str, Sequence[dict[str, str]], int], Awaitable[str]]) -> None:
        self._sample = sample

    async def _live(self, server: ToolServer) -> ServerOffer:
        task = self._listing.get(server.name)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._begin_list(server)
        return await asyncio.shield(task)

    def _begin_list(self, server: ToolServer) -> asyncio.Task[ServerOffer]:
        task = asyncio.create_task(self._list(server), name=f"servers: {server.name}")
        self._listing[server.name] = task
        return task

    async def _list(self, server: ToolServer) -> ServerOffer:
        from tui_agent.mcp_servers.offer import store_offer

        offer = await self._use_process().offer(server)
        before = self.offers.get(server.name)
        self.offers[server.name] = offer
        if offer != before:
            try:
                await asyncio.to_thread(store_offer, self._core.folders.cache, server.digest, offer)
            except OSError:
                pass  # the next session lists them again
            for problem in offer.problems[:MAX_NOTICES]:
                await self._notice(problem, "warning")
            if before is not None and before.tools != offer.tools:
                await self._notice(
                    f"The tools of {server.name} have changed: a new session offers them as they are now"
                )
        return offer

    def _list_unknown(self) -> None:
        if self._configured is None:
            return
        for server in self._configured.on:
            if server.name not in self.offers and server.name not in self._listing:
                self._begin_list(server).add_done_callback(self._report)

    def _report(self, task: asyncio.Task[ServerOffer]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, TuiAgentError):
            start_task(self._telling, self._notice(str(error), "warning"))

    async def _load(self) -> None:
        problems = await asyncio.to_thread(self._read)
        for problem in problems[:MAX_NOTICES]:
            await self._notice(problem, "warning")

    def _read(self) -> list[str]:
        from tui_agent.mcp_servers.offer import stored_offer
        from tui_agent.mcp_servers.servers import configured

        core = self._core
        found = configured(core.settings.mcp.servers, core.workspace.root, core.folders)
        for server in found.on:
            offer = stored_offer(core.folders.cache, server.digest)
            if offer is not None:
                self.offers[server.name] = offer
        self._configured = found
        return list(found.problems)


def _tools(server: str, offer: ServerOffer | None) -> list[ListedTool]:
    if offer is None:
        return []
    from tui_agent.mcp_servers.offer import tool_name

    return [
        ListedTool(tool_name(server, one.name), server, one.name, one.description, one.schema, one.digest)
        for one in offer.tools
    ]
