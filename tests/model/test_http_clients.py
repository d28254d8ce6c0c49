"""Clients that requests are sent through, by way of the proxies of the environment."""

from __future__ import annotations

import httpx
import pytest

from tui_agent.model.event_stream import ValidatingTransport
from tui_agent.model.http_clients import watched_client

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.lower, PROXIES)):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("address", "no_proxy", "proxied"),
    [
        ("https://api.example.com", "", True),
        ("http://api.example.com", "", False),
        ("https://api.example.com", "*", False),
        ("https://api.example.com", "other.org, example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://example.com.evil.org", "example.com", True),
        ("https://localhost:1", "LOCALHOST", False),
        ("https://127.0.0.1:1", "127.0.0.1", False),
        ("https://[::1]:1", "::1", False),
        ("https://[::1]:1", "https://[::1]", False),
    ],
)
async def test_requests_go_through_the_proxies_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, address: str, no_proxy: str, proxied: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    seen: list[bool] = []

    async def noted(transport: ValidatingTransport, request: httpx.Request) -> httpx.Response:
        seen.append(transport is not client_default)
        return httpx.Response(200)

    made: list[ValidatingTransport] = []
    init = ValidatingTransport.__init__
    monkeypatch.setattr(
        ValidatingTransport, "__init__", lambda self, inner: (made.append(self), init(self, inner))[1]
    )
    monkeypatch.setattr(ValidatingTransport, "handle_async_request", noted)
    client = watched_client(False)
    client_default = made[-1]
    await client.get(address)
    assert seen == [proxied]
