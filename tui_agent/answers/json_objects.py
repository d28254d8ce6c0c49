"""Finds the JSON object in an answer: alone, fenced, within prose, broken, or truncated."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from tui_agent.answers import lenient_json
from tui_agent.answers.examples import Fences
from tui_agent.files.lazy_regex import late

#: Maximum number of places tried as the beginning of an object.
MAX_TRIES = 10
#: Maximum length for repairs, which take over a second per million characters.
MAX_GUESSED = 200_000
#: Maximum number of unclosed brackets for repairs, which take quadratic time.
MAX_BRACKETS = 2_000

#: Decoders with and without literal line breaks and tabs in strings.
_LOOSE = json.JSONDecoder(strict=False, object_pairs_hook=lenient_json.from_pairs)
_STRICT = json.JSONDecoder(object_pairs_hook=lenient_json.from_pairs)
#: Length of a text decoded at once, and levels of a longer text decoded separately: lists, entries, edits.
_LONG = 200_000
_DEEP, _SHALLOW = 4, 2
#: Number of values above which fewer levels are decoded separately, and maximum number of values.
_MANY, MOST_VALUES = 50_000, 150_000
#: Maximum number of list entries read.
MOST_KEPT = 20_000
#: Characters of a list decoded together, and possible ends of the last value.
_SLICE = 50_000
_ENDS = ("]},", "},", ",")
_SPACE = late(r"[ \t\n\r]*+")
_TAIL = late(r"[\s\]})]*(?:`{3,}|~{3,})?[\s\]})]*")
#: Maximum length of a line that opens a fence.
_LONGEST_FENCE = 1_000
_FENCE_BEFORE = late(r"(?:\A|\n)[ \t]*(?:`{3,}|~{3,})[ \t]*[\w-]*\s*\Z")


class ReadObject(Struct, frozen=True):
    """The object found. `before` and `after` are the surrounding prose without the fence.

    `complete` is false if the object is truncated; `value` then has its complete entries, and `opened` is
    the key of the dropped element. `repaired` is a guess at the rest, never used for changes.
    """

    value: dict[str, Any]
    found: bool = False
    before: str = ""
    after: str = ""
    complete: bool = True
    opened: str = ""
    repaired: dict[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    #: Range of the object with its fence.
    begin: int = 0
    end: int = 0


def find(text: str, keys: Sequence[str]) -> ReadObject:
    """The first object in `text` that has one of `keys`."""
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
    return ReadObject({}, faults=("The answer holds no JSON object.",))


def read_at(text: str, start: int) -> ReadObject:
    """The object that begins at `start`, parsed strictly, then leniently."""
    head = text[:start].rstrip(" \t\r\n[")
    fence = _FENCE_BEFORE.search(head, max(0, len(head) - _LONGEST_FENCE))
    if fence is not None and Fences(head).holds(len(head) - 1):
        fence = None  # It closes another fence.
    begin = fence.start() if fence else len(head)
    before = head[:begin].strip(" \t\r\n[")
    try:
        value, end = _Decoder(text, _LOOSE).read(start)
    except (ValueError, RecursionError):
        return _broken(text, start, before, begin)
    end = _tail(text, end)
    return ReadObject(value, isinstance(value, dict), before, text[end:].strip(), begin=begin, end=end)


def value_at(text: str, at: int) -> tuple[Any, int]:
    """The value at an offset, and the offset after it. Raises ValueError or RecursionError."""
    return _Decoder(text, _LOOSE).read(at)


def decoded(text: str, strict: bool = False) -> Any:
    """The value of the whole text. Raises ValueError or RecursionError."""
    value, end = _Decoder(text, _STRICT if strict else _LOOSE).read(_blank(text, 0))
    if _blank(text, end) < len(text):
        raise ValueError("more than one value")
    return value


class _Decoder:
    """Decodes a long text in pieces, because one decoder call blocks other threads."""

    def __init__(self, text: str, json_decoder: json.JSONDecoder) -> None:
        self.text = text
        self.decoder = json_decoder
        self.values = 0

    def read(self, at: int, depth: int = 0) -> tuple[Any, int]:
        """The value at an offset, and the offset after it; `depth` is its nesting depth. Raises ValueError if
        it is invalid or has too many values."""
        text = self.text
        sign = text[at : at + 1]
        deepest = _DEEP if self.values < _MANY else _SHALLOW
        if depth == deepest or sign not in ("{", "[") or len(text) - at < _LONG:
            return self.decoder.raw_decode(text, at)
        with suppress(ValueError, RecursionError):  # Most values of a long text are short.
            value, length = self.decoder.raw_decode(text[at : at + _SLICE])
            return value, at + length
        result: Any = {} if sign == "{" else []
        end, at = "}" if sign == "{" else "]", _blank(text, at + 1)
        if text[at : at + 1] == end:
            return result, at + 1
        slicing = end == "]"
        while self.values < MOST_VALUES:
            if slicing:
                several, at = self._several(at)
                # Values beyond the limit are counted but dropped: large numbers of objects slow down garbage
                # collection.
                result += several if len(result) <= MOST_KEPT else [None] * len(several)
                slicing = bool(several)
                continue
            self.values += 1
            key = ""
            if end == "}":
                key, at = self.decoder.raw_decode(text, at)
                at = _blank(text, at)
                if not isinstance(key, str) or text[at : at + 1] != ":":
                    raise ValueError("no key")
                at = _blank(text, at + 1)
            value, at = self.read(at, depth + 1)
            if end == "}":
                lenient_json.add_merging(result, key, value)
            else:
                result.append(value)
            at = _blank(text, at)
            if text[at : at + 1] == end:
                return result, at + 1
            if text[at : at + 1] != ",":
                raise ValueError("no comma")
            at = _blank(text, at + 1)
        raise ValueError("too many values")

    def _several(self, at: int) -> tuple[list[Any], int]:
        """List values decoded together, and the offset of the next. None if no slice ends between two
        values."""
        for end in _ENDS:
            cut = self.text.rfind(end, at, at + _SLICE)
            if cut < 0:
                continue
            piece = f"[{self.text[at : cut + len(end) - 1]}]"
            try:
                values = self.decoder.decode(piece)
            except (ValueError, RecursionError):
                continue
            self.values += len(values)
            return values, _blank(self.text, cut + len(end))
        return [], at


def _blank(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _tail(text: str, end: int) -> int:
    tail = _TAIL.match(text, end)
    return tail.end() if tail else end


def _broken(text: str, start: int, before: str, begin: int) -> ReadObject:
    read = lenient_json.read(text, start)
    if not isinstance(read.value, dict):
        return ReadObject({}, before=before)
    if read.whole:
        end = _tail(text, read.end)
        return ReadObject(read.value, True, before, text[end:].strip(), begin=begin, end=end)
    faults: tuple[str, ...] = ()
    repaired: dict[str, Any] = {}
    if read.fault >= 0:
        line = text.count("\n", 0, read.fault) + 1
        faults = (f"The JSON is broken at line {line}, {_excerpt(text, read.fault)}: the rest is not read.",)
        repaired = {} if read.deep else _guess(text[start:])
    return ReadObject(
        read.value, True, before, "", False, read.opened, repaired, faults, begin=begin, end=len(text)
    )


def _excerpt(text: str, at: int) -> str:
    return repr(text[max(0, at - 15) : at + 15])


def _guess(text: str) -> dict[str, Any]:
    """A guess at the incomplete rest, for display only, never for changes."""
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
