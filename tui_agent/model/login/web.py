"""HTTP requests of a login: JSON responses, and error messages without tokens."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct

from tui_agent.errors import LoginFailed, Unreachable
from tui_agent.files.key_formats import masked
from tui_agent.files.numbers import amount, real_number
from tui_agent.files.text import one_line
from tui_agent.model.certificates import verification

_SECONDS = 30.0
_MOST_BYTES = 1 << 20
_SAID_CHARACTERS = 200


class WebAnswer(Struct, frozen=True):
    """A response: its status, JSON object ({} if invalid) and host."""

    status: int
    body: dict[str, Any]
    host: str
    #: Requested delay in seconds, 0 if unspecified.
    seconds: float = 0.0

    def text(self, *names: str) -> str:
        """The first of these fields with text, or ""."""
        values = (self.body.get(name) for name in names)
        return next((value for value in values if isinstance(value, str) and value), "")

    def token(self, name: str) -> str:
        """A field's token, or "" if it is not valid in a header."""
        found = self.text(name)
        return found if found.isascii() and found.isprintable() and " " not in found else ""

    def number(self, name: str) -> float:
        value = self.body.get(name)
        number = real_number(value) if isinstance(value, str) else amount(value, 0.0)
        return number if 0 < number < 1e12 else 0.0

    @property
    def error(self) -> str:
        """The error code in the body, or ""."""
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
    def said(self) -> str:
        """The server's error message, shortened and masked, as the end of a sentence."""
        error = self.body.get("error")
        words = self.text("error_description", "message", "detail")
        if not words and isinstance(error, dict):
            words = str(error.get("message") or "")
        words = one_line(masked(words or self.error)).strip().rstrip(".")[:_SAID_CHARACTERS]
        return f"status {self.status}, {words}" if words else f"status {self.status}"

    def garbage(self) -> LoginFailed:
        return LoginFailed(
            f"{self.host} sent an answer that cannot be used ({self.said})",
            "try again later, or check the proxy and the network",
        )


class LoginWeb:
    async def __aenter__(self) -> Self:
        httpx, verify = await asyncio.to_thread(_imported)
        self._httpx = httpx
        self._client = httpx.AsyncClient(verify=verify, follow_redirects=False, timeout=_SECONDS)
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
        """Sends a GET, or a POST with a body. Raises `Unreachable` without a response."""
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
        return WebAnswer(response.status_code, _object(raw), host, _seconds(response.headers))


def _imported() -> tuple[Any, Any]:
    import httpx

    return httpx, verification()


def _object(raw: bytes | bytearray) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(headers: Any) -> float:
    return min(real_number(headers.get("retry-after")), 600.0)
