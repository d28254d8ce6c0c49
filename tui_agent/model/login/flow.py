"""Steps of a login, and the polling shared by device flows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from tui_agent.errors import LoginEnded, LoginFailed, Unreachable
from tui_agent.model.login.services import LoginService
from tui_agent.model.login.store import Login
from tui_agent.model.login.web import WebAnswer


class ShowCode(Struct, frozen=True):
    """The user must enter `code` at `url` within `seconds`."""

    code: str
    url: str
    seconds: float


class OpenPage(Struct, frozen=True):
    """The user must open `url`, which redirects to this machine."""

    url: str
    seconds: float


class AwaitApproval(Struct, frozen=True):
    """The login is not approved yet; the next poll is in `seconds`."""

    seconds: float


class LoggedIn(Struct, frozen=True):
    """The login was approved."""

    login: Login


class LoginBusy(Unreachable):
    """The service cannot refresh tokens at the moment; `seconds` is the requested delay, 0 if unspecified."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what, "send the request again later")
        self.seconds = seconds


Found = TypeVar("Found")
LoginProgress = ShowCode | OpenPage | AwaitApproval | LoggedIn
#: Default polling interval in seconds, and its increase for `slow_down` (RFC 8628).
INTERVAL, SLOWER = 5.0, 5.0
#: Default and maximum validity of a code, in seconds.
VALID, LONGEST = 900.0, 3600.0
#: Maximum number of consecutive polls without a response.
_SILENT = 5


class SlowDown(Struct, frozen=True):
    """The service requests slower polling: `interval` in seconds, 0 if unspecified."""

    interval: float = 0.0


def shown_code(answer: WebAnswer, code: str, url: str) -> tuple[str, str]:
    """Validates the code and page address to display. Raises `LoginFailed`."""
    parts = urlsplit(url)
    plain = code.isascii() and code.isprintable() and url.isascii() and url.isprintable()
    if not plain or not 1 <= len(code) <= 40 or len(url) > 500 or parts.scheme not in ("http", "https"):
        raise answer.garbage()
    return code, url


async def approval(
    ask: Callable[[], Awaitable[Found | SlowDown | None]], interval: float, seconds: float, title: str
) -> AsyncGenerator[AwaitApproval | Found]:
    """Polls until there is a result, which is yielded last. `ask` returns None while the login is pending.

    Raises `LoginFailed` if the code expires.
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
