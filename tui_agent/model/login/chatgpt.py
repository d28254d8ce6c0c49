"""ChatGPT subscription: OpenAI's device flow and refresh tokens.

The client id and the addresses are litellm's (litellm/llms/chatgpt).
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from typing import Any

from msgspec.structs import replace

from tui_agent.errors import LoginFailed
from tui_agent.files.numbers import amount
from tui_agent.model.login import flow
from tui_agent.model.login.flow import (
    AwaitApproval,
    LoggedIn,
    LoginProgress,
    LoginWeb,
    ShowCode,
    SlowDown,
    WebAnswer,
)
from tui_agent.model.login.services import CHATGPT, base
from tui_agent.model.login.store import Login

_CLIENT = "app_EMoamEEZ73f0CkXaXp7hrann"
_SCOPE = "openid profile email"
_CLAIM = "https://api.openai.com/auth"


async def log_in(web: LoginWeb) -> AsyncGenerator[LoginProgress]:
    """Raises `LoginFailed` or `Unreachable`."""
    openai = _openai()
    asked = await web.ask(f"{openai}/api/accounts/deviceauth/usercode", {"client_id": _CLIENT})
    device = asked.text("device_auth_id")
    if asked.status == 404:
        raise LoginFailed(
            "OpenAI does not allow a login by code for this account",
            "allow it in the security settings of ChatGPT, and log in again",
        )
    if asked.status != 200 or not device:
        raise asked.garbage()
    code, url = flow.shown_code(asked, asked.text("user_code", "usercode"), f"{openai}/codex/device")
    seconds = asked.number("expires_in")
    yield ShowCode(code, url, seconds or flow.VALID)

    async def ask() -> WebAnswer | SlowDown | None:
        body = {"device_auth_id": device, "user_code": code}
        answer = await web.ask(f"{openai}/api/accounts/deviceauth/token", body)
        match answer.error:
            case "expired_token" | "expired" | "deviceauth_expired" | "code_expired":
                raise flow.expired(CHATGPT.title)
            case "access_denied" | "denied" | "deviceauth_denied":
                raise flow.denied(CHATGPT.title)
            case "slow_down":
                return SlowDown(answer.number("interval"))
        if answer.status in (403, 404):
            return None
        if answer.status == 410:
            raise flow.expired(CHATGPT.title)
        if answer.status == 429 or answer.status >= 500:
            return SlowDown(answer.seconds)
        if answer.status == 200 and answer.text("authorization_code") and answer.text("code_verifier"):
            return answer
        raise answer.garbage()

    async for step in flow.approval(ask, asked.number("interval"), seconds, CHATGPT.title):
        if isinstance(step, AwaitApproval):
            yield step
            continue
        answer = await web.ask(
            f"{openai}/oauth/token",
            {
                "grant_type": "authorization_code",
                "code": step.text("authorization_code"),
                "redirect_uri": f"{openai}/deviceauth/callback",
                "client_id": _CLIENT,
                "code_verifier": step.text("code_verifier"),
            },
            form=True,
        )
        made = _login(answer, Login())
        if answer.status != 200 or not made.token:
            raise answer.garbage()
        yield LoggedIn(made)


async def refresh(web: LoginWeb, login: Login) -> Login:
    """Raises `LoginEnded` if OpenAI rejects the refresh token, otherwise `Unreachable` or `LoginFailed`."""
    body = {
        "client_id": _CLIENT,
        "grant_type": "refresh_token",
        "refresh_token": login.token,
        "scope": _SCOPE,
    }
    answer = await web.ask(f"{_openai()}/oauth/token", body)
    if answer.status == 200 and answer.token("access_token"):
        return _login(answer, login)
    match answer.status:
        case 400 | 401 | 403:
            raise flow.ended(CHATGPT)
        case 429 | 500 | 502 | 503 | 504:
            raise flow.LoginBusy(f"OpenAI does not refresh the login now ({answer.detail})", answer.seconds)
    raise answer.garbage()


def _openai() -> str:
    return base("chatgpt", "https://auth.openai.com")


def _login(answer: WebAnswer, before: Login) -> Login:
    access, identity = answer.token("access_token"), answer.text("id_token")
    if not access:
        return Login()
    expires = claims(access).get("exp")
    account = _account(claims(identity)) or _account(claims(access)) or before.account
    return replace(
        before,
        token=answer.token("refresh_token") or before.token,
        access=access,
        expires=amount(expires, 0.0),
        account=account,
    )


def claims(token: str) -> dict[str, Any]:
    """Does not verify the signature. Returns {} for an invalid token."""
    part = token.partition(".")[2].partition(".")[0]
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _account(found: dict[str, Any]) -> str:
    """Returns "" unless alphanumeric with `-_`: it is sent in a header."""
    named = found.get(_CLAIM)
    account = named.get("chatgpt_account_id") if isinstance(named, dict) else ""
    plain = (
        isinstance(account, str) and account.isascii() and account.replace("-", "").replace("_", "").isalnum()
    )
    return account if plain else ""
