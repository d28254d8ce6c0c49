"""Detection and masking of keys and tokens by their format (`key_formats.toml`)."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.files.lazy_regex import late
from tui_agent.files.text import PIECE

MASK = "[masked]"
PATH = Path(__file__).with_name("key_formats.toml")
ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=;")
_LINE_OF_IT = late(r"[^\r\n]+")
_VALUE = late(
    r"""^[ \t]*+(?:(?:export[ \t]+)?["']?[A-Za-z_][\w.-]{0,80}["']?[ \t]*[=:][ \t]*+)?+([^\r\n]*)$""",
    re.MULTILINE,
)


class Hit(Struct, frozen=True):
    """Characters `start` to `end` are a secret; `what` is its kind, as in “an AWS access key”."""

    start: int
    end: int
    what: str


class _Form(Struct, frozen=True):
    what: str
    pattern: re.Pattern[str]
    fits: Callable[[str], bool] = lambda found: True
    #: Accepts matches to mask although they may be no key or a truncated one.
    cut: Callable[[str], bool] = lambda found: True


#: Between a key's lines: line ends, JSON escapes, and concatenated literals.
_BREAK = r"""(?:\s|\\{1,8}[nrt]?|["']\s{0,40}[+.&]?\s{0,40}["']){1,64}+"""
_BASE64_LINE = r"[A-Za-z0-9+/]{16,}+={0,2}"
_HEADERS = rf"(?:{_BREAK}[A-Za-z-]{{3,30}}: [^\r\n\\\"']{{0,200}})*+"
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"{_HEADERS}(?:{_BREAK}{_BASE64_LINE})*+(?:{_BREAK}=?[A-Za-z0-9+/]{{1,75}}={{0,2}}(?={_BREAK}-----END ))?+"
    rf"(?:{_BREAK}-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?+"
)
_NO_KEY = late(r"-----[A-Z0-9 ]{1,80}-----|^[A-Za-z-]{3,30}: .*$|[^A-Za-z0-9+/]", re.MULTILINE)
#: Below the Base64 length of the shortest private key (Ed25519, 48 bytes).
_SHORTEST_KEY = 60
_LINE = 40
_SIGNED = r"eyJ(?<![\w-]eyJ)[\w-]{10,2000}\.eyJ[\w-]{10,8000}\.[\w-]{30,2000}"


def _key_body(found: str) -> str:
    return _NO_KEY.sub("", re.sub(r"\\+[nr]", "\n", found))


def _is_mixed(found: str, least: int) -> bool:
    return len(set(found)) >= least and any(c.isdigit() for c in found) and any(c.isalpha() for c in found)


def _is_signed(found: str) -> bool:
    head, body, _ = found.split(".")
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, body))
    except (binascii.Error, ValueError, RecursionError):
        return False
    if not isinstance(header, dict) or not isinstance(claims, dict):
        return False
    return str(header.get("alg", "none")).lower() != "none" and claims.get("name") != "John Doe"


class _Format(Struct, frozen=True):
    what: str
    patterns: tuple[str, ...]
    begins: str = ""
    words: tuple[str, ...] = ()
    check: str = ""


class _Table(Struct, frozen=True):
    parts: dict[str, str]
    formats: tuple[_Format, ...]
    words: dict[str, str]


@cache
def _table() -> _Table:
    return msgspec.toml.decode(PATH.read_bytes(), type=_Table)


@cache
def words_of(key: str) -> frozenset[str]:
    return frozenset(_table().words[key].split())


@cache
def _forms() -> tuple[_Form, ...]:
    table = _table()
    checks: dict[str, Callable[[str], bool]] = {
        "varied": lambda found: len(set(found[4:])) >= 6,
        "random": partial(_is_mixed, least=10),
        "given": partial(_is_mixed, least=6),
        "": lambda found: True,
    }

    def pattern(text: str) -> str:
        for name, part in reversed(table.parts.items()):
            text = text.replace(f"<{name}>", part)
        return text

    return (
        _Form(
            "a private key",
            re.compile(_PRIVATE_KEY),
            fits=lambda found: len(key := _key_body(found)) >= _SHORTEST_KEY and len(set(key)) >= 12,
            cut=lambda found: len(_key_body(found)) >= (1 if "-----END " in found else _LINE),
        ),
        *(
            _Form(one.what, re.compile(pattern(each)), checks[one.check])
            for one in table.formats
            for each in one.patterns
        ),
        _Form("a signed web token", re.compile(_SIGNED), _is_signed),
    )


def hits(text: str, *, cut: bool = False) -> list[Hit]:
    """Returns secrets by format, in order, without overlap. About one second per 30 MB: call it in a thread.
    With `cut`, also returns matches too short or too plain to be keys.
    """
    found: list[Hit] = []
    for form in _forms():
        for match in _matches(form.pattern, text):
            secret = match.lastgroup or 0
            before = text[match.start() - 1 : match.start()]
            if (form.cut if cut else form.fits)(match[secret]) and not before.isalnum():
                found.append(Hit(match.start(secret), match.end(secret), form.what))
    kept: list[Hit] = []
    for hit in sorted(found, key=lambda hit: (hit.start, -hit.end)):
        if not kept or hit.start >= kept[-1].end:
            kept.append(hit)
    return kept


_WORDS = bytes(c if chr(c) in ALPHABET else 0x20 for c in range(256))
#: Maximum match length, except for private keys.
_LONGEST_FORM = 1 << 15
_SHORTEST_WORD = 20


def may_hold_key(data: bytes) -> bool:
    """Fast filter on UTF-8 bytes: False if `hits` finds nothing."""
    named, beginning = _filter()
    if any(word in data for word in named):
        return True
    long = [word for word in data.translate(_WORDS).split() if len(word) >= _SHORTEST_WORD]
    mixed = [word for word in long if not word.isalpha() or b"A" in word]
    return bool(mixed) and beginning.search(b" ".join(mixed)) is not None


@cache
def _filter() -> tuple[tuple[bytes, ...], re.Pattern[bytes]]:
    formats = _table().formats
    named = (b"PRIVATE KEY", *(word.encode() for one in formats for word in one.words))
    begins = (*(one.begins for one in formats if one.begins), r"eyJ[\w-]{10}")
    return named, re.compile("|".join(begins).encode())


def values(text: str) -> list[Hit]:
    """Returns the values of a text that is secret as a whole."""
    return [Hit(*match.span(1), "a value") for match in _VALUE.finditer(text) if match[1]]


def hits_masked(text: str, found: Sequence[Hit]) -> str:
    parts, at = [], 0
    for hit in found:
        parts += [text[at : hit.start], _LINE_OF_IT.sub(MASK, text[hit.start : hit.end])]
        at = hit.end
    return "".join([*parts, text[at:]])


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Like `finditer`, with one call per piece, because a call blocks other threads."""
    at = begin = 0
    while begin < len(text):
        end = begin + PIECE
        for match in pattern.finditer(text, max(at, begin), end + _LONGEST_FORM):
            if match.start() >= end:
                break
            whole = match if match.end() < end else pattern.match(text, match.start())
            if whole is not None:
                yield whole
                at = whole.end()
        begin = end


Span = tuple[int, int]

#: Truncated keys, shorter than real ones. A required digit excludes names such as `hf_…`.
_CUT = (
    r"\b(?:sk|pk|rk|xai|gsk|hf|gh[pousr]|glpat|xox[abprs])[-_](?=[\w-]{0,60}\d)[\w-]{16,}"
    r"|\bgithub_pat_\w{20,}|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
)
_HEADER = r"(?i:bearer|basic)\s+(?P<header>[\w.~+/=-]{16,})"
_ASSIGNED = (
    r"(?i:api[_-]?key|secret|passw(?:or)?d|access[_-]?token|auth[_-]?token)(?:\\?[\"'])?\s*[:=]\s*"
    r"\\?(?P<quote>[\"'])(?!\$)(?P<value>[^\"'\s\\]{8,})\\?(?P=quote)"
)
_SECRET = late("|".join((_CUT, _HEADER, _ASSIGNED)))
_SECRET_NAME = late(r"(?i)(?:_|^)(?:key|token|secret|password|passwd)$")
_SHORTEST = 8
#: Separates joined texts; in no key format.
_BETWEEN = "\0"


def masked(text: str, environment: Mapping[str, str] | None = None) -> str:
    return "".join(masked_pieces([text], environment))


def masked_values(value: Any, environment: Mapping[str, str] | None = None) -> Any:
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
            clean = masked(value, environment)
            if clean != value and value.lstrip().startswith(("{", "[")):
                with suppress(ValueError, RecursionError):
                    return json.dumps(_each_masked(json.loads(value), environment), ensure_ascii=False)
            return clean
        case list():
            return [_each_masked(item, environment) for item in value]
        case dict():
            return {key: _each_masked(item, environment) for key, item in value.items()}
    return value


def masked_pieces(pieces: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """Masks the pieces as one text, for secrets that span several; returns as many pieces."""
    spans = secret_spans("".join(pieces), environment)
    clean, offset = [], 0
    for piece in pieces:
        parts, at = [], 0
        for start, end in ((start - offset, end - offset) for start, end in spans):
            if end > 0 and start < len(piece):
                parts.append(piece[at : max(start, 0)])
                if start >= 0:
                    parts.append(MASK)
                at = min(end, len(piece))
        clean.append("".join([*parts, piece[at:]]))
        offset += len(piece)
    return clean


def secret_spans(text: str, environment: Mapping[str, str] | None = None) -> list[Span]:
    """Returns secret-looking parts, also truncated ones and values of the environment, in order, without
    overlap. Excludes their names, so that surrounding JSON stays valid.
    """
    found: list[Span] = []
    for name, value in (os.environ if environment is None else environment).items():
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name):
            found += (match.span() for match in re.finditer(re.escape(value), text))
    found += [(hit.start, hit.end) for hit in hits(text, cut=True)]
    for match in _SECRET.finditer(text):
        group = match.lastgroup if match.lastgroup in ("header", "value") else 0
        found.append(match.span(group))
    return joined_spans(found)


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
