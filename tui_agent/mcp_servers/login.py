"""Logins at servers by OAuth: stored tokens, one refresh at a time, and the login itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl

from tui_agent.files.numbers import amount
from tui_agent.mcp_servers.servers import ToolServer, login_name
from tui_agent.model.login.flow import redirect_listener
from tui_agent.model.login.store import Login, LoginStore

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
        """Stores the addresses of the login beside its tokens."""
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
