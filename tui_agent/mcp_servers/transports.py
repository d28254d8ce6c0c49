"""Transports of servers: programs with standard streams, and addresses with streamable HTTP and logins by OAuth."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import mcp_types
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from mcp.shared.message import SessionMessage
from pydantic import AnyUrl

from tui_agent.files.numbers import amount
from tui_agent.files.text import one_line
from tui_agent.mcp_servers.servers import ToolServer, login_name
from tui_agent.model.certificates import verification
from tui_agent.model.login.flow import redirect_listener
from tui_agent.model.login.store import Login, LoginStore

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
            async with asyncio.timeout(seconds):
                await process.wait()
            break
        except TimeoutError:
            signal_all(program, number)
    signal_all(program, signal.SIGKILL)
    await asyncio.wait(tasks, timeout=INSIST)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(TimeoutError):
        async with asyncio.timeout(INSIST):
            await process.wait()


def signal_all(program: ServerProgram, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.process.pid, number)


def _end_with_us() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


CALLBACK = "/callback"
#: Seconds before its end at which a token is refreshed.
EARLY = 30.0


class WantsLogin(Exception):
    """The server requires a login, but no user is there."""


class KeptTokens(TokenStorage):
    def __init__(self, server: ToolServer) -> None:
        self.store, self.name = LoginStore(), login_name(server)
        self.kept: dict[str, Any] = {}

    async def load(self) -> None:
        login = await asyncio.to_thread(self.store.get, self.name)
        try:
            value = json.loads(login.token) if login is not None else {}
        except ValueError:
            value = {}
        self.kept = value if isinstance(value, dict) else {}

    async def save(self) -> None:
        """Raises FileError."""
        login = Login(token=json.dumps(self.kept), expires=amount(self.kept.get("expires"), 0.0))
        await asyncio.to_thread(self.store.put, self.name, login)

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(self.kept["tokens"]) if self.kept.get("tokens") else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.kept["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self.kept["expires"] = time.time() + tokens.expires_in - EARLY if tokens.expires_in else 0.0
        await self.save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        client = self.kept.get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.kept["client"] = client_info.model_dump(mode="json", exclude_none=True)


class ServerAccess(OAuthClientProvider):
    """Adds the token to requests, and refreshes it with the addresses that the login found.

    Processes take turns to refresh, and use a token that another process refreshed.
    """

    def __init__(
        self,
        server: ToolServer,
        redirect: str = "http://localhost/",
        open_page: Callable[[str], Awaitable[None]] | None = None,
        code: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
    ) -> None:
        self.tokens = KeptTokens(server)
        self._name = server.name
        super().__init__(
            server.settings.url,
            OAuthClientMetadata(
                client_name="tui-agent",
                redirect_uris=[AnyUrl(redirect)],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
                token_endpoint_auth_method="none",
            ),
            self.tokens,
            redirect_handler=open_page or self._refuse,
            callback_handler=code or self._refuse,
        )

    async def restore(self) -> None:
        await self.tokens.load()
        self.context.current_tokens = await self.tokens.get_tokens()
        self.context.client_info = await self.tokens.get_client_info()
        self.context.token_expiry_time = amount(self.tokens.kept.get("expires"), 0.0) or None
        if metadata := self.tokens.kept.get("metadata"):
            self.context.oauth_metadata = OAuthMetadata.model_validate(metadata)
        if issuer := self.tokens.kept.get("issuer"):
            self.context.auth_server_url = str(issuer)

    async def remember(self) -> None:
        if self.context.oauth_metadata is not None:
            self.tokens.kept["metadata"] = self.context.oauth_metadata.model_dump(
                mode="json", exclude_none=True
            )
        self.tokens.kept["issuer"] = self.context.auth_server_url
        await self.tokens.save()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = self.context.current_tokens
        if used is None or not self.context.can_refresh_token():
            async with aclosing(_driven(super().async_auth_flow(request))) as exchanges:
                async for one in exchanges:
                    one.response = yield one.request
            return
        if self.context.is_token_valid():
            request.headers["Authorization"] = f"Bearer {used.access_token}"
            response = yield request
            if response.status_code != 401:
                return
        async with self.tokens.store.locked():
            await self.restore()
            kept = self.context.current_tokens
            if kept is None or kept.access_token == used.access_token:
                self.context.token_expiry_time = 1.0
            async with aclosing(_driven(super().async_auth_flow(request))) as exchanges:
                async for one in exchanges:
                    one.response = yield one.request

    async def _refuse(self, url: str = "") -> NoReturn:
        raise WantsLogin(f"it requires a login: run `tui-agent mcp login {self._name}`")


class _Exchange:
    def __init__(self, request: httpx2.Request) -> None:
        self.request = request
        self.response: httpx2.Response | None = None


async def _driven(flow: AsyncGenerator[httpx2.Request, httpx2.Response]) -> AsyncGenerator[_Exchange]:
    try:
        one = _Exchange(await flow.__anext__())
        while True:
            yield one
            assert one.response is not None
            one = _Exchange(await flow.asend(one.response))
    except StopAsyncIteration:
        return
    finally:
        await flow.aclose()


async def log_in(
    server: ToolServer,
    pasted: asyncio.Future[str],
    open_page: Callable[[str], Awaitable[None]],
    connect: Callable[[ServerAccess], Awaitable[None]],
) -> bool:
    """Logs in at a server, by a page that redirects to this machine or whose address is `pasted`.

    `connect` makes the request that the server refuses without a login. Returns False if it refuses
    nothing.
    """

    async def show(url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not url.isprintable():
            raise WantsLogin("its login page is not an http or https address")
        await open_page(url)

    async with redirect_listener(CALLBACK) as (port, found):

        async def code() -> AuthorizationCodeResult:
            done, _ = await asyncio.wait((found, pasted), return_when=asyncio.FIRST_COMPLETED)
            query = found.result() if found in done else urlsplit(pasted.result().strip()).query
            fields = parse_qs(query)
            if error := fields.get("error"):
                raise WantsLogin(f"the login was denied ({error[0][:100]})")
            state, issuer = fields.get("state", [None])[0], fields.get("iss", [None])[0]
            return AuthorizationCodeResult(code=fields.get("code", [""])[0], state=state, iss=issuer)

        access = ServerAccess(server, f"http://127.0.0.1:{port}{CALLBACK}", show, code)
        await connect(access)
    if access.context.current_tokens is None:
        return False
    await access.remember()
    return True


async def with_token(server: ToolServer) -> ServerAccess:
    access = ServerAccess(server)
    await access.restore()
    return access


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
