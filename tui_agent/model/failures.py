"""A failure: an exception with its causes, the server's message, and the requested delay.

litellm wraps errors of providers and HTTP libraries in inconsistent classes, so class names, status codes
and messages of the whole chain are examined. Server messages are shortened and masked, to reveal no keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tui_agent.files.key_formats import masked
from tui_agent.files.lazy_regex import late
from tui_agent.model.server_error import ServerError, limits_reset, lowered, retry_after, seconds_in

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
#: A page with more characters is represented by its title.
_SHORT_PAGE = 80
_DEEPEST = 4


@dataclass(frozen=True)
class Failure:
    """An exception with its causes, and the server's error response if known."""

    error: BaseException
    refused: ServerError | None = None

    @cached_property
    def chain(self) -> tuple[BaseException, ...]:
        return tuple(_causes(self.error))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(cls.__name__ for error in self.chain for cls in type(error).__mro__)

    @cached_property
    def raised(self) -> str:
        return "\n".join(str(error) for error in self.chain)

    @cached_property
    def status(self) -> int:
        """The HTTP status, 0 without a response. litellm invents a 500 for those."""
        if self.refused is not None:
            return self.refused.status
        own = [_status(error) for error in self.chain if type(error).__module__ != _LITELLM]
        made_up = [status for error in self.chain if (status := _status(error)) != 500]
        return next((status for status in (*reversed(own), *made_up) if status), 0)

    @cached_property
    def text(self) -> str:
        """Messages and codes to match; excludes echoed request text if the response is known."""
        if self.refused is None:
            return "\n".join((self.raised, *(code for body in self._bodies for code in codes_in(body))))
        body = self.refused.body
        words = words_in(body) or json.dumps(body, ensure_ascii=False)
        return "\n".join((words, *codes_in(body)))

    @cached_property
    def said(self) -> str:
        words = next((said for body in self._bodies if (said := words_in(body))), "")
        if len(words) > _SHORT_PAGE:
            words = self._title or words
        if self.refused is not None and not words:
            return "no details"
        words = words or _PREFIXES.sub("", str(getattr(self.error, "message", self.error)))
        return _one_line(masked(_CREDENTIALS.sub(r"\1", words)))

    @property
    def page(self) -> str:
        """The title of a web page sent as the response, otherwise `said`."""
        return _one_line(masked(self._title)) or self.said

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
        """The delay requested by a header or the message, otherwise the time until a limit resets."""
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
    """The message in an error body in any known format; the innermost if errors are nested."""
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
            return "; ".join(filter(None, map(_part, parts)))
        case {"error": {} as inner} | {"detail": {} as inner} if inner:
            return words_in(inner, deep + 1) or json.dumps(inner, ensure_ascii=False)
        case {"base_resp": {"status_msg": str(words)}} if words:
            return words
        case {"title": str(words)} | {"type": str(words)}:
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


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes, including members of groups, without duplicates."""
    left, seen = [error], set[int]()
    while left:
        error = left.pop(0)
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        left.append(original if isinstance(original, BaseException) else error.__cause__ or error.__context__)
        if isinstance(error, BaseExceptionGroup):
            left.extend(error.exceptions)


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


def _part(part: object) -> str:
    match part:
        case {"msg": str(words), "loc": [*place]}:
            return f"{'.'.join(map(str, place))}: {words}"
        case {"msg": str(words)}:
            return words
    return words_in(part)


def _one_line(words: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split()).rstrip(".")
    return line if len(line) <= SAID_CHARACTERS else line[: SAID_CHARACTERS - 1] + "…"
