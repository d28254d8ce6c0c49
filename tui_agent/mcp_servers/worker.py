"""Program of the process that holds the SDK: it starts servers when they are first needed, and calls them.

Run as `python -m tui_agent.mcp_servers.worker`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import secrets
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import mcp_types
import msgspec
from mcp.client.client import Client
from mcp.client.session import ElicitationFnT, ListRootsFnT, SamplingFnT
from pydantic import ValidationError

from tui_agent.errors import ServerFailed
from tui_agent.files.masking import masked
from tui_agent.files.private import make_private, open_private
from tui_agent.files.text import clean, one_line, size_in_words
from tui_agent.mcp_servers import transports
from tui_agent.mcp_servers.offer import MAX_OTHERS, MAX_TOOLS, RawOffer, checked_offer
from tui_agent.mcp_servers.servers import ToolServer
from tui_agent.mcp_servers.transports import ServerAddress, log_in
from tui_agent.processes.serve import Announce, Handler, Send, run

#: Bytes of a result that is sent whole; of a longer one, bytes of the beginning and the end.
WHOLE, HEAD, TAIL = 100_000, 20_000, 10_000
#: Characters of an encoded picture, and pictures of one result.
MAX_PICTURE, MAX_PICTURES = 14_000_000, 5
_ENDINGS = {"image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp"}


def text_of(parts: list[Any], structured: Any) -> str:
    """Names pictures, sounds and other bytes."""
    found = [_part(part) for part in parts]
    if not any(found) and structured is not None:
        found = [json.dumps(structured, ensure_ascii=False, indent=1)]
    return clean("\n".join(words for words in found if words))


def _part(part: Any) -> str:
    kind = getattr(part, "type", "")
    if kind == "text":
        return part.text
    if kind == "resource":
        return resource_text(part.resource)
    if kind == "resource_link":
        return f"[resource {one_line(str(part.uri))}: {one_line(part.name or '')}]"
    data, mime = getattr(part, "data", ""), getattr(part, "mime_type", "")
    hidden = "" if kind == "image" else ", which is not shown"
    return f"[{one_line(str(mime or kind))}, {size_in_words(len(data) * 3 // 4)}{hidden}]"


def pictures_of(parts: list[Any], folder: str, name: str) -> list[str]:
    """Omits pictures without known bytes, and those above the limits. Blocking."""
    found: list[str] = []
    for part in parts:
        if getattr(part, "type", "") != "image" or len(part.data) > MAX_PICTURE or len(found) >= MAX_PICTURES:
            continue
        try:
            data = base64.b64decode(part.data, validate=True)
        except ValueError:
            continue
        if path := _stored(
            data, folder, f"{name}-{secrets.token_hex(3)}.{_ENDINGS.get(part.mime_type, 'png')}"
        ):
            found.append(path)
    return found


def resource_text(resource: Any) -> str:
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    size = size_in_words(len(getattr(resource, "blob", "")) * 3 // 4)
    return f"[{one_line(str(resource.uri))}: {one_line(resource.mime_type or 'bytes')}, {size}, not shown]"


def kept(text: str, folder: str, name: str) -> dict[str, Any]:
    data = text.encode(errors="replace")
    if len(data) <= WHOLE:
        return {"text": text, "kept": "", "bytes": len(data)}
    where = _stored(data, folder, f"{name}-{secrets.token_hex(3)}.txt")
    head, tail = data[:HEAD].decode(errors="ignore"), data[-TAIL:].decode(errors="ignore")
    left = size_in_words(len(data) - HEAD - TAIL)
    about = f"[… {left} of {size_in_words(len(data))} are left out here …]"
    return {"text": f"{head}\n{about}\n{tail}", "kept": where, "bytes": len(data)}


def _stored(data: bytes, folder: str, name: str) -> str:
    path = Path(folder) / name
    try:
        make_private(path.parent)
        with os.fdopen(
            open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb"
        ) as file:
            file.write(data)
        return str(path)
    except OSError:
        return ""


Action = Literal["accept", "decline", "cancel"]
#: Characters of a question; questions of one server at a time.
MAX_WORDS, MAX_OPEN = 2_000, 3
#: Messages and characters of a request for the model; the protocol's code of a refusal.
MAX_MESSAGES, MAX_SAMPLED, REFUSED = 100, 200_000, -1
_URL = re.compile(r"https?://[\x21-\x7e]{1,2000}")


class Questions:
    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._open: dict[int, asyncio.Future[tuple[Action, Any]]] = {}
        self._last = 0
        self._clocks: dict[str, dict[asyncio.Timeout, float | None]] = {}
        self._asking: dict[str, int] = {}

    def callback(self, server: str) -> ElicitationFnT:
        async def asked(context: Any, params: Any) -> mcp_types.ElicitResult:
            schema, url = getattr(params, "requested_schema", None), str(getattr(params, "url", ""))
            if len(self._open) >= MAX_OPEN or (schema is None and not _URL.fullmatch(url)):
                return mcp_types.ElicitResult(action="decline")
            fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
            words = {"message": clean(str(params.message))[:MAX_WORDS]}
            asking = (
                {**words, "schema": schema if fields else {}} if schema is not None else {**words, "url": url}
            )
            action, content = await self._ask(server, asking)
            kept = content if action == "accept" and schema is not None else None
            return mcp_types.ElicitResult(action=action, content=kept)

        return asked

    def sampling(self, server: str) -> SamplingFnT:
        """Answers a server that may use the model; names content other than text."""

        async def sample(
            context: Any, params: mcp_types.CreateMessageRequestParams
        ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
            if len(self._open) >= MAX_OPEN:
                return mcp_types.ErrorData(code=REFUSED, message="Too many requests wait already.")
            texts = [
                {
                    "role": one.role,
                    "text": text_of(one.content if isinstance(one.content, list) else [one.content], None),
                }
                for one in params.messages[:MAX_MESSAGES]
            ]
            if sum(len(one["text"]) for one in texts) + len(params.system_prompt or "") > MAX_SAMPLED:
                return mcp_types.ErrorData(code=REFUSED, message=f"More than {MAX_SAMPLED:,} characters.")
            wanted = {"system": params.system_prompt or "", "messages": texts, "most": params.max_tokens}
            action, content = await self._ask(server, {"sampling": wanted})
            if action != "accept":
                return mcp_types.ErrorData(code=REFUSED, message=str(content.get("why", "It was refused.")))
            return mcp_types.CreateMessageResult(
                role="assistant",
                content=mcp_types.TextContent(type="text", text=content["text"]),
                model=content["model"],
                stop_reason="endTurn",
            )

        return sample

    def roots(self, folder: str) -> ListRootsFnT:
        async def roots(context: Any) -> mcp_types.ListRootsResult:
            return mcp_types.ListRootsResult(
                roots=[mcp_types.Root(uri=Path(folder).as_uri(), name=Path(folder).name)]
            )

        return roots

    @asynccontextmanager
    async def clock(self, server: str, seconds: float) -> AsyncGenerator[None]:
        """A time limit that stops while the user is asked. Raises TimeoutError."""
        async with asyncio.timeout(seconds) as limit:
            clocks = self._clocks.setdefault(server, {})
            clocks[limit] = None
            try:
                yield
            finally:
                del clocks[limit]

    @contextmanager
    def _stopped_clocks(self, server: str) -> Generator[None]:
        """Until none of the server's questions is open."""
        loop, clocks = asyncio.get_running_loop(), self._clocks.setdefault(server, {})
        for limit, left in clocks.items():
            if left is None and (when := limit.when()) is not None and not limit.expired():
                clocks[limit] = when - loop.time()
                limit.reschedule(None)
        self._asking[server] = self._asking.get(server, 0) + 1
        try:
            yield
        finally:
            self._asking[server] -= 1
            if not self._asking[server]:
                for limit, left in clocks.items():
                    if left is not None:
                        limit.reschedule(loop.time() + left)
                        clocks[limit] = None

    def answer(self, id: int, action: Action, content: Any) -> None:
        found = self._open.get(id)
        if found is not None and not found.done():
            found.set_result((action, content))

    async def _ask(self, server: str, asking: dict[str, Any]) -> tuple[Action, Any]:
        self._last += 1
        id, answer = self._last, asyncio.get_running_loop().create_future()
        self._open[id] = answer
        try:
            with self._stopped_clocks(server):
                self._announce({"id": id, "server": server, **asking})
                return await answer
        finally:
            del self._open[id]


_log = logging.getLogger(__name__)
START_SECONDS = 10.0
MAX_PAGES = 100
#: Seconds to wait for the end of a program that closed its output.
NOTICED_WITHIN = 0.3
#: Seconds for a login, for one answer in it, and until its page is known: the SDK asks at up to eight
#: addresses.
LOGIN_SECONDS, LOGIN_BETWEEN, LOGIN_BEGINS = 600.0, 30.0, 20.0
#: Starts of one server, within so many seconds.
MOST_STARTS, WITHIN = 5, 60.0


class RunningServer:
    def __init__(self, server: ToolServer, folder: str, questions: Questions) -> None:
        self.server = server
        self._folder, self._questions = folder, questions
        self._program: transports.ServerProgram | None = None
        self._address: ServerAddress | None = None
        self._wanted = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"server {server.name}")

    @property
    def ended(self) -> bool:
        program = self._program
        return self._task.done() or (program is not None and program.process.returncode is not None)

    async def client(self) -> Client:
        """Raises ServerFailed."""
        return await asyncio.shield(self._ready)

    async def end(self) -> None:
        self._wanted.set()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def failed(self, error: BaseException, doing: str) -> ServerFailed:
        program = self._program
        if program is not None and not program.fault and not isinstance(error, TimeoutError):
            await asyncio.wait([asyncio.create_task(program.process.wait())], timeout=NOTICED_WITHIN)
            await asyncio.sleep(0)
        ending = self._program.ending() if self._program else ""
        why = ending or (self._address.fault(error) if self._address else "") or _reason(error)
        more = f"`tui-agent mcp test {self.server.name}` shows more"
        remedy = "then try again" if "mcp login" in why else more
        return ServerFailed(f"The server {self.server.name} {doing}: {why}", remedy)

    @asynccontextmanager
    async def doing(
        self, what: str, limit: AbstractAsyncContextManager[object], late: str
    ) -> AsyncGenerator[None]:
        """Raises ServerFailed: the server `what`, if it is over `limit` because of `late`."""
        try:
            async with limit:
                yield
        except Exception as error:
            _log.debug("a call of %s failed", self.server.name, exc_info=True)
            if isinstance(error, TimeoutError):
                error = TimeoutError(late)
            raise await self.failed(error, what) from None

    async def _run(self) -> None:
        """Holds the connection. The SDK's contexts are entered and left in this one task."""
        try:
            async with AsyncExitStack() as last:
                name, settings = self.server.name, self.server.settings
                async with asyncio.timeout(START_SECONDS):
                    client = Client(
                        await self._transport(last),
                        elicitation_callback=self._questions.callback(name),
                        list_roots_callback=self._questions.roots(self._folder),
                        sampling_callback=self._questions.sampling(name) if settings.sampling else None,
                        cache=None,
                    )
                    await last.enter_async_context(client)
                if not self._ready.done():
                    self._ready.set_result(client)
                await self._wanted.wait()
        except (Exception, asyncio.CancelledError) as error:
            _log.debug("the server %s failed", self.server.name, exc_info=error)
            if not self._ready.done():
                if isinstance(error, TimeoutError):
                    error = TimeoutError(_late(START_SECONDS))
                self._ready.set_exception(await self.failed(error, "cannot be used"))
                self._ready.exception()  # A cancelled caller does not retrieve it.
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _transport(self, last: AsyncExitStack) -> Any:
        settings = self.server.settings
        if settings.url:
            self._address = ServerAddress(self.server)
            return await self._address.transport(last)
        try:
            self._program = await transports.start(
                settings.command, list(settings.args), settings.env, self._folder
            )
        except (OSError, ValueError) as error:
            raise RuntimeError(f"{settings.command} cannot be started ({_reason(error)})") from None
        return transports.transport(self._program)


def _late(seconds: float) -> str:
    return f"it did not answer within {seconds:g} s"


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, asyncio.CancelledError):
        return "it was ended"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return one_line(f"its answer does not follow the protocol ({where}: {first['msg']})")[:300]
    words = one_line(masked(str(error))).strip().rstrip(".")[:300]
    return words or type(error).__name__


class WorkerMethods:
    def __init__(self, announce: Announce) -> None:
        self._running: dict[str, RunningServer] = {}
        self._starts: dict[str, list[float]] = {}
        self.questions = Questions(announce)
        self._pasted: asyncio.Future[str] | None = None

    async def offer(self, params: dict[str, Any], send: Send) -> Any:
        running, client = await self._connected(params)
        late = f"it did not list its tools within {START_SECONDS:g} s"
        async with running.doing("cannot be used", asyncio.timeout(START_SECONDS), late):
            raw, able = RawOffer(), client.server_capabilities
            if able.tools is not None:
                for tool in await _pages(client.list_tools, "tools", MAX_TOOLS, raw):
                    raw.tools.append(
                        {"name": tool.name, "description": tool.description, "schema": tool.input_schema}
                    )
            if able.prompts is not None:
                for prompt in await _pages(client.list_prompts, "prompts", MAX_OTHERS, raw):
                    arguments = [one.name + ("" if one.required else "?") for one in prompt.arguments or []]
                    raw.prompts.append(
                        {"name": prompt.name, "description": prompt.description, "arguments": arguments}
                    )
            if able.resources is not None:
                for found in await _pages(client.list_resources, "resources", MAX_OTHERS, raw):
                    raw.resources.append({"uri": str(found.uri), "name": found.name})
        return await asyncio.to_thread(checked_offer, running.server.name, raw)

    async def call(self, params: dict[str, Any], send: Send) -> Any:
        running, client = await self._connected(params)
        name, seconds = params["tool"], params["timeout"]
        clock = self.questions.clock(running.server.name, seconds)
        async with running.doing(f"did not do {one_line(name)[:80]}", clock, _late(seconds)):
            result = await client.call_tool(name, params["arguments"])
        text = await asyncio.to_thread(text_of, result.content, result.structured_content)
        found = await asyncio.to_thread(kept, text, params["keep"], running.server.name)
        pictures = await asyncio.to_thread(pictures_of, result.content, params["keep"], running.server.name)
        return {**found, "failed": bool(result.is_error), "pictures": pictures}

    async def read(self, params: dict[str, Any], send: Send) -> Any:
        running, client = await self._connected(params)
        seconds, doing = params["timeout"], f"did not give {one_line(params['uri'])[:120]}"
        async with running.doing(doing, asyncio.timeout(seconds), _late(seconds)):
            result = await client.read_resource(params["uri"])
        text = "\n".join(map(resource_text, result.contents))
        return await asyncio.to_thread(kept, text, params["keep"], running.server.name)

    async def prompt(self, params: dict[str, Any], send: Send) -> str:
        running, client = await self._connected(params)
        seconds, doing = params["timeout"], f"did not give the prompt {one_line(params['name'])[:80]}"
        async with running.doing(doing, asyncio.timeout(seconds), _late(seconds)):
            result = await client.get_prompt(params["name"], params["arguments"])
        return text_of([message.content for message in result.messages], None)[:WHOLE]

    async def login(self, params: dict[str, Any], send: Send) -> None:
        """Sends `{"open": url}` when the user has a page to open, and at last `{"done": whether one was
        needed}`.
        """
        server = msgspec.convert(params["server"], ToolServer)
        self._pasted = asyncio.get_running_loop().create_future()
        addresses: list[ServerAddress] = []

        async def connect(access: Any) -> None:
            addresses.append(ServerAddress(server, access, LOGIN_BETWEEN))
            async with AsyncExitStack() as last:
                await last.enter_async_context(Client(await addresses[0].transport(last), cache=None))

        async def show(url: str) -> None:
            limit.reschedule(asyncio.get_running_loop().time() + LOGIN_SECONDS)
            await send({"open": url})

        limit = asyncio.timeout(LOGIN_BEGINS)
        try:
            async with limit:
                await send({"done": await log_in(server, self._pasted, show, connect)})
        except Exception as error:
            _log.debug("a login failed", exc_info=True)
            late = "it did not answer in time" if limit.expired() else ""
            why = late or (addresses[0].fault(error) if addresses else "") or _reason(error)
            raise ServerFailed(
                f"The login at {server.name} failed: {why}", "try again, or ask its operator"
            ) from None

    async def paste(self, params: dict[str, Any], send: Send) -> None:
        """Takes the address at which a browser on another machine ended."""
        if self._pasted is not None and not self._pasted.done():
            self._pasted.set_result(str(params["text"]))

    async def answer(self, params: dict[str, Any], send: Send) -> None:
        self.questions.answer(params["id"], params["action"], params["content"])

    async def end(self, params: dict[str, Any], send: Send) -> None:
        running = self._running.pop(params["name"], None)
        if running is not None:
            await running.end()

    async def _connected(self, params: dict[str, Any]) -> tuple[RunningServer, Client]:
        server = msgspec.convert(params["server"], ToolServer)
        running = self._running.get(server.name)
        if running is not None and (running.ended or running.server != server):
            await running.end()
            running = None
        if running is None:
            now = time.monotonic()
            starts = [at for at in self._starts.get(server.name, []) if now - at < WITHIN]
            if len(starts) >= MOST_STARTS:
                raise ServerFailed(
                    f"The server {server.name} ended {MOST_STARTS} times within a minute",
                    f"`tui-agent mcp test {server.name}` shows why",
                )
            self._starts[server.name] = [*starts, now]
            running = self._running[server.name] = RunningServer(server, params["folder"], self.questions)
        return running, await running.client()


async def _pages(ask: Any, field: str, most: int, offer: RawOffer) -> list[Any]:
    found: list[Any] = []
    cursor, seen = None, set[str]()
    for _ in range(MAX_PAGES):
        try:
            page = await ask(cursor=cursor)
        except Exception as error:
            if field == "tools":
                raise
            _log.debug("a list of %s failed", field, exc_info=True)
            offer.cut.append(f"its {field} cannot be listed ({_reason(error)})")
            break
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor or cursor in seen or len(found) > most:
            break
        seen.add(cursor)
    return found[: most + 1]


def build(announce: Announce) -> Mapping[str, Handler]:
    servers = WorkerMethods(announce)
    handlers = (servers.offer, servers.call, servers.read, servers.prompt)
    handlers += (servers.login, servers.paste, servers.answer, servers.end)
    return {handler.__name__: handler for handler in handlers}


if __name__ == "__main__":
    run(build)
