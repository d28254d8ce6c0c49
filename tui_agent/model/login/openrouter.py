"""OpenRouter: a browser page that redirects here with a code (PKCE), which is exchanged for a key.

https://openrouter.ai/docs/guides/overview/auth/oauth
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlencode, urlsplit

from tui_agent.errors import LoginFailed
from tui_agent.model.login import flow
from tui_agent.model.login.flow import LoggedIn, LoginProgress, LoginWeb, OpenPage
from tui_agent.model.login.services import OPENROUTER, base
from tui_agent.model.login.store import Login

SECONDS = 600.0


async def log_in(web: LoginWeb, pasted: asyncio.Queue[str]) -> AsyncGenerator[LoginProgress]:
    """`pasted` receives the code or the redirect address. Raises `LoginFailed` or `Unreachable`."""
    openrouter = base("openrouter", "https://openrouter.ai")
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    async with flow.redirect_listener(f"/{state}") as (port, found):
        query = {
            "callback_url": f"http://localhost:{port}/{state}",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        yield OpenPage(f"{openrouter}/auth?{urlencode(query)}", SECONDS)
        reading = asyncio.ensure_future(pasted.get())
        try:
            done, _ = await asyncio.wait(
                (found, reading), timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            reading.cancel()
        if not done:
            raise flow.expired(OPENROUTER.title)
        code = code_in(f"?{found.result()}" if found in done else reading.result())
    if not code:
        raise flow.denied(OPENROUTER.title)
    answer = await web.ask(
        f"{openrouter}/api/v1/auth/keys",
        {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"},
    )
    key = answer.token("key")
    if answer.status in (400, 401, 403):
        raise LoginFailed(
            f"{OPENROUTER.title} refused the code ({answer.detail})",
            "log in again, and paste the newest code",
        )
    if answer.status != 200 or not key:
        raise answer.garbage()
    yield LoggedIn(Login(token=key, access=key))


async def refresh(web: LoginWeb, login: Login) -> Login:
    """Raises `LoginEnded`: keys do not expire, so a rejected one was revoked."""
    raise flow.ended(OPENROUTER)


def code_in(words: str) -> str:
    words = words.strip()
    query = parse_qs(urlsplit(words).query) if "?" in words else {}
    return query["code"][0] if query.get("code") else "" if query.get("error") else words
