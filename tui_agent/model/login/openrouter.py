"""Login at OpenRouter: a browser page that redirects here with a code (PKCE), which is exchanged for a key.

https://openrouter.ai/docs/guides/overview/auth/oauth
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlencode, urlsplit

from tui_agent.errors import LoginFailed
from tui_agent.model.login import flow
from tui_agent.model.login.flow import LoggedIn, LoginProgress, LoginWeb, OpenPage
from tui_agent.model.login.services import OPENROUTER, base
from tui_agent.model.login.store import Login

SECONDS = 600.0
_HEAD_SECONDS = 10.0
_PAGE = "<!doctype html><meta charset=utf-8><title>tui-agent</title><p>{}</p>"


async def log_in(web: LoginWeb, pasted: asyncio.Queue[str]) -> AsyncGenerator[LoginProgress]:
    """The browser redirects, or the user pastes the code or the redirect address. Raises `LoginFailed` or
    `Unreachable`."""
    openrouter = base("openrouter", "https://openrouter.ai")
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with _listener(f"/{state}", found) as port:
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
        code = found.result() if found in done else code_in(reading.result())
    if not code:
        raise flow.denied(OPENROUTER.title)
    answer = await web.ask(
        f"{openrouter}/api/v1/auth/keys",
        {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"},
    )
    key = answer.token("key")
    if answer.status in (400, 401, 403):
        raise LoginFailed(
            f"{OPENROUTER.title} refused the code ({answer.said})", "log in again, and paste the newest code"
        )
    if answer.status != 200 or not key:
        raise answer.garbage()
    yield LoggedIn(Login(token=key, access=key))


async def refresh(web: LoginWeb, login: Login) -> Login:
    """Raises `LoginEnded`: keys do not expire, so a rejected one was revoked."""
    raise flow.ended(OPENROUTER)


def code_in(words: str) -> str:
    """The whole text, or a parameter of the redirect address."""
    words = words.strip()
    query = parse_qs(urlsplit(words).query) if "?" in words else {}
    return query["code"][0] if query.get("code") else "" if query.get("error") else words


@asynccontextmanager
async def _listener(path: str, found: asyncio.Future[str]) -> AsyncGenerator[int]:
    """On a free loopback port; accepts only a GET of `path` with a code or an error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, words = _page_for(head, path, found)
                page = _PAGE.format(words).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n".encode()
                    + page
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _page_for(head: bytes, path: str, found: asyncio.Future[str]) -> tuple[str, str]:
    """Status and text; sets `found` to the code, or "" if denied."""
    method, _, rest = head.decode("latin-1").partition(" ")
    parts = urlsplit(rest.split(" ", 1)[0])
    query = parse_qs(parts.query)
    if method != "GET" or not secrets.compare_digest(parts.path.encode(), path.encode()):
        return "404 Not Found", "Page not found."
    if not query.get("code") and not query.get("error"):
        return "400 Bad Request", "The address holds no code."
    code = query["code"][0] if query.get("code") else ""
    if not found.done():
        found.set_result(code)
    words = "You are logged in" if code else "The login was denied"
    return "200 OK", f"{words}: return to the terminal. You can close this page."
