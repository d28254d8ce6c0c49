"""An error as a server of models tells it: its status, real or as its kind would have it, and how long to wait."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: What providers call their errors, where an event carries no status: OpenAI, Anthropic, and servers like them.
_STATUS_OF = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(frozen=True)
class ServerError:
    """What a server answered in place of a reply, or of the rest of one: the status, real or as its kind of error
    would have it, the body, and the seconds that it asked us to wait."""

    status: int
    body: Any
    retry_after: float | None = None


def status_of(body: Any) -> int:
    """The HTTP status that an error inside a stream would have had."""
    error = body.get("error") if isinstance(body, dict) else body
    named = [error] if isinstance(error, dict) else []
    named += [body] if isinstance(body, dict) else []
    for one in named:
        for key in ("status", "status_code", "code", "type"):
            if status := _as_status(one.get(key)):
                return status
    return 529 if re.search(r"(?i)overloaded|at capacity|too busy", str(body)) else 500


def retry_after(headers: Any) -> float | None:
    """Seconds that a server asks us to wait."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(headers.get("retry-after")))
    except (AttributeError, TypeError, ValueError):
        return None  # no headers, no such header, or a date, which servers of models do not send


def _as_status(value: Any) -> int:
    if isinstance(value, str):
        value = int(value) if value.isdecimal() else _STATUS_OF.get(value.lower(), 0)
    return value if isinstance(value, int) and 400 <= value <= 599 else 0
