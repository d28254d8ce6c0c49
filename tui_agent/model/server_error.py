"""Error responses of model servers: status, real or derived, and requested delay."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import real_number, seconds_of, whole_number

#: Statuses of errors in events without a status, by error name: OpenAI, Anthropic and compatible servers;
#: Google's canonical codes (https://cloud.google.com/apis/design/errors); Moonshot; DashScope; the numbers of
#: https://docs.z.ai/api-reference/api-code.
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
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "internal": 500,
    "unavailable": 503,
    "deadline_exceeded": 504,
    "exceeded_current_quota_error": 429,
    "rate_limit_reached_error": 429,
    "engine_overloaded_error": 429,
    "arrearage": 402,
    "datainspectionfailed": 400,
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), 401),
    **dict.fromkeys(("1210", "1211", "1213", "1214", "1261", "1301"), 400),
    **dict.fromkeys(("1113", "1302", "1303", "1304", "1305", "1308", "1309", "1310", "1312", "1313"), 429),
}
#: MiniMax reports errors in `base_resp.status_code`, even with HTTP status 200:
#: https://platform.minimax.io/docs/api-reference/errorcode.md.
_STATUS_OF_MINIMAX = {
    1001: 504,
    **dict.fromkeys((1002, 1041, 2045, 2056), 429),
    **dict.fromkeys((1004, 2049), 401),
    1008: 402,
    **dict.fromkeys((1026, 1027, 1039, 1042, 2013), 400),
}
_PAGE = late(r"(?is)[\s\ufeff]*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|script|meta|title)\b")
_UNITS = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = r"(?:\d+(?:\.\d+)?\s?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])\s?)+"
_PART = late(r"(?ai)(\d+(?:\.\d+)?)\s?(millis|ms|[smhd])")
_WHOLE_SPAN = late(f"(?ai){_SPAN}")
_NUMBER = late(r"(?a)\d{1,15}(?:\.\d+)?")
#: "Please try again in 6m0s" (OpenAI, Groq), "Please retry after 20 seconds" (Azure), `"retryDelay": "34s"` (Gemini).
_ASKED = late(rf"(?i)(?:try again|retry(?:Delay)?|reset)\W{{1,8}}(?:(?:in|after)\W{{1,2}})?({_SPAN})")
#: Numbers from these are Unix times in seconds and in milliseconds.
_MOMENT, _MOMENT_MS = 1e9, 1e12


@dataclass(frozen=True)
class ServerError:
    """An error sent instead of a reply or within it: status (real or derived), body, requested delay in
    seconds, and headers with lower-case names."""

    status: int
    body: Any
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_page(self) -> bool:
        """Whether the body is a web page, sent by another server or for a wrong address."""
        return isinstance(self.body, str) and bool(_PAGE.match(self.body))


def is_error(body: Mapping[str, Any]) -> bool:
    named = "error" in (body.get("type"), body.get("object"))
    return bool(body.get("error")) or named or bool(_minimax(body))


def status_of(body: Any) -> int:
    """The equivalent HTTP status of an error within a stream."""
    error = body.get("error") if isinstance(body, dict) else body
    named = [error] if isinstance(error, dict) else []
    named += [body] if isinstance(body, dict) else []
    for one in named:
        for key in ("status", "status_code", "code", "type"):
            value = one.get(key)
            if isinstance(value, str):
                value = _STATUS_OF.get(value.lower()) or whole_number(value)
            as_status = value if isinstance(value, int) and 400 <= value <= 599 else 0
            if status := as_status:
                return status
    if isinstance(body, dict) and (code := _minimax(body)):
        return _STATUS_OF_MINIMAX.get(code, 500)
    return 529 if re.search(r"(?i)overloaded|at capacity|too busy", str(body)) else 500


def retry_after(headers: Any) -> float | None:
    """The delay in seconds requested by `retry-after-ms` or `retry-after`: a number, or a date (RFC 9110,
    10.2.3) relative to the server's `date`. None if missing, invalid or zero, because immediate retries
    would be exhausted at once."""
    named = lowered(headers)
    if milliseconds := _number(named.get("retry-after-ms")):
        return milliseconds / 1000
    return _seconds(named.get("retry-after"), _now(named)) or None


def limits_reset(headers: Any) -> float | None:
    """Seconds until all exhausted limits are reset; None if none is exhausted.

    Reads pairs of headers such as `x-ratelimit-remaining-tokens: 0` and `x-ratelimit-reset-tokens: 6m0s`
    (OpenAI, Groq), `anthropic-ratelimit-requests-remaining` and `…-reset` (a date), and
    `x-ratelimit-reset` (OpenRouter, a timestamp).
    """
    named = lowered(headers)
    used_up = [
        name
        for name, value in named.items()
        if "ratelimit" in name and "remaining" in name and _number(value) == 0
    ]
    resets = (_seconds(named.get(name.replace("remaining", "reset")), _now(named)) for name in used_up)
    return max((seconds for seconds in resets if seconds), default=None)


def seconds_in(words: str) -> float | None:
    """The delay in seconds named in an error message; None if missing or 0."""
    asked = _ASKED.search(words)
    return _span(asked[1]) or None if asked else None


def lowered(headers: Any) -> dict[str, str]:
    try:
        return {str(name).lower(): str(value) for name, value in headers.items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def _minimax(body: Mapping[str, Any]) -> int:
    match body.get("base_resp"):
        case {"status_code": int(code)}:
            return code
    return 0


def _now(headers: Mapping[str, str]) -> float:
    date = seconds_of(headers.get("date"))
    return time.time() if date is None else date


def _seconds(value: str | None, now: float) -> float | None:
    """Seconds from a number, duration, timestamp or date; 0 for a past time."""
    if value is None:
        return None
    value = value.strip()
    if (number := _number(value)) is not None:
        moment = number / 1000 if number >= _MOMENT_MS else number
        return max(0.0, moment - now) if moment >= _MOMENT else number
    if _WHOLE_SPAN.fullmatch(value):
        return _span(value)
    date = seconds_of(value)
    return None if date is None else max(0.0, date - now)


def _number(value: str | None) -> float | None:
    """Returns None for Python-specific floats such as `nan`."""
    if value is None or not _NUMBER.fullmatch(value.strip()):
        return None
    number = real_number(value, -1.0)
    return None if number < 0 else number


def _span(text: str) -> float:
    return sum(real_number(number) * _UNITS[unit.lower()[:2]] for number, unit in _PART.findall(text))
