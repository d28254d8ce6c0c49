"""HTTP clients whose answers are checked on their way: one for direct requests, and those that litellm sends through.

Each sends through `Watched` transports, by way of the proxies that the environment names.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Iterator
from typing import Any
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx

from tui_agent.model.certificates import LateContext, verification
from tui_agent.model.connections import LIMITS
from tui_agent.model.event_stream import Watched
from tui_agent.model.httpcore_patch import read_in_blocks

_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def watched_client(
    verify: LateContext | bool, *, cert: str | None = None, **options: Any
) -> httpx.AsyncClient:
    """A client with any number of connections; `cert` is the file of a certificate of its own.

    Raises what httpx raises for a proxy that it cannot use.
    """
    read_in_blocks()

    def transport(proxy: str | None = None) -> Watched:
        return Watched(httpx.AsyncHTTPTransport(verify=verify, cert=cert, limits=LIMITS, proxy=proxy))

    mounts = {pattern: transport(proxy) if proxy else None for pattern, proxy in _proxies()}
    return httpx.AsyncClient(transport=transport(), mounts=mounts, follow_redirects=True, **options)


def _proxies() -> Iterator[tuple[str, str | None]]:
    """Patterns of addresses as httpx takes them, each with its proxy; None for those that are reached without one."""
    found = getproxies()
    around = [host.strip() for host in found.get("no", "").split(",") if host.strip()]
    if "*" in around:
        return
    for scheme in ("http", "https", "all"):
        if proxy := found.get(scheme):
            yield f"{scheme}://", proxy if "://" in proxy else f"http://{proxy}"
    for host in around:
        yield _pattern(host), None


def _pattern(host: str) -> str:
    """A host of NO_PROXY as a pattern: a name counts for all below it too."""
    if "://" in host:
        return host
    try:
        number = ipaddress.ip_address(host.partition("/")[0].strip("[]"))
    except ValueError:
        return "all://localhost" if host.lower() == "localhost" else f"all://*{host}"
    return f"all://[{number}]" if number.version == 6 else f"all://{number}"


def watch_litellm(litellm: Any) -> None:
    """Have litellm send through watched transports: those of OpenAI's clients, which take a client of ours, are set
    with each request by `use_client_of_loop`; all others are kept in its cache when they are made."""
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
    """Connections belong to the loop on which they were opened."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loops:
        _of_loops[loop] = watched_client(verification())
    litellm.aclient_session = _of_loops[loop]
