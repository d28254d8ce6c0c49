"""Text without what looks like a key, a token or a password."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

MASK = "[masked]"
Span = tuple[int, int]

#: What providers, code hosts and clouds begin their keys with. A digit tells a key from a name such as `hf_…`.
_PREFIXED = (
    r"\b(?:sk|pk|rk|xai|gsk|hf|gh[pousr]|glpat|xox[abprs])[-_](?=[\w-]*\d)[\w-]{16,}"
    r"|\bgithub_pat_\w{20,}|\bA(?:KIA|SIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"
)
_TOKEN = r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
_HEADER = r"(?i:bearer|basic)\s+(?P<header>[\w.~+/=-]{16,})"
#: A quoted value given to a name like `api_key`, in code or in JSON, also where the quotes are escaped.
_ASSIGNED = (
    r"(?i:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token)(?:\\?[\"'])?\s*[:=]\s*"
    r"\\?(?P<quote>[\"'])(?!\$)(?P<value>[^\"'\s\\]{8,})\\?(?P=quote)"
)
_SECRET = re.compile("|".join((_PREFIXED, _TOKEN, _PRIVATE_KEY, _HEADER, _ASSIGNED)), re.DOTALL)
_SECRET_NAME = re.compile(r"(?i)(?:_|^)(?:key|token|secret|password|passwd)$")
_SHORTEST = 8


def masked(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` with every secret-looking part replaced by `MASK`."""
    return "".join(masked_pieces([text], environment))


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

    That is: the values of environment variables that are named like secrets (eight characters or more), the
    well-known shapes of keys and tokens, private keys, authorization headers, and quoted values given to names
    like `api_key`.
    """
    found = list(_known(text, os.environ if environment is None else environment))
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
    """The piece that begins at `offset`; the mask stands in the piece in which its secret begins."""
    parts, at = [], 0
    for start, end in ((start - offset, end - offset) for start, end in spans):
        if end <= 0 or start >= len(piece):
            continue
        parts.append(piece[at : max(start, 0)])
        if start >= 0:
            parts.append(MASK)
        at = min(end, len(piece))
    return "".join([*parts, piece[at:]])
