"""What follows a backslash in a JSON string, and halves of surrogate pairs."""

from __future__ import annotations

import json
import re

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_NAMED = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "\\": "\\",
    "/": "/",
    "'": "'",
    "\n": "\n",
}


def unescaped(raw: str) -> str:
    """The text that the inside of a JSON string means.

    An escape that JSON does not know keeps its backslash: `\\d` is what a model means by it. Halves of
    surrogate pairs stay as they are, since the other half may come with the next piece.
    """
    if "\\" not in raw:
        return raw
    try:
        return json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return _ESCAPE.sub(_meaning, raw)


def _meaning(match: re.Match[str]) -> str:
    code, name = match.groups()
    return chr(int(code, 16)) if code else _NAMED.get(name, match[0])


def has_half(text: str) -> bool:
    """Whether half of a surrogate pair is alone in it, so that it cannot be written as UTF-8."""
    return not text.isascii() and _HALF.search(text) is not None


def paired(text: str) -> str:
    """The text with the halves of surrogate pairs put together; lone halves stay."""
    if not has_half(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def joined(text: str) -> str:
    """The text with the halves of surrogate pairs put together, and lone halves as U+FFFD."""
    if not has_half(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
