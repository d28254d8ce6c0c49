"""Vim's motions and text objects on a text and an offset."""

from __future__ import annotations

import re
from itertools import islice
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from textual.app import App


class Register(NamedTuple):
    text: str = ""
    lines: bool = False


class Registers:
    _by_app: ClassVar[WeakKeyDictionary[App[object], Registers]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._by_name: dict[str, Register] = {}

    @classmethod
    def of(cls, app: App[object]) -> Registers:
        return cls._by_app.setdefault(app, cls())

    def read(self, name: str, app: App[object]) -> Register:
        if name in ("+", "*"):
            return Register(app.clipboard, app.clipboard.endswith("\n"))
        return self._by_name.get(name.lower() or '"', Register())

    def write(self, name: str, register: Register, app: App[object], *, copied: bool) -> None:
        if name == "_":
            return
        if name in ("+", "*"):
            app.copy_to_clipboard(register.text + "\n" * register.lines)
        elif name.isupper():
            before = self._by_name.get(name.lower(), Register())
            between = "\n" if before.text and (before.lines or register.lines) else ""
            register = Register(before.text + between + register.text, before.lines or register.lines)
        if name:
            self._by_name[name.lower()] = register
        elif copied:
            self._by_name["0"] = register
        self._by_name['"'] = register


_MOST = 1_000


class Places:
    """Marks do not move with the text."""

    def __init__(self) -> None:
        self._search = ""
        self._backward = self._whole = False
        self._marks: dict[str, tuple[int, int]] = {}

    def target(self, command: str, count: int, text: str, at: int) -> int | None:
        """Offset of a search (`/text`, `?text`, n, N, *, #) or mark; `None` for other commands. Raises
        `LookupError` with a sentence.
        """
        sign, rest = command[0], command[1:]
        match sign:
            case "/" | "?":
                self._search, self._backward, self._whole = rest or self._search, sign == "?", False
                return self._found(text, at, count, self._backward)
            case "n" | "N" if not rest:
                return self._found(text, at, count, self._backward != (sign == "N"))
            case "*" | "#" if not rest:
                words = re.compile(r"\w+").finditer(text, *line_at(text, at))
                word = next((word for word in words if word.end() > at), None)
                if word is None:
                    raise LookupError("There is no word here")
                self._search, self._backward, self._whole = word[0], sign == "#", True
                return self._found(text, word.start(), count, self._backward)
            case "m" if rest:
                line = text.rfind("\n", 0, at) + 1
                self._marks[rest] = text.count("\n", 0, line), at - line
                return at
            case "`" | "'" if rest not in ("", *self._marks):
                raise LookupError(f"There is no mark {rest}")
            case "`" | "'" if rest:
                row, column = self._marks[rest]
                lines = text.split("\n")
                row = min(row, len(lines) - 1)
                start = sum(len(line) + 1 for line in lines[:row])
                return start + min(column, len(lines[row])) if sign == "`" else indent_of(text, start)
        return None

    def _found(self, text: str, at: int, count: int, backward: bool) -> int:
        """Wraps around at the text's ends."""
        edge = r"\b" if self._whole else ""
        found = re.finditer(f"{edge}{re.escape(self._search)}{edge}", text) if self._search else ()
        places = [place.start() for place in found]
        if not places:
            raise LookupError(
                f"Not found: {self._search[:40]}" if self._search else "No search yet: press / first"
            )
        for _ in range(min(count, _MOST)):
            if backward:
                at = next((place for place in reversed(places) if place < at), places[-1])
            else:
                at = next((place for place in places if place > at), places[0])
        return at


#: An empty line is also a word.
_WORD = re.compile(r"\w+|[^\w\s]+|^$", re.MULTILINE)
_BIG_WORD = re.compile(r"\S+|^$", re.MULTILINE)
#: Words and blanks of `iw` and `iW`.
_PIECE = re.compile(r"\w+|[^\S\n]+|[^\w\s]+")
_BIG_PIECE = re.compile(r"[^\S\n]+|\S+")
#: Characters read first by a backward search.
_READ_BACK = 2_000
#: Maximum characters to a bracket.
_SEARCHED = 200_000
_BRACKETS = {sign: pair for pair in ("()", "[]", "{}", "<>") for sign in pair} | {"b": "()", "B": "{}"}
_QUOTES = "\"'`"
_PARTNERS = {sign: pair for sign, pair in _BRACKETS.items() if sign in "()[]{}"}
#: Motions whose last character belongs to an operator's range.
_INCLUSIVE = frozenset("eEftg%")


class TextRange(NamedTuple):
    """Offsets, the end excluded. `lines`: whole lines."""

    start: int
    end: int
    lines: bool = False


def line_at(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def indent_of(text: str, start: int) -> int:
    while text[start : start + 1] in (" ", "\t"):
        start += 1
    return start


def moved(text: str, at: int, motion: str, count: int, operated: bool = False) -> int | None:
    """With `operated`, `l`, `w` and `$` may reach the end of the line or text."""
    start, end = line_at(text, at)
    last = end if operated else max(start, end - 1)
    match motion:
        case "h":
            return max(start, at - count)
        case "l":
            return min(last, at + count)
        case "0":
            return start
        case "^":
            return min(indent_of(text, start), last)
        case "$":
            for _ in range(count - 1):
                end = line_at(text, min(end + 1, len(text)))[1]
                if end == len(text):
                    break
            return end if operated else max(line_at(text, end)[0], end - 1)
        case "w" | "W":
            words = (_BIG_WORD if motion == "W" else _WORD).finditer(text, at)
            starts = (word.start() for word in words if word.start() > at)
            found = next(islice(starts, count - 1, None), len(text))
            return found if operated else min(found, max(0, len(text) - 1))
        case "e" | "E":
            return word_end(text, at, motion == "E", count)
        case "b" | "B":
            return _word_before(text, at, motion == "B", count, ends=False)
        case "ge" | "gE":
            return _word_before(text, at, motion == "gE", count, ends=True)
        case "{" | "}":
            return _paragraph(text, at, count, forward=motion == "}")
        case "%":
            here = next(
                (place for place in range(at, min(end, at + _SEARCHED)) if text[place] in _PARTNERS), None
            )
            if here is None:
                return None
            pair = _PARTNERS[text[here]]
            if text[here] == pair[0]:
                return _closing(text, here, pair)
            return _balanced(text, range(here, max(-1, here - _SEARCHED), -1), pair[1], pair[0])
    if len(motion) == 2 and motion[0] in "fFtT":
        return _found(text, at, motion, count)
    return None


def range_of(text: str, at: int, motion: str, count: int, changed: bool) -> TextRange | None:
    """With `changed`, `w` ends with the word (`cw`)."""
    if changed and motion in ("w", "W") and at < len(text) and not text[at].isspace():
        return TextRange(at, word_end(text, at - 1, motion == "W", count) + 1)
    target = moved(text, at, motion, count, operated=True)
    if target is None:
        return None
    if motion in ("w", "W"):  # the last word of a line excludes the line ending
        words = len(text[at:target].rstrip()) + at
        ending = text.find("\n", words, target)
        target = ending if ending >= 0 else target
    first, last = sorted((at, target))
    if motion[0] in _INCLUSIVE:
        return TextRange(first, min(last + (target >= at or motion[0] in "g%"), len(text)))
    if last > first and text[last - 1] == "\n" and motion not in ("w", "W"):
        # Vim's `exclusive`: the range ends with the line above, and has whole lines if only spaces are before it.
        start = line_at(text, first)[0]
        whole = not text[start:first].strip()
        return TextRange(start if whole else first, last - 1, lines=whole)
    return TextRange(first, min(last, len(text)))


def word_end(text: str, at: int, big: bool, count: int) -> int:
    ends = (
        found.end() - 1
        for found in (_BIG_WORD if big else _WORD).finditer(text, max(at, 0))
        if found.end() > found.start()
    )
    return next(islice((end for end in ends if end > at), count - 1, None), max(0, len(text) - 1))


def _word_before(text: str, at: int, big: bool, count: int, *, ends: bool) -> int:
    back, kind = _READ_BACK, _BIG_WORD if big else _WORD
    while True:
        first = max(0, at - back)
        words = list(kind.finditer(text, first, min(at + 1, len(text))))
        if ends:
            places = [max(word.start(), word.end() - 1) for word in words]
            rests = [(place, kind.match(text, place)) for place in places if place < at]
            places = [place for place, rest in rests if rest is None or rest.end() <= place + 1]
        else:
            places = [word.start() for word in words if word.start() < at]
        if len(places) > count or (first == 0 and len(places) == count):
            return places[-count]
        if first == 0:
            return 0
        back *= 4


def _paragraph(text: str, at: int, count: int, *, forward: bool) -> int:
    """The empty line after a paragraph, or the end of the text."""
    for _ in range(count):
        start, end = line_at(text, at)
        if forward:
            while start == end < len(text):
                start, end = line_at(text, end + 1)
            found = text.find("\n\n", end)
            at = len(text) if found < 0 else found + 1
        else:
            while start == end and start > 0:
                start, end = line_at(text, start - 1)
            found = text.rfind("\n\n", 0, start)
            at = 0 if found < 0 else found + 1
        if at in (0, len(text)):
            break
    return at


def _closing(text: str, opening: int, pair: str) -> int | None:
    return _balanced(text, range(opening, min(len(text), opening + _SEARCHED)), pair[0], pair[1])


def _balanced(text: str, places: range, deeper: str, sought: str, depth: int = 0) -> int | None:
    for place in places:
        sign = text[place : place + 1]
        depth += (sign == deeper) - (sign == sought)
        if depth == 0:
            return place
    return None


def _found(text: str, at: int, motion: str, count: int) -> int | None:
    start, end = line_at(text, at)
    sign, forward, place = motion[1], motion[0] in "ft", at
    for _ in range(count):
        place = text.find(sign, place + 1, end) if forward else text.rfind(sign, start, place)
        if place < 0:
            return None
    return place + {"t": -1, "T": 1}.get(motion[0], 0)


def text_object(text: str, at: int, kind: str, count: int = 1, *, around: bool) -> TextRange | None:
    """`count` words, paragraphs or levels of brackets, or a quoted text; `around` includes limits and spaces."""
    if kind in "wW":
        return _word_object(text, at, kind == "W", count, around=around)
    if kind == "p":
        return _paragraph_object(text, at, count, around=around)
    if kind in _QUOTES:
        return _quoted(text, at, kind, around=around)
    if (pair := _BRACKETS.get(kind)) is None:
        return None
    here = text[at : at + 1]
    opening = at if here == pair[0] else _enclosing(text, at - (here == pair[1]), pair)
    if opening is None:  # the next pair, as in Vim 9
        following = text.find(pair[0], at, at + _SEARCHED)
        opening = following if following >= 0 else None
    for _ in range(1, count):
        opening = None if opening is None else _enclosing(text, opening - 1, pair)
        if opening is None:
            return None
    closing = None if opening is None else _closing(text, opening, pair)
    if opening is None or closing is None:
        return None
    return TextRange(opening, closing + 1) if around else TextRange(opening + 1, closing)


def _enclosing(text: str, at: int, pair: str) -> int | None:
    return _balanced(text, range(at, max(-1, at - _SEARCHED), -1), pair[1], pair[0], depth=1)


def _word_object(text: str, at: int, big: bool, count: int, *, around: bool) -> TextRange | None:
    """Words and the spaces between them count alike without `around`; with it, spaces belong to a word."""
    start, end = line_at(text, at)
    pieces, before = (_BIG_PIECE if big else _PIECE).finditer(text, start, end), None
    for found in pieces:
        if found.end() > at:
            break
        before = found
    else:
        return None
    if not around:
        return TextRange(found.start(), [found, *islice(pieces, count - 1)][-1].end())
    first, last, words = found.start(), found.end(), int(not found[0].isspace())
    for piece in pieces:
        if words == count and (found[0].isspace() or not piece[0].isspace()):
            break
        words += not piece[0].isspace()
        last = piece.end()
        if words == count and piece[0].isspace():
            break
    if not found[0].isspace() and not text[last - 1].isspace() and before and before[0].isspace():
        first = before.start() if before.start() > start else first  # not the indentation
    return TextRange(first, last)


def _paragraph_object(text: str, at: int, count: int, *, around: bool) -> TextRange:
    start, end = line_at(text, at)

    def is_empty(place: int) -> bool:
        first, last = line_at(text, place)
        return first == last

    def skip(kind: bool) -> None:
        nonlocal end
        while end < len(text) and is_empty(end + 1) == kind:
            end = line_at(text, end + 1)[1]

    empty = is_empty(at)
    while start > 0 and is_empty(start - 1) == empty:
        start = line_at(text, start - 1)[0]
    skip(empty)
    for part in range(1, count * 2 if around else count):
        before = end
        skip(empty if part % 2 == 0 else not empty)
    if around and not empty and before == end:
        while start > 0 and is_empty(start - 1):
            start = line_at(text, start - 1)[0]
    return TextRange(start, end, lines=True)


def _quoted(text: str, at: int, quote: str, *, around: bool) -> TextRange | None:
    start, end = line_at(text, at)
    places = [place for place in range(start, min(end, start + _SEARCHED)) if text[place] == quote]
    for left, right in zip(places[::2], places[1::2], strict=False):
        if right < at:
            continue
        if not around:
            return TextRange(left + 1, right)
        after = right + 1
        while after < end and text[after] in " \t":
            after += 1
        while after == right + 1 and left > start and text[left - 1] in " \t":
            left -= 1
        return TextRange(left, after)
    return None
