"""A server at an address: streamable HTTP, with bounded answers and the tokens of a login."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from tui_agent.mcp_servers.login import ServerAccess, WantsLogin, with_token
from tui_agent.mcp_servers.servers import ToolServer
from tui_agent.model.certificates import verification

#: Maximum bytes of one answer that is not a stream of events.
MAX_ANSWER = 32_000_000
#: Seconds to connect, and between two pieces of an answer.
CONNECT, BETWEEN = 10.0, 3_600.0


class BoundedStream(httpx2.AsyncByteStream):
    """The body of an answer, which ends with an error above the limit."""

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
    """Remembers the last refusal, since the SDK's errors do not have it."""

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
    """The connection to one server. `fault` is the reason of a refusal, or ""."""

    def __init__(
        self, server: ToolServer, access: ServerAccess | None = None, between: float = BETWEEN
    ) -> None:
        self._server, self._access, self._between = server, access, between
        self._sending = BoundedTransport(server.settings.url)

    def fault(self, error: BaseException) -> str:
        """The reason of an error in a few words; "" if the error has it."""
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
        """The transport for the SDK; its HTTP client is closed by `last`."""
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
