"""Vim keys for a text area: modes, counts, motions, operators and some text objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from tui_agent.files.numbers import whole_number

Mode = Literal["insert", "normal", "visual"]
#: A word of `w`, `b` and `e`: a run of word characters or of punctuation.
_WORD = re.compile(r"\w+|[^\w\s]+")
#: Maximum count of a command.
_MOST_TIMES = 100_000
_OPERATORS = frozenset("dcy")
#: Commands with a character as argument.
_PREFIXES = frozenset("grfFtT")
_PAIRS = {
    "(": "()",
    ")": "()",
    "b": "()",
    "[": "[]",
    "]": "[]",
    "{": "{}",
    "}": "{}",
    '"': '""',
    "'": "''",
    "`": "``",
}


class TextRange(NamedTuple):
    """Range of an operator: offsets, the end excluded. `lines` is set for whole lines."""

    start: int
    end: int
    lines: bool = False


class Vim:
    """Vim state of one text area."""

    def __init__(self, area: TextArea, on_mode: Callable[[Mode], object]) -> None:
        self._area = area
        self._on_mode = on_mode
        self.mode: Mode = "insert"
        self._typed = ""
        self._anchor = 0
        #: Last deleted or copied text, and whether it consists of whole lines.
        self._register = ("", False)

    def enter(self, mode: Mode) -> None:
        if mode == "normal" and self.mode == "insert":
            start = self._text.rfind("\n", 0, self._at) + 1
            self._go(max(start, self._at - 1))
        self.mode, self._typed = mode, ""
        self._anchor = self._at
        self._on_mode(mode)

    def take(self, event: events.Key) -> bool:
        """Handles a key. Returns False if the key has no meaning in this mode; insert mode handles only
        Esc."""
        if self.mode == "insert":
            if event.key == "escape":
                self.enter("normal")
            return event.key == "escape"
        if event.key == "escape":
            waited = bool(self._typed) or self.mode == "visual"
            if waited:
                self.enter("normal")
            return waited
        if event.key == "ctrl+r":
            self._area.redo()
            return True
        letter = event.character or ""
        if not event.is_printable or letter == " ":
            return False
        self._typed += letter
        if self._run(self._typed):
            self._typed = ""
        if self.mode == "visual":
            self._select()
        return True

    # ── the text as one string ───────────────────────────────────────────────────────────────────────────

    @property
    def _text(self) -> str:
        return "\n".join(self._area.document.lines)

    @property
    def _at(self) -> int:
        row, column = self._area.cursor_location
        return sum(len(line) + 1 for line in self._area.document.lines[:row]) + column

    def _place(self, at: int) -> Location:
        before = self._text[:at]
        return before.count("\n"), len(before) - before.rfind("\n") - 1

    def _go(self, at: int) -> None:
        self._area.move_cursor(self._place(max(0, min(at, len(self._text)))))

    def _replace(self, start: int, end: int, text: str) -> None:
        """Replaces a range in one undo step and puts the cursor at its start."""
        ending = self._area.document.newline
        self._area.replace(text.replace("\n", ending), self._place(start), self._place(end))
        self._go(start)

    def _select(self) -> None:
        first, last = sorted((self._anchor, self._at))
        at = self._place(self._at)
        area = self._area
        if self._at >= self._anchor:
            area.selection = type(area.selection)(self._place(first), at)
        else:
            area.selection = type(area.selection)(self._place(last + 1), at)

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────

    def _run(self, typed: str) -> bool:
        """Runs the typed command. Returns False if it is incomplete."""
        found = re.fullmatch(r"([1-9]\d*)?([dcy])?([1-9]\d*)?(.*)", typed, re.DOTALL)
        assert found is not None
        first, operator, second, rest = found.groups()
        count = min(_MOST_TIMES, whole_number(first, 1) * whole_number(second, 1))
        if operator and self.mode == "visual":
            first_place, last_place = sorted((self._anchor, self._at))
            self._operate(operator, TextRange(first_place, min(last_place + 1, len(self._text))))
            return True
        if not rest or (len(rest) == 1 and rest in _PREFIXES) or (operator and rest in ("i", "a")):
            return False
        if self.mode == "visual":
            return self._in_visual(rest, count)
        if operator:
            if (span := self._span(operator, rest, count)) is not None:
                self._operate(operator, span)
            return True
        if (target := self._moved(rest, count, bool(first or second))) is not None:
            self._go(target)
            return True
        return self._command(rest, count)

    def _in_visual(self, rest: str, count: int) -> bool:
        if (target := self._moved(rest, count, False)) is not None:
            self._area.move_cursor(self._place(target))
        elif rest == "x":
            return self._run("d")
        elif rest == "v":
            self.enter("normal")
        return True

    def _command(self, rest: str, count: int) -> bool:
        text, at = self._text, self._at
        start, end = _line(text, at)
        match rest:
            case "i":
                self.enter("insert")
            case "a":
                self._go(min(at + 1, end))
                self.enter("insert")
            case "I":
                self._go(start + _indent(text[start:end]))
                self.enter("insert")
            case "A":
                self._go(end)
                self.enter("insert")
            case "o" | "O":
                self._replace(*((end, end) if rest == "o" else (start, start)), "\n")
                self._go(end + 1 if rest == "o" else start)
                self.enter("insert")
            case "v":
                self.enter("visual")
            case "x":
                self._operate("d", TextRange(at, min(at + count, end)))
            case "X":
                self._operate("d", TextRange(max(at - count, start), at))
            case "D" | "C":
                self._operate(rest.lower(), TextRange(at, end))
            case "s":
                self._operate("c", TextRange(at, min(at + count, end)))
            case "S":
                self._operate("c", TextRange(start, end, lines=True))
            case "Y":
                self._operate("y", TextRange(start, end, lines=True))
            case "p" | "P":
                self._put(after=rest == "p", count=count)
            case "u":
                for _ in range(count):
                    self._area.undo()
            case "J":
                if end < len(text):
                    self._replace(end, end + 1 + _indent(text[end + 1 :]), " ")
            case "~":
                self._replace(at, min(at + count, end), text[at : min(at + count, end)].swapcase())
                self._go(min(at + count, end))
            case _ if rest[0] == "r":
                if at < end:
                    self._replace(at, at + 1, rest[1])
        return True

    def _operate(self, operator: str, span: TextRange) -> None:
        text = self._text
        self._register = (text[span.start : span.end], span.lines)
        if operator == "y":
            self._go(min(span.start, self._at))
        else:
            start, end = span.start, span.end
            if (
                span.lines and operator == "d"
            ):  # includes the line ending after it, or before it for the last line
                start, end = (start, end + 1) if end < len(text) else (max(start - 1, 0), end)
            self._replace(start, end, "")
            if span.lines and operator == "d":
                self._go(_line(self._text, min(start + (start < span.start), len(self._text)))[0])
        if operator == "c":
            self.enter("insert")
        elif self.mode == "visual":
            self.enter("normal")

    def _put(self, *, after: bool, count: int) -> None:
        words, lines = self._register
        start, end = _line(self._text, self._at)
        if lines and after:
            self._replace(end, end, f"\n{words}" * count)
            self._go(end + 1)
        elif lines:
            self._replace(start, start, f"{words}\n" * count)
        elif words:
            at = min(self._at + after, end)
            self._replace(at, at, words * count)
            self._go(at + len(words) * count - 1)

    # ── motions ──────────────────────────────────────────────────────────────────────────────────────────

    def _span(self, operator: str, rest: str, count: int) -> TextRange | None:
        """Returns the range of `d`, `c` or `y`, or `None` for an invalid motion."""
        text, at = self._text, self._at
        if rest == operator or rest in "jk":
            row, rows = self._area.cursor_location[0], len(self._area.document.lines)
            first, last = row, row + count - (rest == operator)
            if rest == "k":
                first, last = row - count, row
            if not 0 <= first <= last < rows and rest != operator:
                return None
            place = [self._offset(max(first, 0)), self._offset(min(last, rows - 1))]
            return TextRange(place[0], _line(text, place[1])[1], lines=True)
        if rest[0] in "ia" and len(rest) == 2:
            return _object(text, at, rest[1], around=rest[0] == "a")
        if operator == "c" and rest == "w" and at < len(text) and not text[at].isspace():
            rest = "e"
        if (target := self._moved(rest, count, True)) is None:
            return None
        if rest == "w":  # stops at the end of the line
            target = max(at, min(target, _line(text, at)[1])) if count == 1 else target
        first, last = sorted((at, target))
        return TextRange(first, min(last + (rest[0] in "eft$" and rest != "$" and target >= at), len(text)))

    def _offset(self, row: int) -> int:
        return sum(len(line) + 1 for line in self._area.document.lines[:row])

    def _moved(self, rest: str, count: int, counted: bool) -> int | None:
        """Returns the target offset of a motion, or `None` if `rest` is not a motion."""
        text, at = self._text, self._at
        start, end = _line(text, at)
        rows = self._area.document.lines
        row = self._area.cursor_location[0]
        match rest:
            case "h":
                return max(start, at - count)
            case "l":
                return min(end, at + count)
            case "0":
                return start
            case "^":
                return start + _indent(text[start:end])
            case "$":
                return end
            case "j" | "k":
                to = min(max(row + (count if rest == "j" else -count), 0), len(rows) - 1)
                return self._offset(to) + min(at - start, len(rows[to]))
            case "G" | "gg":
                to = min(count - 1, len(rows) - 1) if counted or rest == "gg" else len(rows) - 1
                return self._offset(to)
            case "w":
                return _nth(
                    [word.start() for word in _WORD.finditer(text) if word.start() > at], count, len(text)
                )
            case "e":
                return _nth(
                    [word.end() - 1 for word in _WORD.finditer(text) if word.end() - 1 > at], count, len(text)
                )
            case "b":
                return _nth(
                    [word.start() for word in _WORD.finditer(text) if word.start() < at][::-1], count, 0
                )
        if rest[0] in "fFtT" and len(rest) == 2:
            forward = rest[0] in "ft"
            line = range(at + 1, end) if forward else range(at - 1, start - 1, -1)
            places = [place for place in line if text[place] == rest[1]]
            if len(places) < count:
                return at
            near = {"t": -1, "T": 1}.get(rest[0], 0)
            return places[count - 1] + near
        return None


def _line(text: str, at: int) -> tuple[int, int]:
    """Returns start and end of the line at `at`, without its ending."""
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _nth(places: list[int], count: int, otherwise: int) -> int:
    return places[count - 1] if len(places) >= count else otherwise


def _object(text: str, at: int, kind: str, *, around: bool) -> TextRange | None:
    """Returns the range of a word or of a bracketed text on this line; `around` includes the brackets."""
    start, end = _line(text, at)
    if kind == "w":
        found = next(
            (word for word in _WORD.finditer(text, start, end) if word.start() <= at < word.end()), None
        )
        if found is None:
            return None
        after = found.end()
        while around and after < end and text[after] == " ":
            after += 1
        return TextRange(found.start(), after)
    pair = _PAIRS.get(kind)
    if pair is None:
        return None
    left = text.rfind(pair[0], start, at + 1)
    right = text.find(pair[1], max(at, left + 1), end)
    if left < 0 or right < 0:
        return None
    return TextRange(left, right + 1) if around else TextRange(left + 1, right)
