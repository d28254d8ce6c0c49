"""Lenient JSON parser. Accepts mistakes with an unambiguous meaning, and stops at any other.

Accepted: line breaks and tabs inside strings, comments, surplus commas, a missing comma after a closing
bracket, single quotes, unquoted keys, `True`, `False`, `None`, and unknown escapes. An unescaped quote
inside a string is always ambiguous.

jiter's partial mode is faster (0.4 ms for 80 kB instead of 15 ms), but reads only one of sixteen test
cases correctly and completes unfinished values: `{"path": "b"}` for a change with a truncated content.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

from tui_agent.files.numbers import LONGEST_NUMBER, based_number

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_PAIRS = re.compile("(?:[\ud800-\udbff][\udc00-\udfff])+")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
#: Maximum number of distinct items replaced one by one.
_FEW = 20
#: Characters processed per step.
_SLICE = 100_000
_NAMED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'",
    "\n": "\n",
}  # fmt: skip


def unescaped(raw: str) -> str:
    r"""The decoded content of a JSON string. Unknown escapes keep their backslash: models mean `\d`
    literally. Lone surrogates are kept, since the other half may be in the next chunk."""
    if "\\" not in raw:
        return raw
    try:
        return json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return _ESCAPE.sub(_meaning, raw)


def _meaning(match: re.Match[str]) -> str:
    code, name = match.groups()
    return chr(based_number(code, 16)) if code else _NAMED.get(name, match[0])


def has_half(text: str) -> bool:
    """Whether the text contains a lone surrogate and cannot be encoded in UTF-8."""
    return not text.isascii() and _HALF.search(text) is not None


def paired(text: str) -> str:
    """The text with surrogate pairs combined; lone surrogates are kept."""
    return _PAIRS.sub(lambda found: _one(found[0]), text) if has_half(text) else text


def _one(pairs: str) -> str:
    return pairs.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def joined(text: str) -> str:
    """The text with surrogate pairs combined, and lone surrogates as U+FFFD."""
    if not has_half(text):
        return text
    parts, at = [], 0
    while at < len(text):
        end = at + _SLICE
        end += _PAIRS.match(text, end - 1) is not None
        parts.append(_joined(text[at:end]))
        at = end
    return "".join(parts)


def _joined(text: str) -> str:
    """Replaces equal items together, which is faster if few are distinct."""
    for alike, new in ((_PAIR, _one), (_HALF, lambda _: "\ufffd")):
        at = 0
        for _ in range(_FEW):
            if (found := alike.search(text, at)) is None:
                break
            text, at = text.replace(found[0], new(found[0])), found.start() + 1
        else:
            return _one(_LONE.sub("\ufffd", text))
    return text


#: Maximum nesting depth of a reply.
MAX_DEPTH = 64
#: Maximum number of brackets, strings and commas of a reply.
MOST_TOKENS = 100_000

_SPACE = re.compile(r"(?:[\s\ufeff]++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"' + r"|'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d.eE+-]{0,40}")
_WORD = re.compile(r"[A-Za-z_$][\w$-]{0,80}")
_LITERALS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None, "undefined": None,
}  # fmt: skip


class PartialJson(Struct, frozen=True):
    """`value` contains the complete parts: entries of an unclosed object, and elements of a list in it.
    Deeper unclosed values are dropped. `end` is the offset after it.

    `fault` is the offset of the first ambiguous mistake, or -1. `whole` is false if the text or its
    readable part ends before the value. `opened` is the key of a dropped incomplete element. `deep` means
    that it is nested too deeply.
    """

    value: Any
    end: int
    whole: bool = True
    fault: int = -1
    opened: str = ""
    deep: bool = False


def add_merging(values: dict[str, Any], key: str, value: Any) -> None:
    """Add an entry to an object without losing duplicates: two lists are joined, another value gets a
    distinct key that no schema has."""
    if key not in values:
        values[key] = value
        return
    first = values[key]
    if isinstance(first, list) and isinstance(value, list):
        values[key] = first if first == value else [*first, *value]
    elif first != value:
        values[f"a second {key}"] = value


def from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its entries in order, with duplicates kept."""
    values = dict(pairs)
    if len(values) < len(pairs):
        values = {}
        for key, value in pairs:
            add_merging(values, key, value)
    return values


class _Frame:
    """An open list or object, and the key of its next value."""

    __slots__ = ("comma", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key: str | None = None
        #: Whether a comma (or the end) must precede the next entry.
        self.comma = False

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        else:
            add_merging(self.value, self.key or "", value)
            self.key = None
        self.comma = True


class _Mistake(Exception):
    """An ambiguous place."""


class _Reader:
    """Single-pass parser without recursion, in linear time."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.open: list[_Frame] = []
        #: Whether the last token was a closing bracket, after which a comma is optional.
        self.bracket = False

    def read(self) -> PartialJson:
        try:
            for _ in range(MOST_TOKENS):
                self.at = self._skip()
                if self.at >= len(self.text):
                    return self._so_far(-1)
                value, done = self._step(self.text[self.at])
                if done:
                    return PartialJson(value, self.at)
        except _Mistake:
            pass
        return self._so_far(self.at)

    def _skip(self) -> int:
        match = _SPACE.match(self.text, self.at)
        return match.end() if match else self.at

    def _step(self, sign: str) -> tuple[Any, bool]:
        """Read one token; returns (value, True) once the outermost value is complete."""
        if sign in "{[":
            self._enter([] if sign == "[" else {})
            return None, False
        if not self.open:
            raise _Mistake
        if sign in "}]":
            return self._leave(sign)
        frame = self.open[-1]
        if sign == ",":
            if frame.key is not None:
                raise _Mistake
            frame.comma = False
            self.at += 1
        elif frame.comma and not self.bracket:
            raise _Mistake
        elif isinstance(frame.value, dict) and frame.key is None:
            frame.key, frame.comma = self._key(), False
        else:
            frame.add(self._scalar(sign))
        self.bracket = False
        return None, False

    def _enter(self, value: Any) -> None:
        if self.open:
            frame = self.open[-1]
            if frame.comma and not self.bracket:
                raise _Mistake
            if isinstance(frame.value, dict) and frame.key is None:
                raise _Mistake
        if len(self.open) >= MAX_DEPTH:
            raise _Mistake
        self.open.append(_Frame(value))
        self.bracket = False
        self.at += 1

    def _leave(self, sign: str) -> tuple[Any, bool]:
        frame = self.open[-1]
        if frame.key is not None or isinstance(frame.value, dict) != (sign == "}"):
            raise _Mistake
        self.open.pop()
        self.at += 1
        if not self.open:
            return frame.value, True
        self.open[-1].add(frame.value)
        self.bracket = True
        return None, False

    def _key(self) -> str:
        match = _STRING.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if match is None:
            raise _Mistake
        key = match[0] if match.re is _WORD else _inside(match)
        after = self.at
        self.at = match.end()
        self.at = self._skip()
        if self.text[self.at : self.at + 1] != ":":
            if self.at < len(self.text):
                self.at = after
            raise _Mistake
        self.at += 1
        return key

    def _scalar(self, sign: str) -> Any:
        if sign in "\"'":
            match = _STRING.match(self.text, self.at)
            if match is None:
                self.at = len(self.text)
                raise _Mistake
            self.at = match.end()
            return _inside(match)
        if match := _NUMBER.match(self.text, self.at):
            value = _number(match[0])
        elif (match := _WORD.match(self.text, self.at)) and match[0] in _LITERALS:
            value = _LITERALS[match[0]]
        else:
            raise _Mistake
        self.at = match.end()
        return value

    def _so_far(self, fault: int) -> PartialJson:
        if fault >= len(self.text):
            fault = -1
        if not self.open:
            return PartialJson(None, self.at, False, fault)
        root = self.open[0]
        opened = ""
        if isinstance(root.value, dict) and root.key is not None:
            opened = root.key
            if len(self.open) > 1 and isinstance(self.open[1].value, list):
                root.value[root.key] = self.open[1].value
                opened = root.key if len(self.open) > 2 else ""
        return PartialJson(root.value, self.at, False, fault, opened, len(self.open) >= MAX_DEPTH)


def _inside(match: re.Match[str]) -> str:
    return paired(unescaped(match[1] if match[1] is not None else match[2]))


def _number(text: str) -> Any:
    if len(text) <= LONGEST_NUMBER:
        try:
            return int(text)
        except ValueError:
            pass
    try:
        number = float(text)
    except ValueError:
        raise _Mistake from None
    return number if math.isfinite(number) else text  # which the shape that is wanted refuses


def read(text: str, start: int = 0) -> PartialJson:
    """Read the object or list that begins at `start`."""
    return _Reader(text, start).read()
