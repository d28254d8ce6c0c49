"""Model listings fetched from providers, for the model picker and for models missing from the table.

Runs in the model child only. A listing is cached for a day, and longer while the provider is unreachable.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Final

import httpx
import msgspec
from msgspec.structs import replace

from tui_agent.errors import ModelError
from tui_agent.model import model_listing, model_table
from tui_agent.model.login.access import Logins
from tui_agent.model.model_listing import LOGIN, MOST_BYTES, MOST_MODELS, ListAnswer, ListedModel, Listing
from tui_agent.model.model_table import KnownModel, Route

_log = logging.getLogger(__name__)
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


async def of_provider(client: httpx.AsyncClient, provider: str, *, again: bool = False) -> ListAnswer:
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
    return await answer(client, route, again=again, kept_as=kept_as)


async def model(client: httpx.AsyncClient, route: Route) -> KnownModel | None:
    """Queries only providers without models in the table; others use the cached listing."""
    place = (route.address, route.key)
    recently = time.monotonic() - _failed.get(place, -_ASK_AGAIN_SECONDS) < _ASK_AGAIN_SECONDS
    if route.rules.lists_models and not recently:
        listed = (await answer(client, route, kept_as=route)).listing
    else:
        listed = await _cached(route)
    found = {one.name: one.known for one in listed.models}
    # Variants such as `:nitro` are the same model; `:free` has its own prices.
    return found.get(route.model) or found.get(route.model.partition(":")[0])


async def answer(
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
