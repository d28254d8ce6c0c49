"""JSON in answers: a lenient parser, and the search for the object: alone, fenced, in prose, broken, or
truncated.

Accepts unambiguous mistakes, and stops at any other. Accepted: line breaks and tabs
inside strings, comments, surplus commas, a missing comma after a closing bracket, single quotes, unquoted
keys, `True`, `False`, `None`, and unknown escapes. An unescaped quote inside a string is always
ambiguous.

jiter's partial mode is faster (0.4 ms for 80 kB instead of 15 ms), but reads one of sixteen test cases
and completes unfinished values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from tui_agent.answers.examples import Fences
from tui_agent.files.lazy_regex import LazyRegex, late
from tui_agent.files.numbers import LONGEST_NUMBER, based_number

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_PAIRS = re.compile("(?:[\ud800-\udbff][\udc00-\udfff])+")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_FEW = 20
_SLICE = 100_000
_NAMED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'",
    "\n": "\n",
}  # fmt: skip


def unescaped(raw: str) -> str:
    r"""Unknown escapes keep their backslash: models mean `\d` literally. Lone surrogates are kept: the other
    half may be in the next chunk."""
    if "\\" not in raw:
        return raw
    try:
        return json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return _ESCAPE.sub(
            lambda found: chr(based_number(found[1], 16)) if found[1] else _NAMED.get(found[2], found[0]), raw
        )


def has_half(text: str) -> bool:
    """Whether a lone surrogate makes the text invalid in UTF-8."""
    return not text.isascii() and _HALF.search(text) is not None


def paired(text: str) -> str:
    return _PAIRS.sub(lambda found: _one(found[0]), text) if has_half(text) else text


def _one(pairs: str) -> str:
    return pairs.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def joined(text: str) -> str:
    """Lone surrogates become U+FFFD."""
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
    for alike, new in ((_PAIR, _one), (_HALF, lambda _: "\ufffd")):
        at = 0
        for _ in range(_FEW):
            if (found := alike.search(text, at)) is None:
                break
            text, at = text.replace(found[0], new(found[0])), found.start() + 1
        else:
            return _one(_LONE.sub("\ufffd", text))
    return text


def past(pattern: re.Pattern[str] | LazyRegex, text: str, at: int) -> int:
    """Returns the offset after a match at `at`, or `at`."""
    match = pattern.match(text, at)
    return match.end() if match else at


MAX_DEPTH = 64
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
    `fault` is the offset of the first ambiguous mistake, or -1. `whole` is false if the text or its
    readable part ends before the value. `opened` is the key of a dropped element. `deep`: nested too
    deeply.
    """

    value: Any
    end: int
    whole: bool = True
    fault: int = -1
    opened: str = ""
    deep: bool = False


def add_merging(values: dict[str, Any], key: str, value: Any) -> None:
    """Keeps duplicates: joins two lists, gives another value a key that no schema has."""
    if key not in values:
        values[key] = value
        return
    first = values[key]
    if isinstance(first, list) and isinstance(value, list):
        values[key] = first if first == value else [*first, *value]
    elif first != value:
        values[f"a second {key}"] = value


def from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        values = {}
        for key, value in pairs:
            add_merging(values, key, value)
    return values


class _Frame:
    __slots__ = ("comma", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key: str | None = None
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
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.open: list[_Frame] = []
        self.bracket = False

    def read(self) -> PartialJson:
        try:
            for _ in range(MOST_TOKENS):
                self.at = past(_SPACE, self.text, self.at)
                if self.at >= len(self.text):
                    return self._so_far(-1)
                sign = self.text[self.at]
                frame = self.open[-1] if self.open else None
                if sign in "{[":
                    if len(self.open) >= MAX_DEPTH:
                        raise _Mistake
                    if frame is not None and frame.comma and not self.bracket:
                        raise _Mistake
                    if frame is not None and isinstance(frame.value, dict) and frame.key is None:
                        raise _Mistake
                    self.open.append(_Frame([] if sign == "[" else {}))
                    self.at += 1
                elif frame is None:
                    raise _Mistake
                elif sign in "}]":
                    if frame.key is not None or isinstance(frame.value, dict) != (sign == "}"):
                        raise _Mistake
                    self.open.pop()
                    self.at += 1
                    if not self.open:
                        return PartialJson(frame.value, self.at)
                    self.open[-1].add(frame.value)
                elif sign == ",":
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
                self.bracket = sign in "}]"
        except _Mistake:
            pass
        return self._so_far(self.at)

    def _key(self) -> str:
        match = _STRING.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if match is None:
            raise _Mistake
        key = match[0] if match.re is _WORD else _inside(match)
        after = self.at
        self.at = past(_SPACE, self.text, match.end())
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
    return number if math.isfinite(number) else text


def read(text: str, start: int = 0) -> PartialJson:
    return _Reader(text, start).read()


MAX_TRIES = 10
#: Repairs take over a second per million characters.
MAX_GUESSED = 200_000
#: Repairs take quadratic time.
MAX_BRACKETS = 2_000

#: With and without literal line breaks and tabs in strings.
_LOOSE = json.JSONDecoder(strict=False, object_pairs_hook=from_pairs)
_STRICT = json.JSONDecoder(object_pairs_hook=from_pairs)
#: Longer texts are decoded in parts, by the levels of a reply: lists, entries, edits.
_LONG = 200_000
_DEEP, _SHALLOW = 4, 2
#: Number of values from which fewer levels are decoded separately, and maximum number.
_MANY, MOST_VALUES = 50_000, 150_000
MOST_KEPT = 20_000
#: Characters of a list decoded together; number of possible ends tried.
_WINDOW = 50_000
_ENDS = ("]},", "},", ",")
_BLANK = late(r"[ \t\n\r]*+")
_TAIL = late(r"[\s\]})]*(?:`{3,}|~{3,})?[\s\]})]*")
_LONGEST_FENCE = 1_000
_FENCE_BEFORE = late(r"(?:\A|\n)[ \t]*(?:`{3,}|~{3,})[ \t]*[\w-]*\s*\Z")


class ReadObject(Struct, frozen=True):
    """`before` and `after` are the surrounding prose. `complete` is false if the object is truncated:
    `value` then has its complete entries, and `opened` is the dropped element's key. `repaired` is a
    guess, never used for changes.
    """

    value: dict[str, Any]
    found: bool = False
    before: str = ""
    after: str = ""
    complete: bool = True
    opened: str = ""
    repaired: dict[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    begin: int = 0
    end: int = 0


def find_object(text: str, keys: Sequence[str]) -> ReadObject:
    tried = 0
    for match in re.finditer(r"\{", text):
        start = match.start()
        head = text[start + 1 : start + 80].lstrip()[:40]
        if head.lstrip("\"'").startswith(tuple(keys)) or (
            start < 64 and not text[:start].strip(" \t\r\n`~[jsonJSON")
        ):
            read = read_at(text, start)
            tried += 1
            if read.found and any(key in read.value for key in keys):
                return read
        if tried == MAX_TRIES:
            break
    return ReadObject({}, faults=("The answer contains no JSON object.",))


def read_at(text: str, start: int) -> ReadObject:
    """Parses strictly, then leniently."""
    head = text[:start].rstrip(" \t\r\n[")
    fence = _FENCE_BEFORE.search(head, max(0, len(head) - _LONGEST_FENCE))
    if fence is not None and Fences(head).holds(len(head) - 1):
        fence = None
    begin = fence.start() if fence else len(head)
    before = head[:begin].strip(" \t\r\n[")
    try:
        value, end = _Decoder(text, _LOOSE).read(start)
    except (ValueError, RecursionError):
        result = read(text, start)
    else:
        end = past(_TAIL, text, end)
        return ReadObject(value, isinstance(value, dict), before, text[end:].strip(), begin=begin, end=end)
    if not isinstance(result.value, dict):
        return ReadObject({}, before=before)
    if result.whole:
        end = past(_TAIL, text, result.end)
        return ReadObject(result.value, True, before, text[end:].strip(), begin=begin, end=end)
    faults: tuple[str, ...] = ()
    repaired: dict[str, Any] = {}
    if result.fault >= 0:
        line = text.count("\n", 0, result.fault) + 1
        at = result.fault
        excerpt = repr(text[max(0, at - 15) : at + 15])
        faults = (f"The JSON is broken at line {line}, {excerpt}: the rest is ignored.",)
        repaired = {} if result.deep else _guess(text[start:])
    return ReadObject(
        result.value, True, before, "", False, result.opened, repaired, faults, begin=begin, end=len(text)
    )


def value_at(text: str, at: int) -> tuple[Any, int]:
    """Returns a value and the offset after it. Raises ValueError or RecursionError."""
    return _Decoder(text, _LOOSE).read(at)


def decoded(text: str, strict: bool = False) -> Any:
    """Raises ValueError or RecursionError."""
    value, end = _Decoder(text, _STRICT if strict else _LOOSE).read(past(_BLANK, text, 0))
    if past(_BLANK, text, end) < len(text):
        raise ValueError("more than one value")
    return value


class _Decoder:
    """Works in pieces, because one decoder call blocks other threads."""

    def __init__(self, text: str, json_decoder: json.JSONDecoder) -> None:
        self.text = text
        self.decoder = json_decoder
        self.values = 0

    def read(self, at: int, depth: int = 0) -> tuple[Any, int]:
        """Like `value_at`. Raises ValueError if invalid or if there are too many values."""
        text = self.text
        sign = text[at : at + 1]
        deepest = _DEEP if self.values < _MANY else _SHALLOW
        if depth == deepest or sign not in ("{", "[") or len(text) - at < _LONG:
            return self.decoder.raw_decode(text, at)
        with suppress(ValueError, RecursionError):  # most values of a long text are short
            value, length = self.decoder.raw_decode(text[at : at + _WINDOW])
            return value, at + length
        result: Any = {} if sign == "{" else []
        end, at = "}" if sign == "{" else "]", past(_BLANK, text, at + 1)
        if text[at : at + 1] == end:
            return result, at + 1
        slicing = end == "]"
        while self.values < MOST_VALUES:
            if slicing:
                several, at = self._several(at)
                # Counted but dropped: many objects slow down garbage collection.
                result += several if len(result) <= MOST_KEPT else [None] * len(several)
                slicing = bool(several)
                continue
            self.values += 1
            key = ""
            if end == "}":
                key, at = self.decoder.raw_decode(text, at)
                at = past(_BLANK, text, at)
                if not isinstance(key, str) or text[at : at + 1] != ":":
                    raise ValueError("no key")
                at = past(_BLANK, text, at + 1)
            value, at = self.read(at, depth + 1)
            if end == "}":
                add_merging(result, key, value)
            else:
                result.append(value)
            at = past(_BLANK, text, at)
            if text[at : at + 1] == end:
                return result, at + 1
            if text[at : at + 1] != ",":
                raise ValueError("no comma")
            at = past(_BLANK, text, at + 1)
        raise ValueError("too many values")

    def _several(self, at: int) -> tuple[list[Any], int]:
        for end in _ENDS:
            cut = self.text.rfind(end, at, at + _WINDOW)
            if cut < 0:
                continue
            piece = f"[{self.text[at : cut + len(end) - 1]}]"
            try:
                values = self.decoder.decode(piece)
            except (ValueError, RecursionError):
                continue
            self.values += len(values)
            return values, past(_BLANK, self.text, cut + len(end))
        return [], at


def _guess(text: str) -> dict[str, Any]:
    if len(text) > MAX_GUESSED or text.count("{") + text.count("[") > MAX_BRACKETS:
        return {}
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError):
        return {}
    if isinstance(value, list):
        value = next((entry for entry in value if isinstance(entry, dict)), {})
    return value if isinstance(value, dict) else {}
