"""HTTP clients with a `ValidatingTransport` and the environment's proxies, for us and for litellm."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Iterator
from typing import Any
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx

from tui_agent.model.certificates import LazySSLContext, verification
from tui_agent.model.connections import LIMITS
from tui_agent.model.event_stream import ValidatingTransport
from tui_agent.model.httpcore_patch import read_in_blocks

_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def watched_client(
    verify: LazySSLContext | bool, *, cert: str | None = None, **options: Any
) -> httpx.AsyncClient:
    """Has no connection limit. Raises httpx errors for an invalid proxy."""
    read_in_blocks()

    def transport(proxy: str | None = None) -> ValidatingTransport:
        return ValidatingTransport(
            httpx.AsyncHTTPTransport(verify=verify, cert=cert, limits=LIMITS, proxy=proxy)
        )

    mounts = {pattern: transport(proxy) if proxy else None for pattern, proxy in _proxies()}
    return httpx.AsyncClient(transport=transport(), mounts=mounts, follow_redirects=True, **options)


def _proxies() -> Iterator[tuple[str, str | None]]:
    """httpx URL patterns; None bypasses the proxy."""
    found = getproxies()
    around = [host.strip() for host in found.get("no", "").split(",") if host.strip()]
    if "*" in around:
        return
    for scheme in ("http", "https", "all"):
        if proxy := found.get(scheme):
            yield f"{scheme}://", proxy if "://" in proxy else f"http://{proxy}"
    for host in around:
        if "://" in host:
            yield host, None
            continue
        try:
            number = ipaddress.ip_address(host.partition("/")[0].strip("[]"))
        except ValueError:
            yield "all://localhost" if host.lower() == "localhost" else f"all://*{host}", None
        else:
            yield f"all://[{number}]" if number.version == 6 else f"all://{number}", None


def watch_litellm(litellm: Any) -> None:
    """Passes OpenAI clients a client per request (`use_client_of_loop`), and replaces others when litellm
    caches them.
    """
    from litellm.caching.llm_caching_handler import LLMClientCache
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    class WatchedClients(LLMClientCache):
        def set_cache(self, key: str, value: object, *args: Any, **named: Any) -> Any:
            if isinstance(value, AsyncHTTPHandler):
                made = value.client
                value.client = watched_client(
                    verification(),
                    cert=os.environ.get("SSL_CERTIFICATE"),
                    timeout=made.timeout,
                    headers=made.headers,
                    cookies=made.cookies.jar,
                )
            return super().set_cache(key, value, *args, **named)

    litellm.in_memory_llm_clients_cache = WatchedClients()


def use_client_of_loop(litellm: Any) -> None:
    """Connections cannot be shared between loops."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loops:
        _of_loops[loop] = watched_client(verification())
    litellm.aclient_session = _of_loops[loop]
