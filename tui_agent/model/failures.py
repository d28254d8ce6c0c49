"""A failure: error responses, exceptions with their causes, the requested delay; and classes of failures.

litellm wraps errors in inconsistent classes, so class names, status codes and messages of the whole chain
are examined. Server messages are shortened and masked.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from tui_agent.errors import ModelError
from tui_agent.files.lazy_regex import late
from tui_agent.files.masking import masked
from tui_agent.files.numbers import real_number, seconds_of, whole_number

#: Statuses of errors in events without one, by error name: OpenAI, Anthropic and compatible servers; Google's
#: canonical codes (https://cloud.google.com/apis/design/errors); Moonshot; DashScope; the numbers of
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
#: Values of `base_resp.status_code`, sent even with HTTP status 200:
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
_ASKED = late(rf"(?i)(?:try again|retry(?:Delay)?|reset)\W{{1,8}}(?:(?:in|after)\W{{1,2}})?(?<!-)({_SPAN})")
_MOMENT, _MOMENT_MS = 1e9, 1e12


@dataclass(frozen=True)
class ServerError:
    """Status (real or derived), body, requested delay in seconds, and headers with lower-case names."""

    status: int
    body: Any
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_page(self) -> bool:
        """Whether the response is a web page, from another server or a wrong address."""
        return isinstance(self.body, str) and bool(_PAGE.match(self.body))


def is_error(body: Mapping[str, Any]) -> bool:
    named = "error" in (body.get("type"), body.get("object"))
    return bool(body.get("error")) or named or bool(_minimax(body))


def status_of(body: Any) -> int:
    """The HTTP status equivalent to an error within a stream."""
    error = body.get("error") if isinstance(body, dict) else None
    for one in (error, body):
        if not isinstance(one, dict):
            continue
        for key in ("status", "status_code", "code", "type"):
            value = one.get(key)
            if isinstance(value, str):
                value = _STATUS_OF.get(value.lower()) or whole_number(value)
            if isinstance(value, int) and 400 <= value <= 599:
                return value
    if isinstance(body, dict) and (code := _minimax(body)):
        return _STATUS_OF_MINIMAX.get(code, 500)
    return 529 if re.search(r"(?i)overloaded|at capacity|too busy", str(body)) else 500


def retry_after(headers: Any) -> float | None:
    """Returns the seconds requested by `retry-after-ms` or `retry-after`: a number, or a date (RFC 9110,
    10.2.3) relative to the server's `date`. `None` if missing, invalid or zero: immediate retries would
    soon be exhausted.
    """
    named = lowered(headers)
    if milliseconds := _number(named.get("retry-after-ms")):
        return milliseconds / 1000
    return _seconds(named.get("retry-after"), _now(named)) or None


def limits_reset(headers: Any) -> float | None:
    """Returns the seconds until all exhausted limits are reset, or `None`.

    Reads pairs such as `x-ratelimit-remaining-tokens: 0` and `x-ratelimit-reset-tokens: 6m0s` (OpenAI,
    Groq), `anthropic-ratelimit-requests-remaining` and `…-reset` (a date), and `x-ratelimit-reset`
    (OpenRouter, a timestamp).
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
    if value is None or not _NUMBER.fullmatch(value.strip()):
        return None
    number = real_number(value, -1.0)
    return None if number < 0 else number


def _span(text: str) -> float:
    return sum(real_number(number) * _UNITS[unit.lower()[:2]] for number, unit in _PART.findall(text))


SAID_CHARACTERS = 240
_LITELLM = "litellm.exceptions"
_TAGS = late(r"(?is)<(?:script|style|head).*?</(?:script|style|head)>|<[^>]{0,400}>")
_TITLE = late(r"(?is)<(title|h1)\b[^>]{0,200}>\s*(.{1,300}?)\s*</\1>")
_PREFIXES = late(r"^(?:litellm\.)?(?:\w+(?:Error|Exception)(?:: | - ))+")
#: OpenRouter's generic messages; the original one is in `metadata.raw`.
_EMPTY_WORDS = late(
    r"(?i)(?:error from provider(?: \([^)]*\))?: )?provider returned error|upstream error.{0,60}"
)
_CREDENTIALS = late(r"(\w{2,12}://)[^/\s@]{1,300}@")
#: Characters above which a page is represented by its title.
_SHORT_PAGE = 80
_DEEPEST = 4


@dataclass(frozen=True)
class Failure:
    error: BaseException
    refused: ServerError | None = None

    @cached_property
    def chain(self) -> tuple[BaseException, ...]:
        found: list[BaseException] = []
        left: list[BaseException | None] = [self.error]
        seen = set[int]()
        while left:
            error = left.pop(0)
            if error is None or id(error) in seen:
                continue
            seen.add(id(error))
            found.append(error)
            original = getattr(error, "original_exception", None)
            inner = original if isinstance(original, BaseException) else error.__cause__ or error.__context__
            left.append(inner)
            if isinstance(error, BaseExceptionGroup):
                left.extend(error.exceptions)
        return tuple(found)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(cls.__name__ for error in self.chain for cls in type(error).__mro__)

    @cached_property
    def raised(self) -> str:
        return "\n".join(str(error) for error in self.chain)

    @cached_property
    def status(self) -> int:
        """0 without a response, for which litellm invents a 500."""
        if self.refused is not None:
            return self.refused.status
        own = [_status(error) for error in self.chain if type(error).__module__ != _LITELLM]
        made_up = [status for error in self.chain if (status := _status(error)) != 500]
        return next((status for status in (*reversed(own), *made_up) if status), 0)

    @cached_property
    def text(self) -> str:
        """Excludes echoed request text if the response is known."""
        if self.refused is None:
            return "\n".join((self.raised, *(code for body in self._bodies for code in codes_in(body))))
        body = self.refused.body
        words = words_in(body) or json.dumps(body, ensure_ascii=False)
        return "\n".join((words, *codes_in(body)))

    @cached_property
    def detail(self) -> str:
        words = next((said for body in self._bodies if (said := words_in(body))), "")
        if len(words) > _SHORT_PAGE:
            words = self._title or words
        if self.refused is not None and not words:
            return "no details"
        words = words or _PREFIXES.sub("", str(getattr(self.error, "message", self.error)))
        return _one_line(masked(_CREDENTIALS.sub(r"\1", words)))

    @property
    def page(self) -> str:
        return _one_line(masked(self._title)) or self.detail

    @cached_property
    def headers(self) -> dict[str, str]:
        if self.refused is not None:
            match self.refused.body:
                case {"error": {"metadata": {"headers": dict() as headers}}}:
                    repeated = lowered(headers)
                case _:
                    repeated = {}
            return {**self.refused.headers, **repeated}
        return next(filter(None, map(lowered, self._headers)), {})

    @cached_property
    def seconds(self) -> float | None:
        """Requested by a header or the message, otherwise until a limit resets."""
        if self.refused is not None and self.refused.retry_after is not None:
            return self.refused.retry_after
        for headers in () if self.refused is not None else self._headers:
            if (seconds := retry_after(headers)) is not None:
                return seconds
        if (seconds := seconds_in(self.text)) is not None:
            return seconds
        return limits_reset(self.headers) if self.status == 429 else None

    @cached_property
    def _title(self) -> str:
        title = (
            _TITLE.search(self.refused.body) if self.refused is not None and self.refused.is_page else None
        )
        return _TAGS.sub(" ", title[2]).strip() if title else ""

    @cached_property
    def _bodies(self) -> list[Any]:
        answered = [self.refused.body] if self.refused is not None else []
        return [
            *answered,
            *(body for error in self.chain if (body := getattr(error, "body", None)) is not None),
        ]

    @property
    def _headers(self) -> Iterator[Any]:
        for error in self.chain:
            yield getattr(getattr(error, "response", None), "headers", None)
            yield getattr(error, "litellm_response_headers", None)
            yield getattr(error, "headers", None)


def words_in(body: object, deep: int = 0) -> str:
    """The innermost message of nested errors."""
    if deep > _DEEPEST:
        return ""
    match body:
        case str(words):
            inner = _as_json(words)
            return words_in(inner, deep + 1) if inner else _TAGS.sub(" ", words).strip()
        case [dict() as only]:
            return words_in(only, deep + 1)
        case {"error": {"metadata": {"raw": str(raw)} as more} as error} if raw.strip():
            words, inner = str(error.get("message") or ""), words_in(raw, deep + 1)
            by = f"{name}: " if isinstance(name := more.get("provider_name"), str) else ""
            return f"{by}{inner}" if _EMPTY_WORDS.match(words) or not words else f"{words} ({by}{inner})"
        case {"error": {"message": str(words)}} if words.strip():
            return _unwrapped(words, deep)
        case {"message": str(words)} | {"error": str(words)} | {"detail": str(words)} if words.strip():
            return _unwrapped(words, deep)
        case {"detail": list(parts)} | {"errors": list(parts)} | {"message": list(parts)}:
            return "; ".join(filter(None, map(words_in, parts)))
        case {"error": {} as inner} | {"detail": {} as inner} if inner:
            return words_in(inner, deep + 1) or json.dumps(inner, ensure_ascii=False)
        case {"base_resp": {"status_msg": str(words)}} if words:
            return words
        case {"msg": str(words), "loc": [*place]}:
            return f"{'.'.join(map(str, place))}: {words}"
        case {"msg": str(words)} | {"title": str(words)} | {"type": str(words)}:
            return words
    return ""


def codes_in(body: object, deep: int = 0) -> Iterator[str]:
    if isinstance(body, str):
        body = _as_json(body)
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict) or deep > _DEEPEST:
        return
    names = ("code", "type", "error_code", "status", "reason", "quotaId")
    yield from (str(body[name]) for name in names if isinstance(body.get(name), str | int))
    if isinstance(delay := body.get("retryDelay"), str):
        yield f"retryDelay {delay}"
    match body:
        case {"base_resp": {"status_code": code}}:
            yield f"base_resp {code}"
        case {"metadata": {"raw": str(raw)}}:
            yield from codes_in(raw, deep + 1)
    if isinstance(words := body.get("message"), str):
        yield from codes_in(words, deep + 1)
    for name in ("error", "innererror", "details", "violations"):
        inner = body.get(name)
        for one in inner if isinstance(inner, list) else (inner,):
            yield from codes_in(one, deep + 1) if isinstance(one, dict) else ()


def _status(error: BaseException) -> int:
    status = getattr(error, "status_code", 0)
    return status if isinstance(status, int) else 0


def _as_json(words: str) -> Any:
    if not words.lstrip().startswith(("{", "[{")):
        return None
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return None


def _unwrapped(words: str, deep: int) -> str:
    inner = _as_json(words)
    return (words_in(inner, deep + 1) if inner else "") or words


def _one_line(words: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split()).rstrip(".")
    return line if len(line) <= SAID_CHARACTERS else line[: SAID_CHARACTERS - 1] + "…"


Again = Literal["no", "if asked", "yes"]


@dataclass(frozen=True)
class FailureKind:
    """Matched by text (`signs`), status and `when`. Empty `signs` or `statuses` match everything; an unknown
    status matches if `signs` are set.

    The templates `what` and `remedy` may contain `{model}`, `{said}` (the server's message), `{page}` (a
    web page's title), `{status}`, `{keys}` (key variables), `{where}` (address variable), and for
    requests over an account limit `{limit}` and `{requested}` in tokens per `{span}`. `again`: whether to
    retry, always or only after a delay requested by the provider.
    """

    error: type[ModelError]
    what: str
    remedy: str
    signs: str = ""
    statuses: tuple[int, ...] = ()
    when: Callable[[Failure], bool] = lambda failure: True
    again: Again = "no"
    sought: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sought", late(f"(?im){self.signs}"))

    def fits(self, failure: Failure) -> bool:
        known = failure.status or not self.signs
        if self.statuses and known and failure.status not in self.statuses:
            return False
        return bool(self.sought.search(failure.text)) and self.when(failure)


def any_of(*signs: str) -> str:
    return "|".join(signs)
