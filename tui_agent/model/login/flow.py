"""Login steps, polling for device flows, and HTTP requests with JSON responses and errors without tokens."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from tui_agent.errors import LoginEnded, LoginFailed, Unreachable
from tui_agent.files.masking import masked
from tui_agent.files.numbers import amount, real_number
from tui_agent.files.text import one_line
from tui_agent.model.certificates import verification
from tui_agent.model.login.services import LoginService
from tui_agent.model.login.store import Login

_SECONDS = 30.0
_HEAD_SECONDS = 10.0
_MOST_BYTES = 1 << 20
_SAID_CHARACTERS = 200


class WebAnswer(Struct, frozen=True):
    """`body` is {} if invalid."""

    status: int
    body: dict[str, Any]
    host: str
    seconds: float = 0.0

    def text(self, *names: str) -> str:
        values = (self.body.get(name) for name in names)
        return next((value for value in values if isinstance(value, str) and value), "")

    def token(self, name: str) -> str:
        """Returns "" for text that is invalid in a header."""
        found = self.text(name)
        return found if found.isascii() and found.isprintable() and " " not in found else ""

    def number(self, name: str) -> float:
        value = self.body.get(name)
        number = real_number(value) if isinstance(value, str) else amount(value, 0.0)
        return number if 0 < number < 1e12 else 0.0

    @property
    def error(self) -> str:
        error = self.body.get("error")
        match error:
            case str():
                return error
            case {"code": str(code)} if code:
                return code
            case {"type": str(kind)}:
                return kind
        return self.text("code")

    @property
    def detail(self) -> str:
        """Shortened and masked, as the end of a sentence."""
        error = self.body.get("error")
        words = self.text("error_description", "message", "detail")
        if not words and isinstance(error, dict):
            words = str(error.get("message") or "")
        words = one_line(masked(words or self.error)).strip().rstrip(".")[:_SAID_CHARACTERS]
        return f"status {self.status}, {words}" if words else f"status {self.status}"

    def garbage(self) -> LoginFailed:
        return LoginFailed(
            f"{self.host} sent an answer that cannot be used ({self.detail})",
            "try again later, or check the proxy and the network",
        )


class LoginWeb:
    async def __aenter__(self) -> Self:
        self._httpx: Any = await asyncio.to_thread(import_module, "httpx")
        verify = await asyncio.to_thread(verification)
        self._client = self._httpx.AsyncClient(verify=verify, follow_redirects=False, timeout=_SECONDS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def ask(
        self,
        url: str,
        body: dict[str, str] | None = None,
        *,
        form: bool = False,
        headers: dict[str, str] | None = None,
    ) -> WebAnswer:
        """Sends GET, or POST with a body. Raises `Unreachable` without a response."""
        host = urlsplit(url).hostname or ""
        posted: dict[str, Any] = {} if body is None else {"data": body} if form else {"json": body}
        try:
            async with asyncio.timeout(_SECONDS):
                request = self._client.stream(
                    "GET" if body is None else "POST",
                    url,
                    headers={"Accept": "application/json", **(headers or {})},
                    **posted,
                )
                async with request as response:
                    raw = bytearray()
                    async for piece in response.aiter_bytes():
                        raw += piece
                        if len(raw) > _MOST_BYTES:
                            raise LoginFailed(f"{host} sent an answer without an end", "try again later")
        except (self._httpx.HTTPError, OSError, TimeoutError) as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
            raise Unreachable(
                f"{host} cannot be reached ({why})", "check the network and the proxy, then try again"
            ) from None
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = {}
        return WebAnswer(
            response.status_code,
            value if isinstance(value, dict) else {},
            host,
            min(real_number(response.headers.get("retry-after")), 600.0),
        )


class ShowCode(Struct, frozen=True):
    """To be entered at `url` within `seconds`."""

    code: str
    url: str
    seconds: float


class OpenPage(Struct, frozen=True):
    """Redirects to this machine."""

    url: str
    seconds: float


class AwaitApproval(Struct, frozen=True):
    """The next poll is in `seconds`."""

    seconds: float


class LoggedIn(Struct, frozen=True):
    login: Login


class LoginBusy(Unreachable):
    """`seconds` is the requested delay, 0 if unspecified."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what, "send the request again later")
        self.seconds = seconds


Found = TypeVar("Found")
LoginProgress = ShowCode | OpenPage | AwaitApproval | LoggedIn
#: Default polling interval in seconds, and its increase for `slow_down` (RFC 8628).
INTERVAL, SLOWER = 5.0, 5.0
#: Default and maximum validity of a code.
VALID, LONGEST = 900.0, 3600.0
#: Maximum consecutive polls without a response.
_SILENT = 5


class SlowDown(Struct, frozen=True):
    """`interval` in seconds, 0 if unspecified."""

    interval: float = 0.0


def shown_code(answer: WebAnswer, code: str, url: str) -> tuple[str, str]:
    """Raises `LoginFailed` for an invalid code or address."""
    parts = urlsplit(url)
    plain = code.isascii() and code.isprintable() and url.isascii() and url.isprintable()
    if not plain or not 1 <= len(code) <= 40 or len(url) > 500 or parts.scheme not in ("http", "https"):
        raise answer.garbage()
    return code, url


async def approval(
    ask: Callable[[], Awaitable[Found | SlowDown | None]], interval: float, seconds: float, title: str
) -> AsyncGenerator[AwaitApproval | Found]:
    """Polls until there is a result, and yields it last. `ask` returns `None` while pending. Raises
    `LoginFailed` if the code expires.
    """
    until, silent = time.monotonic() + min(seconds or VALID, LONGEST), 0
    interval = interval or INTERVAL
    while True:
        yield AwaitApproval(interval)
        await asyncio.sleep(max(0.0, min(interval, until - time.monotonic())))
        if time.monotonic() >= until:
            raise expired(title)
        try:
            found = await ask()
        except Unreachable:
            silent += 1
            if silent >= _SILENT:
                raise
            continue
        silent = 0
        match found:
            case None:
                pass
            case SlowDown(named):
                interval = named if named > interval else interval + SLOWER
            case _:
                yield found
                return


def expired(title: str) -> LoginFailed:
    return LoginFailed(f"The code of {title} has expired", "log in again, and approve it in time")


def denied(title: str) -> LoginFailed:
    return LoginFailed(f"The login to {title} was denied", "log in again, and approve it")


def ended(service: LoginService) -> LoginEnded:
    return LoginEnded(f"The login to {service.title} has expired", f"run `tui-agent login {service.name}`")


@asynccontextmanager
async def redirect_listener(path: str) -> AsyncGenerator[tuple[int, asyncio.Future[str]]]:
    """Yields a free loopback port, and a future query of the login page's redirect to `path`. Accepts only a
    GET with a code or an error.
    """
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.decode("latin-1").partition(" ")
                parts = urlsplit(rest.split(" ", 1)[0])
                query = parse_qs(parts.query)
                if method != "GET" or not secrets.compare_digest(parts.path.encode(), path.encode()):
                    status, words = "404 Not Found", "Page not found."
                elif not query.get("code") and not query.get("error"):
                    status, words = "400 Bad Request", "The address holds no code."
                else:
                    if not found.done():
                        found.set_result(parts.query)
                    outcome = "You are logged in" if query.get("code") else "The login was denied"
                    status, words = "200 OK", f"{outcome}: return to the terminal. You can close this page."
                page = f"<!doctype html><meta charset=utf-8><title>tui-agent</title><p>{words}</p>".encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n".encode()
                    + page
                )
                await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # another program, or a closed browser connection
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], found
    finally:
        server.close()
