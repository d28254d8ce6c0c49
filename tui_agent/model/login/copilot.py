"""GitHub Copilot: GitHub's device flow and short-lived API tokens.

https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow; the
client id, headers and token address are litellm's (litellm/llms/github_copilot).
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from msgspec.structs import replace

from tui_agent.errors import BadKey, LoginFailed
from tui_agent.model.login import flow
from tui_agent.model.login.flow import (
    AwaitApproval,
    LoggedIn,
    LoginProgress,
    LoginWeb,
    ShowCode,
    SlowDown,
)
from tui_agent.model.login.services import BASES, COPILOT, base
from tui_agent.model.login.store import Login

_CLIENT = "Iv1.b507a08c87ecfe98"
_HEADERS = {
    "Editor-Version": "vscode/1.85.1",
    "Editor-Plugin-Version": "copilot/1.155.0",
    "User-Agent": "GithubCopilot/1.155.0",
}
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_HOSTS = (".githubcopilot.com", ".ghe.com")


async def log_in(web: LoginWeb) -> AsyncGenerator[LoginProgress]:
    """Raises `LoginFailed` or `Unreachable`."""
    github = base("copilot", "https://github.com")
    asked = await web.ask(
        f"{github}/login/device/code", {"client_id": _CLIENT, "scope": "read:user"}, headers=_HEADERS
    )
    device = asked.text("device_code")
    if asked.status != 200 or not device:
        raise asked.garbage()
    code, url = flow.shown_code(asked, asked.text("user_code"), asked.text("verification_uri"))
    seconds = asked.number("expires_in")
    yield ShowCode(code, url, seconds or flow.VALID)

    async def ask() -> str | SlowDown | None:
        body = {"client_id": _CLIENT, "device_code": device, "grant_type": _GRANT}
        answer = await web.ask(f"{github}/login/oauth/access_token", body, headers=_HEADERS)
        if token := answer.token("access_token"):
            return token
        match answer.error:
            case "authorization_pending":
                return None
            case "slow_down":
                return SlowDown(answer.number("interval"))
            case "expired_token":
                raise flow.expired(COPILOT.title)
            case "access_denied":
                raise flow.denied(COPILOT.title)
        if answer.status == 429 or answer.status >= 500:
            return SlowDown(answer.seconds)
        raise answer.garbage()

    async for step in flow.approval(ask, asked.number("interval"), seconds, COPILOT.title):
        if isinstance(step, AwaitApproval):
            yield step
            continue
        try:
            yield LoggedIn(await refresh(web, Login(token=step)))
        except BadKey as error:
            raise LoginFailed(error.what, error.remedy) from None


async def refresh(web: LoginWeb, login: Login) -> Login:
    """Raises `LoginEnded` if GitHub rejects the login's token, otherwise `BadKey`, `Unreachable` or
    `LoginFailed`."""
    address = f"{base('copilot', 'https://api.github.com')}/copilot_internal/v2/token"
    answer = await web.ask(address, headers={"Authorization": f"token {login.token}", **_HEADERS})
    token = answer.token("token")
    if answer.status == 200 and token:
        endpoints = answer.body.get("endpoints")
        api = endpoints.get("api") if isinstance(endpoints, dict) else ""
        expires = answer.number("expires_at")
        if lasts := answer.number("refresh_in"):  # independent of the local clock
            expires = time.time() + lasts
        return replace(login, access=token, expires=expires, address=_own_address(api))
    match answer.status:
        case 401:
            raise flow.ended(COPILOT)
        case 403 | 404:
            raise BadKey(
                f"GitHub gives this account no access to Copilot ({answer.detail})",
                "check the account's plan at https://github.com/settings/copilot, or log in with another account",
            )
        case 429 | 500 | 502 | 503 | 504:
            raise flow.LoginBusy(f"GitHub gives no token for Copilot now ({answer.detail})", answer.seconds)
    raise answer.garbage()


def _own_address(api: object) -> str:
    if not isinstance(api, str):
        return ""
    parts = urlsplit(api)
    own = parts.scheme == "https" and f".{parts.hostname}".endswith(_HOSTS)
    return api.rstrip("/") if own or os.environ.get(BASES["copilot"]) else ""
