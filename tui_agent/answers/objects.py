"""The JSON object in an answer: alone, in a fence, within prose, broken, or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from tui_agent.answers import lenient

#: How many places of a text are tried for the beginning of an object.
MAX_TRIES = 10
#: Guessing takes a second for each million characters, or more.
MAX_GUESSED = 200_000
#: Guessing takes time by the square of the brackets that are never closed.
MAX_BRACKETS = 2_000

_TAIL = re.compile(r"[\s\]})]*(?:`{3,}|~{3,})?[\s\]})]*")
_FENCE_BEFORE = re.compile(r"(?:\A|\n)[ \t]*(?:`{3,}|~{3,})[ \t]*[\w-]*\s*\Z")


class ReadObject(Struct, frozen=True):
    """What was found. `before` and `after` are the prose around it, without the fence.

    `complete` is false where the object did not end; then `value` holds its complete entries and elements, and
    `opened` is the key of the element that was dropped. `repaired` holds a guess at the rest: never changes.
    """

    value: dict[str, Any]
    found: bool = False
    before: str = ""
    after: str = ""
    complete: bool = True
    opened: str = ""
    repaired: dict[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def find(text: str, keys: Sequence[str]) -> ReadObject:
    """The first object in `text` that has one of `keys`."""
    tried = 0
    for match in re.finditer(r"\{", text):
        start = match.start()
        if _opens(text, start, keys) or (start < 64 and not text[:start].strip(" \t\r\n`~[jsonJSON")):
            read = read_at(text, start)
            tried += 1
            if read.found and any(key in read.value for key in keys):
                return read
        if tried == MAX_TRIES:
            break
    return ReadObject({}, faults=("The answer holds no JSON object.",))


def _opens(text: str, start: int, keys: Sequence[str]) -> bool:
    head = text[start + 1 : start + 80].lstrip()[:40]
    return head.lstrip("\"'").startswith(tuple(keys))


def read_at(text: str, start: int) -> ReadObject:
    """The object that begins at `start`, strictly first, then with the mistakes that are certain."""
    before = _FENCE_BEFORE.sub("", text[:start]).strip(" \t\r\n[")
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return _broken(text, start, before)
    return ReadObject(value, isinstance(value, dict), before, _rest(text, end))


def _rest(text: str, end: int) -> str:
    tail = _TAIL.match(text, end)
    return text[tail.end() if tail else end :].strip()


def _broken(text: str, start: int, before: str) -> ReadObject:
    read = lenient.read(text, start)
    if not isinstance(read.value, dict):
        return ReadObject({}, before=before)
    if read.whole:
        return ReadObject(read.value, True, before, _rest(text, read.end))
    faults: tuple[str, ...] = ()
    repaired: dict[str, Any] = {}
    if read.fault >= 0:
        line = text.count("\n", 0, read.fault) + 1
        faults = (
            f"The JSON is broken at line {line}, {_excerpt(text, read.fault)}: what stands there is not read.",
        )
        repaired = {} if read.deep else _guess(text[start:])
    return ReadObject(read.value, True, before, "", False, read.opened, repaired, faults)


def _excerpt(text: str, at: int) -> str:
    return repr(text[max(0, at - 15) : at + 15])


def _guess(text: str) -> dict[str, Any]:
    """The rest as far as it can be guessed; it is used for words that are shown, never for a change."""
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
