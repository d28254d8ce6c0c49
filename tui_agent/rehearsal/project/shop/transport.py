"""Sending one request and reading the JSON that comes back."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Protocol

from shop.errors import NotFound, Unavailable


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    body: dict[str, Any] | None = None


class Send(Protocol):
    """Send a request. Without a `timeout` (in seconds) it waits for as long as the service does."""

    def __call__(self, request: Request, *, timeout: float | None = None) -> dict[str, Any]: ...


def send(request: Request, *, timeout: float | None = None) -> dict[str, Any]:
    """Send a request over the network. Raises `TimeoutError`, `NotFound` or `Unavailable`."""
    body = None if request.body is None else json.dumps(request.body).encode()
    http = urllib.request.Request(request.url, data=body, method=request.method)
    http.add_header("Accept", "application/json")
    if body is not None:
        http.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(http, timeout=timeout) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise NotFound(request.url) from error
        raise Unavailable(f"{request.url} answered {error.code}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise error.reason from error
        raise Unavailable(f"{request.url}: {error.reason}") from error
