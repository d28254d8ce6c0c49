"""Direct HTTP requests to providers, for replies and for lists of models. Runs in the model child only.

A list is cached for a day, and longer while the provider is unreachable.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any, Final
from uuid import uuid4

import anyio
import httpx
import msgspec
from msgspec.structs import replace

from tui_agent.errors import ModelError, Unreachable
from tui_agent.model import connections, model_listing, model_table
from tui_agent.model.certificates import LazySSLContext, verification
from tui_agent.model.client import Abilities, Chunk, ModelRequest, UsageChunk, merged_chunks
from tui_agent.model.completion import KEPT_ALIVE
from tui_agent.model.event_stream import BrokenStream, Wire
from tui_agent.model.http_clients import watched_client
from tui_agent.model.login.access import Logins
from tui_agent.model.login.flow import LoginBusy
from tui_agent.model.model_listing import LOGIN, MOST_BYTES, MOST_MODELS, ListAnswer, ListedModel, Listing
from tui_agent.model.model_table import KnownModel, Route
from tui_agent.model.parts import Origin
from tui_agent.model.provider_errors import AttemptFailed, Meaning
from tui_agent.model.rules import WireName
from tui_agent.model.wires import chat, generate, messages, responses
from tui_agent.model.wires.conversation import cache_marks, conversation
from tui_agent.model.wires.reader import Rendered, ReplyReader

_log = logging.getLogger(__name__)
#: Added to the HTTP client's limits, so that the time-out of `completion` expires first.
_MARGIN_SECONDS = 30.0
_NO_INTERFACE = (404, 405, 501)


class RejectedRequest(Exception):
    def __init__(self, status_code: int, said: str) -> None:
        super().__init__(said)
        self.status_code = status_code


class DirectTransport:
    def __init__(self) -> None:
        self._chat_only: set[str] = set()
        self._logins = Logins()

    async def abilities(self, model: str) -> Abilities:
        route = _route(model)
        return model_table.abilities(model, route, await _listed_model(route))

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> DirectStream:
        """Refreshes a rejected login token once."""
        variables = await self._variables(request.model)
        route = _route(request.model, variables)
        try:
            return await self._open(request, route, wire, shape)
        except RejectedRequest as error:
            if error.status_code != 401 or not variables:
                raise
        wire.error = None
        variables = await self._variables(request.model, refused=route.key)
        return await self._open(request, _route(request.model, variables), wire, shape)

    async def _variables(self, model: str, refused: str = "") -> dict[str, str]:
        """Raises `AttemptFailed` if the login service cannot refresh the token now."""
        try:
            return await self._logins.variables(model, os.environ, refused)
        except LoginBusy as error:
            again = Meaning(Unreachable(error.what, error.remedy), again=True, seconds=error.seconds or None)
            raise AttemptFailed(again) from error

    async def _open(
        self, request: ModelRequest, route: Route, wire: Wire, shape: dict[str, Any] | None
    ) -> DirectStream:
        if not route.key:
            raise RejectedRequest(0, "no api key")
        if not (route.key.isascii() and route.key.isprintable()) or " " in route.key:
            what = f"The key for {request.model} contains a space, a line break or another invalid character"
            raise ModelError(what, "copy only the key again")
        name: WireName = "chat" if route.address in self._chat_only else route.wire
        try:
            return await self._send(request, route, name, wire, shape)
        except RejectedRequest as error:
            if name != "responses" or route.own or not route.rules.wire_elsewhere:
                raise
            names_model = error.status_code == 404 and "model" in str(error).lower()
            if error.status_code not in _NO_INTERFACE or names_model:
                raise
            self._chat_only.add(route.address)
            wire.error = None
            return await self._send(request, route, "chat", wire, shape)

    async def connect(self, model: str) -> None:
        """Needs a key. Refreshes a login's token."""
        try:
            variables = await self._logins.variables(model, os.environ)
        except ModelError:
            return  # the request reports the error
        route = model_table.route(model, {**os.environ, **variables})
        if route is not None and route.key:
            await _certificates_for(route.address)
            await connections.preconnect(client(), route.address)

    async def _send(
        self, request: ModelRequest, route: Route, name: WireName, wire: Wire, shape: dict[str, Any] | None
    ) -> DirectStream:
        known = await _listed_model(route)
        path, rendered, origin = render(request, route, name, shape, known)
        rules = route.rules
        last = request.messages[-1] if request.messages else {}
        person = request.purpose == "main" and last.get("role") == "user"
        values = {
            "session": request.session,
            "initiator": "user" if person else "agent",
            "vision": "true" if any(message.get("images") for message in request.messages) else "",
            "id": str(uuid4()),
        }
        headers_of = {header: value for header, what in rules.per_request.items() if (value := values[what])}
        headers = {
            rules.auth: route.credential,
            "Content-Type": "application/json",
            "Accept": "application/json",
            **rules.headers,
            **route.headers,
            **headers_of,
        }
        await _certificates_for(route.address)
        try:
            encoded = json.dumps(rendered.body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # Lone surrogates are valid JSON.
            encoded = json.dumps(rendered.body).encode()
        sent = client().build_request(
            "POST",
            address(route.address, path),
            params={"alt": "sse"} if name == "generate" else None,
            content=encoded,
            headers=headers,
            timeout=request.timeout * KEPT_ALIVE + _MARGIN_SECONDS,
        )
        # httpx removes only the Authorization header for another host.
        response = await client().send(sent, stream=True, follow_redirects="Authorization" in headers)
        if response.status_code >= 400:
            raise RejectedRequest(response.status_code, response.text)
        if wire.events is None:
            await response.aclose()
            wire.broken = "sent a body that holds no answer"
            raise RejectedRequest(0, wire.broken)
        return DirectStream(response, wire.events, reader(name, route), origin)

    async def cost(self, model: str, usage: UsageChunk) -> float | None:
        route = _route(model)
        return model_table.cost(route, usage, await _listed_model(route))


class DirectStream:
    def __init__(
        self,
        response: httpx.Response,
        events: AsyncIterator[list[dict[str, Any]]],
        reader: ReplyReader,
        origin: Origin,
    ) -> None:
        self.reader = reader
        self.origin = origin
        self._response = response
        self._events = events
        self._failed: BrokenStream | None = None

    def __aiter__(self) -> DirectStream:
        return self

    async def __anext__(self) -> list[Chunk]:
        if self._failed is not None:
            raise self._failed
        chunks: list[Chunk] = []
        try:
            for event in await anext(self._events):
                chunks += self.reader.read(event)
        except BrokenStream as error:
            if not chunks:
                raise
            self._failed = error  # earlier chunks are delivered first
        return merged_chunks(chunks)

    async def aclose(self) -> None:
        await self._response.aclose()


def render(
    request: ModelRequest,
    route: Route,
    name: WireName,
    shape: dict[str, Any] | None,
    known: KnownModel | None = None,
) -> tuple[str, Rendered, Origin]:
    rules = replace(route.rules, levels=()) if "effort" in request.without else route.rules
    if not (route.own or route.rules.responses_only) and route.provider == "openai":
        rules = replace(rules, cache="")  # a server that imitates OpenAI may reject the key
    shape = shape if rules.schema else None
    origin = route.origin(name)
    known = known or route.known
    talk = conversation(
        request.messages,
        route.rules,
        origin,
        sees=known is None or "v" in known.can,  # an unknown model's server decides about images
        words="calls" in request.without,
        marks=cache_marks(request.messages) if route.rules.cache == "marks" else frozenset(),
    )
    match name:
        case "responses":
            return responses.PATH, responses.render(request, talk, rules, route.model, shape), origin
        case "messages":
            most = known.output if known else 0
            rendered = messages.render(request, talk, rules, route.model, shape, most)
            made = Origin(origin.wire, origin.provider, origin.family, rendered.prefix)
            return messages.PATH, rendered, made
        case "generate":
            return (
                generate.path(route.model),
                generate.render(request, talk, rules, route.model, shape),
                origin,
            )
    return chat.PATH, chat.render(request, talk, rules, route.model, shape), origin


def reader(name: WireName, route: Route) -> ReplyReader:
    match name:
        case "responses":
            return responses.ResponsesReader()
        case "messages":
            return messages.MessageReader()
        case "generate":
            return generate.GenerateReader()
    return chat.ChatReader(route.rules)


def _route(model: str, variables: Mapping[str, str] | None = None) -> Route:
    route = model_table.route(model, {**os.environ, **(variables or {})})
    if route is None:  # the parent process resolved the same name before
        raise LookupError(f"there is no direct way to {model}")
    return route


async def _listed_model(route: Route) -> KnownModel | None:
    """Queries only providers without models in the table; others use the cached listing."""
    if route.known is not None or not route.rules.listing:
        return route.known
    place = (route.address, route.key)
    recently = time.monotonic() - _failed.get(place, -_ASK_AGAIN_SECONDS) < _ASK_AGAIN_SECONDS
    if route.rules.lists_models and not recently:
        listed = (await _answer(client(), route, kept_as=route)).listing
    else:
        listed = await _cached(route)
    found = {one.name: one.known for one in listed.models}
    # Variants such as `:nitro` are the same model; `:free` has its own prices.
    return found.get(route.model) or found.get(route.model.partition(":")[0])


def address(base: str, path: str) -> str:
    """`base` may include part or all of `path`."""
    base = base.rstrip("/")
    if base.endswith(path):
        return base
    first = path.split("/")[1]
    return base + (path.removeprefix(f"/{first}") if first == "v1" and base.endswith("/v1") else path)


@cache
def client() -> httpx.AsyncClient:
    _certificates.cache_clear()
    return watched_client(_certificates())


@cache
def _certificates() -> LazySSLContext | bool:
    return verification()


async def _certificates_for(address: str) -> None:
    client()
    certificates = _certificates()
    if isinstance(certificates, LazySSLContext) and certificates.file and not address.startswith("http:"):
        await asyncio.to_thread(certificates.load)


async def ready() -> DirectTransport:
    """Imports the modules of a first request."""
    await asyncio.to_thread(client)
    await anyio.lowlevel.checkpoint()
    return DirectTransport()


#: Limits: seconds of a request, seconds of a listing, pages.
TIMEOUT_SECONDS, WHOLE_SECONDS, MOST_PAGES = 5.0, 20.0, 20
#: Seconds before a failed listing is requested again.
_ASK_AGAIN_SECONDS = 3_600
_PAGE = 1_000

_lists: Final[dict[tuple[str, str], Listing]] = {}
_locks: Final[dict[tuple[str, str], asyncio.Lock]] = {}
_failed: Final[dict[tuple[str, str], float]] = {}


class _TooLong(ValueError):
    pass


async def list_models(client: httpx.AsyncClient, provider: str, *, again: bool = False) -> ListAnswer:
    name = f"{provider}/-"
    try:
        logged_in = await Logins().variables(name, os.environ)
    except ModelError as error:
        return ListAnswer(error=error.what)
    route = model_table.route(name, {**os.environ, **logged_in})
    if route is None or not route.key or not route.rules.listing:
        return ListAnswer()
    # Login tokens and their address change.
    outside = model_table.route(name, os.environ)
    kept_as = replace(outside, key=LOGIN) if logged_in and outside is not None else route
    return await _answer(client, route, again=again, kept_as=kept_as)


async def _answer(
    client: httpx.AsyncClient, route: Route, *, again: bool = False, kept_as: Route
) -> ListAnswer:
    """Uses the cache unless `again` is set. Returns errors as a sentence."""
    place = (kept_as.address, kept_as.key)
    async with _locks.setdefault(place, asyncio.Lock()):
        kept = await _cached(kept_as)
        if kept.fresh and not again:
            return ListAnswer(kept)
        try:
            async with asyncio.timeout(WHOLE_SECONDS):
                models = await _fetched(client, route)
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            OSError,
            TimeoutError,
            ValueError,
            RecursionError,
        ) as error:
            _log.info("the list of models cannot be read", exc_info=True)
            _failed[place] = time.monotonic()
            return ListAnswer(kept, _failure_reason(error))
        _failed.pop(place, None)
        listed = _lists[place] = Listing(time.time(), models)
        await asyncio.to_thread(model_listing.cache_listing, kept_as, listed)
        return ListAnswer(listed)


async def _cached(route: Route) -> Listing:
    place = (route.address, route.key)
    if place not in _lists:
        _lists[place] = await asyncio.to_thread(model_listing.cached_listing, route)
    return _lists[place]


async def _fetched(client: httpx.AsyncClient, route: Route) -> tuple[ListedModel, ...]:
    rules, found, left = route.rules, {}, MOST_BYTES
    queries = {"anthropic": {"limit": str(_PAGE)}, "gemini": {"pageSize": str(_PAGE)}}
    query: dict[str, str] = queries.get(rules.listing, {})
    base = (rules.list_address if route.own and rules.list_address else route.address).rstrip("/")
    version = "/v1" if rules.listing == "anthropic" and not base.endswith("/v1") else ""
    headers = {rules.auth: route.credential, **rules.headers, **route.headers, "Accept": "application/json"}
    for _ in range(MOST_PAGES):
        pieces, size = [], 0
        async with client.stream(
            "GET",
            f"{base}{version}/models",
            params=query,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,
        ) as response:
            response.raise_for_status()
            async for piece in response.aiter_bytes():
                size += len(piece)
                if size > left:
                    raise _TooLong
                pieces.append(piece)
        body = b"".join(pieces)
        left -= len(body)
        page = await asyncio.to_thread(msgspec.json.decode, body)
        found |= {one.name: one for one in model_listing.models_in(rules.listing, page)}
        if len(found) >= MOST_MODELS:
            break
        match page:
            case {"has_more": True, "last_id": str(last)} if last:
                query["after_id"] = last
            case {"nextPageToken": str(token)} if token:
                query["pageToken"] = token
            case _:
                break
    return tuple(found.values())[:MOST_MODELS]


def _failure_reason(error: Exception) -> str:
    """The end of a sentence that begins with the provider."""
    match error:
        case httpx.HTTPStatusError(response=response) if response.status_code in (401, 403):
            return f"the key was refused ({response.status_code})"
        case httpx.HTTPStatusError(response=response) if response.status_code in (404, 405, 501):
            return f"it has no model list ({response.status_code})"
        case httpx.HTTPStatusError(response=response):
            return f"it returned no model list (status {response.status_code})"
        case TimeoutError() | httpx.TimeoutException():
            return "no model list in time"
        case _TooLong():
            return f"its list is longer than {MOST_BYTES // 10**6} MB"
        case httpx.HTTPError() | httpx.InvalidURL() | OSError():
            return "not reached"
    return "its model list could not be read"
