"""Models as a provider's own list has them: windows, prices and abilities of models that our table lacks.

A list is kept on disk for a day, and used beyond that if the provider does not answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from pathlib import Path
from typing import Final

import httpx
import msgspec
from msgspec import Struct

from tui_agent.files.private import write_private
from tui_agent.model.table import KnownModel, Route, from_listing
from tui_agent.settings.folders import user_folders

_log = logging.getLogger(__name__)
KEPT_SECONDS = 86_400.0
TIMEOUT_SECONDS = 5.0
#: A longer list is not read, in bytes.
MOST_BYTES = 32_000_000


class _List(Struct):
    """The file: the models by name, and the time of the request in seconds since 1970."""

    at: float
    models: dict[str, KnownModel]


_lists: Final[dict[str, _List]] = {}
_lock = asyncio.Lock()


async def model(client: httpx.AsyncClient, route: Route) -> KnownModel | None:
    """What the provider's list says of a model; None if it is not in it, or the list cannot be had."""
    async with _lock:
        listed = _lists.get(route.address) or _List(0.0, {})
        if time.time() - listed.at > KEPT_SECONDS:
            listed = _lists[route.address] = await _current(client, route)
    # variants such as `:free` and `:nitro` are the same model; the first has prices of its own
    return listed.models.get(route.model) or listed.models.get(route.model.partition(":")[0])


async def _current(client: httpx.AsyncClient, route: Route) -> _List:
    path = _path(route)
    kept = await asyncio.to_thread(_read, path)
    if time.time() - kept.at <= KEPT_SECONDS:
        return kept
    try:
        models = await _fetched(client, route)
    except (httpx.HTTPError, OSError, ValueError, RecursionError):
        _log.info("the list of models cannot be read", exc_info=True)
        # asked again in an hour, not at every request
        return _List(time.time() - KEPT_SECONDS + 3_600, kept.models)
    listed = _List(time.time(), models)
    await asyncio.to_thread(_write, path, listed)
    return listed


async def _fetched(client: httpx.AsyncClient, route: Route) -> dict[str, KnownModel]:
    headers = {"Authorization": f"Bearer {route.key}"} if route.key else {}
    body = b""
    url = f"{route.address.rstrip('/')}/models"
    async with client.stream("GET", url, headers=headers, timeout=TIMEOUT_SECONDS) as response:
        response.raise_for_status()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MOST_BYTES:
                raise ValueError("the list is too long")
    listing = msgspec.json.decode(body)
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        raise ValueError("the answer is not a list of models")
    return dict(found for entry in entries if (found := from_listing(entry)))


def _path(route: Route) -> Path:
    digest = hashlib.sha256(route.address.encode()).hexdigest()[:16]
    return user_folders().cache / f"models-{digest}.json"


def _read(path: Path) -> _List:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_List)
    except (OSError, msgspec.MsgspecError):
        return _List(0.0, {})  # none yet, or one of another version


def _write(path: Path, listed: _List) -> None:
    try:
        write_private(path, msgspec.json.encode(listed), sync=False)
    except OSError:
        _log.debug("the list of models cannot be kept", exc_info=True)
