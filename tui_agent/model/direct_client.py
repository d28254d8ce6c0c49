"""Requests straight to a provider over HTTP, in the model's child only: light, for the wires that most speak."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx

from tui_agent.model import anthropic_wire, openai_wire, table
from tui_agent.model.client import Abilities, ModelRequest
from tui_agent.model.completion import KEPT_ALIVE
from tui_agent.model.event_stream import Wire, watch_transports
from tui_agent.model.pieces import StreamPiece
from tui_agent.model.table import Route

_WIRES: dict[str, Any] = {"openai": openai_wire, "anthropic": anthropic_wire}
_READERS: dict[str, Any] = {"openai": openai_wire.ChatReader, "anthropic": anthropic_wire.MessageReader}
#: Ours ends a wait first, so that the client's own limit is never what a person hears of.
_MARGIN_SECONDS = 30.0


class RejectedRequest(Exception):
    """The server answered with an error; `status_code` is its status."""

    def __init__(self, status_code: int, said: str) -> None:
        super().__init__(said)
        self.status_code = status_code


class DirectTransport:
    """What carries requests to a model that `table.route` knows a way to."""

    async def abilities(self, model: str) -> Abilities:
        return table.abilities(model, _route(model))

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> DirectStream:
        route = _route(request.model)
        if not route.key:
            raise RejectedRequest(0, "no api key")
        speaks = _WIRES[route.provider.wire]
        headers = {
            **speaks.headers(route),
            **route.provider.headers,
            **{name: value for name, of in route.provider.variables.items() if (value := os.environ.get(of))},
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        if shape is not None and route.provider.wire == "anthropic":
            headers["anthropic-beta"] = anthropic_wire.SHAPED
        sent = client().build_request(
            "POST",
            address(route.address, speaks.PATH),
            content=_encoded(speaks.body(request, route, shape)),
            headers=headers,
            timeout=request.timeout * KEPT_ALIVE + _MARGIN_SECONDS,
        )
        # Of the headers httpx keeps only Authorization from another host.
        response = await client().send(sent, stream=True, follow_redirects="Authorization" in headers)
        if response.status_code >= 400:
            raise RejectedRequest(response.status_code, response.text)
        if wire.events is None:
            await response.aclose()
            wire.broken = "sent a body that holds no answer"
            raise RejectedRequest(0, wire.broken)
        return DirectStream(response, wire.events, _READERS[route.provider.wire]())

    def cost(self, model: str, usage: Any) -> float | None:
        known = _route(model).known
        details = usage.prompt_tokens_details
        if known is None:
            return None
        counts = details.cached_tokens, details.cache_creation_tokens
        return known.cost(usage.prompt_tokens, usage.completion_tokens, *counts)


class DirectStream:
    """The pieces of an answer. `received_finish_reason` is what the model said of its end, None until then."""

    def __init__(self, response: Any, events: AsyncIterator[dict[str, Any]], reader: Any) -> None:
        self._response = response
        self._events = events
        self._reader = reader

    @property
    def received_finish_reason(self) -> str | None:
        return self._reader.reason

    def __aiter__(self) -> DirectStream:
        return self

    async def __anext__(self) -> StreamPiece:
        return self._reader.piece(await anext(self._events))

    async def aclose(self) -> None:
        await self._response.aclose()


def _route(model: str) -> Route:
    route = table.route(model, os.environ)
    if route is None:  # it was decided by the same words before
        raise LookupError(f"there is no direct way to {model}")
    return route


def address(base: str, path: str) -> str:
    """Where requests go; a base may hold a part of the path already, or all of it."""
    base = base.rstrip("/")
    if base.endswith(path):
        return base
    first = path.split("/")[1]
    return base + (path.removeprefix(f"/{first}") if first == "v1" and base.endswith("/v1") else path)


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half characters are JSON too
        return json.dumps(body).encode()


@cache
def client() -> httpx.AsyncClient:
    """One client for all requests; proxies are those of the environment, certificates as litellm chooses them."""
    watch_transports()
    return httpx.AsyncClient(
        verify=_verify(), follow_redirects=True, limits=httpx.Limits(max_connections=None)
    )


async def ready() -> DirectTransport:
    """The transport, with all that a first request would import imported."""
    import anyio

    await asyncio.to_thread(client)
    await anyio.lowlevel.checkpoint()
    return DirectTransport()


def _verify() -> ssl.SSLContext | bool:
    import certifi

    said = os.environ.get("SSL_VERIFY", "")
    if said.strip().lower() == "false":
        return False
    files = (said, os.environ.get("SSL_CERT_FILE", ""), certifi.where())
    context = ssl.create_default_context(cafile=next(file for file in files if os.path.exists(file)))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
