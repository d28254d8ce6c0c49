"""Access tokens for requests, refreshed by one process at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from contextvars import Context

from msgspec.structs import replace

from tui_agent.errors import BadKey, FileError, LoginEnded, LoginFailed, Unreachable
from tui_agent.model.login import chatgpt, copilot, openrouter
from tui_agent.model.login.flow import LoggedIn, LoginBusy, LoginProgress, LoginWeb, ended
from tui_agent.model.login.services import LoginService, needed
from tui_agent.model.login.store import Login, LoginStore

_log = logging.getLogger(__name__)
#: Seconds before its expiry at which a token is refreshed.
_SOON = 60.0
_REFRESH: dict[str, Callable[[LoginWeb, Login], Awaitable[Login]]] = {
    "copilot": copilot.refresh,
    "chatgpt": chatgpt.refresh,
    "openrouter": openrouter.refresh,
}


async def log_in(
    service: LoginService, pasted: asyncio.Queue[str], store: LoginStore
) -> AsyncGenerator[LoginProgress]:
    """Yields the steps; stores the login before the last. `pasted` receives a code copied by the user.
    Raises `LoginFailed`, `Unreachable`, or `FileError`.
    """
    await asyncio.to_thread(store.check)
    async with LoginWeb() as web:
        flows = {"copilot": copilot.log_in, "chatgpt": chatgpt.log_in}
        begin = flows.get(service.name)
        async with aclosing(begin(web) if begin else openrouter.log_in(web, pasted)) as steps:
            async for step in steps:
                if isinstance(step, LoggedIn):
                    async with store.locked():
                        await asyncio.to_thread(store.put, service.name, step.login)
                yield step


def missing(model: str, environment: Mapping[str, str], store: LoginStore) -> BadKey | None:
    """Blocking."""
    service = needed(model, environment)
    if service is None:
        return None
    login = store.names().get(service.name)
    if login is None:
        return _needs(model, service) if service.only_login else None
    return ended(service) if login.ended else None


class Logins:
    def __init__(self, store: LoginStore | None = None) -> None:
        self._store = store or LoginStore()
        self._held: dict[str, Login] = {}

    async def variables(
        self, model: str, environment: Mapping[str, str], refused: str = ""
    ) -> dict[str, str]:
        """Returns {} if a key is set. `refused` is a token rejected by the provider. Raises `BadKey` without
        a login, `LoginEnded` or `Unreachable`.
        """
        service = needed(model, environment)
        if service is None:
            return {}
        login = await self._current(service, refused)
        if login is None and not service.only_login:
            return {}
        if login is None:
            raise _needs(model, service)
        named = {service.key: login.access, service.address: login.address, service.account: login.account}
        return {name: value for name, value in named.items() if value and not environment.get(name)}

    async def _current(self, service: LoginService, refused: str) -> Login | None:
        login = await self._read(service)
        if login is None or _serves(login, refused):
            return login
        async with self._store.locked():
            login = await self._read(service)
            if login is None or _serves(login, refused):
                return login
            try:
                try:
                    # excludes the refresh from the recorded model request
                    made = await asyncio.create_task(_refreshed(service, login), context=Context())
                except LoginEnded:
                    await self._keep(service, Login(ended=True))
                    raise
                except LoginFailed as error:
                    raise Unreachable(error.what, error.remedy) from None
                await self._keep(service, made)
                return made
            except LoginBusy:
                if login.access and login.access != refused and time.time() < login.expires:
                    return login
                raise

    async def _read(self, service: LoginService) -> Login | None:
        login = await asyncio.to_thread(self._store.get, service.name)
        held = self._held.get(service.name)
        if login is not None and held is not None and held.expires > login.expires:
            login = held
        if login is not None and login.ended:
            raise ended(service)
        return login

    async def _keep(self, service: LoginService, login: Login) -> None:
        try:
            await asyncio.to_thread(self._store.put, service.name, login)
        except FileError:
            self._held[service.name] = replace(login, in_keyring=False)
            _log.warning("the login at %s was refreshed but cannot be stored", service.title)


async def _refreshed(service: LoginService, login: Login) -> Login:
    async with LoginWeb() as web:
        return await _REFRESH[service.name](web, login)


def _serves(login: Login, refused: str) -> bool:
    fresh = not login.expires or time.time() < login.expires - _SOON
    return bool(login.access) and login.access != refused and fresh


def _needs(model: str, service: LoginService) -> BadKey:
    return BadKey(f"{model} requires a login to {service.title}", f"run `tui-agent login {service.name}`")
