"""Text without what looks like a key, a token or a password."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tui_agent.files.key_formats import MASK, hits

Span = tuple[int, int]

#: Shorter than any issuer's, as a key is that was cut off. A digit tells a key from a name such as `hf_…`.
_CUT = (
    r"\b(?:sk|pk|rk|xai|gsk|hf|gh[pousr]|glpat|xox[abprs])[-_](?=[\w-]{0,60}\d)[\w-]{16,}"
    r"|\bgithub_pat_\w{20,}|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
)
_HEADER = r"(?i:bearer|basic)\s+(?P<header>[\w.~+/=-]{16,})"
#: A quoted value given to a name like `api_key`, in code or in JSON, also where the quotes are escaped.
_ASSIGNED = (
    r"(?i:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token)(?:\\?[\"'])?\s*[:=]\s*"
    r"\\?(?P<quote>[\"'])(?!\$)(?P<value>[^\"'\s\\]{8,})\\?(?P=quote)"
)
_SECRET = re.compile("|".join((_CUT, _HEADER, _ASSIGNED)))
_SECRET_NAME = re.compile(r"(?i)(?:_|^)(?:key|token|secret|password|passwd)$")
_SHORTEST = 8
#: No form of a key holds it: what is put together with it between is found as if it were apart.
_BETWEEN = "\0"


def masked(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` with every secret-looking part replaced by `MASK`."""
    return "".join(masked_pieces([text], environment))


def masked_values(value: Any, environment: Mapping[str, str] | None = None) -> Any:
    """A value of JSON with every string in it masked, and nothing else changed: it has the same shape as before.

    A string that is JSON itself is masked string by string as well.
    """
    together = _BETWEEN.join(_strings(value))
    return _each_masked(value, environment) if secret_spans(together, environment) else value


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for item in value.values():
                yield from _strings(item)


def _each_masked(value: Any, environment: Mapping[str, str] | None) -> Any:
    match value:
        case str():
            return _masked_string(value, environment)
        case list():
            return [_each_masked(item, environment) for item in value]
        case dict():
            return {key: _each_masked(item, environment) for key, item in value.items()}
    return value


def _masked_string(text: str, environment: Mapping[str, str] | None) -> str:
    clean = masked(text, environment)
    if clean == text or not text.lstrip().startswith(("{", "[")):
        return clean
    try:
        return json.dumps(_each_masked(json.loads(text), environment), ensure_ascii=False)
    except (ValueError, RecursionError):
        return clean


def masked_pieces(pieces: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """As many pieces as came, together masked: a secret that is spread over several is found all the same."""
    spans = secret_spans("".join(pieces), environment)
    clean, start = [], 0
    for piece in pieces:
        clean.append(_without(piece, start, spans))
        start += len(piece)
    return clean


def secret_spans(text: str, environment: Mapping[str, str] | None = None) -> list[Span]:
    """Where secret-looking parts are, in order, none touching another.

    That is: the values of environment variables that are named like secrets (eight characters or more), all the
    forms of `files.key_formats` and beginnings of such keys, authorization headers, and quoted values given to names
    like `api_key`. Never more than the value itself: what is around it can still be read, by a JSON parser too.
    """
    found = list(_known(text, os.environ if environment is None else environment))
    found += [(hit.start, hit.end) for hit in hits(text, cut=True)]
    for match in _SECRET.finditer(text):
        group = match.lastgroup if match.lastgroup in ("header", "value") else 0
        found.append(match.span(group))
    return _joined(found)


def _known(text: str, environment: Mapping[str, str]) -> Iterator[Span]:
    for name, value in environment.items():
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name):
            yield from (match.span() for match in re.finditer(re.escape(value), text))


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _without(piece: str, offset: int, spans: Iterable[Span]) -> str:
    """The piece that begins at `offset`; the mask is in the piece in which its secret begins."""
    parts, at = [], 0
    for start, end in ((start - offset, end - offset) for start, end in spans):
        if end <= 0 or start >= len(piece):
            continue
        parts.append(piece[at : max(start, 0)])
        if start >= 0:
            parts.append(MASK)
        at = min(end, len(piece))
    return "".join([*parts, piece[at:]])
