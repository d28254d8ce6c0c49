"""Vim keys: modes, counts, operators, registers and repetition."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from textual import events
from textual.content import Content
from textual.widgets import TextArea
from textual.widgets.text_area import Location, Selection

from tui_agent.ui.editor.documents import dedented
from tui_agent.ui.editor.vim_motions import (
    Places,
    Register,
    Registers,
    TextRange,
    indent_of,
    line_at,
    moved,
    range_of,
    text_object,
)
from tui_agent.ui.safe_text import parts

Mode = Literal["insert", "normal", "visual", "visual line"]
#: Maximum count of a command, and characters that a count inserts.
_MOST_TIMES, _MOST_TEXT = 100_000, 1_000_000
#: Register, counts around the operator, and the rest.
_COMMAND = re.compile(r'(?:"(.))?([1-9]\d*)?(?:"(.))?(g[uU~]|[dcy<>])?([1-9]\d*)?(.*)', re.DOTALL)
_PREFIXES = frozenset("grfFtTq@\"m`'")
#: Keys that move in all modes except insert mode.
_SAME_AS = {
    "left": "h",
    "right": "l",
    "up": "k",
    "down": "j",
    "home": "0",
    "end": "$",
    "backspace": "h",
    "delete": "x",
    "enter": "+",
    "ctrl+d": "\x04",
    "ctrl+u": "\x15",
    "ctrl+r": "\x12",
}
#: Commands that `.` repeats, besides operators.
_REPEATED = frozenset("xXsSDCpPJ~rioaIAO")
_HARMLESS = frozenset("vVnN*#/?:qm@`'")
#: Signs before a line that Enter ends, and its maximum characters.
_LINE_SIGNS, _MOST_TYPED = (":", "/", "?"), 200
_TOO_LONG = "The text would become too long: use a smaller count"


class VimDisplay(NamedTuple):
    """Typed part of a command, or a sentence about a refused one."""

    mode: Mode
    typed: str = ""
    refused: str = ""


class Vim:
    def __init__(
        self,
        area: TextArea,
        on_shown: Callable[[VimDisplay], object],
        go_to_line: Callable[[int], bool] = lambda _line: False,
        on_command: Callable[[str], str] | None = None,
    ) -> None:
        """`go_to_line` returns whether it moved outside the area; -1 is the last line. `on_command` runs a
        `:` command and returns its error; `None` in the prompt, where Enter sends.
        """
        self._area = area
        self._on_shown = on_shown
        self._go_to_line = go_to_line
        self._on_command = on_command
        self._places = Places()
        self.mode: Mode = "insert"
        self.shown = VimDisplay("insert")
        self._typed = ""
        self._text = ""
        self._anchor = 0
        #: Column that `j` and `k` keep.
        self._column: int | None = None
        self._last_find = ""
        #: Last change: its command, and the text inserted after it.
        self._change = ("", "")
        #: Running insertion: command, count, offset, and the text before it.
        self._insertion: tuple[str, int, int, str] | None = None
        self._running = ""
        self._register = ""

    def enter(self, mode: Mode) -> None:
        self._read()
        before, self.mode, self._typed = self.mode, mode, ""
        if mode == "normal" and before == "insert":
            self._end_insertion()
            start = line_at(self._text, self._at)[0]
            self._go(max(start, self._at - 1))
        elif mode == "insert":
            self._area.history.checkpoint()
        elif mode == "normal":
            self._go(self._at)
        elif before == "normal":
            self._anchor = self._at
        self._show()

    def take(self, event: events.Key) -> bool:
        """Returns whether it handled the key; insert mode handles only Esc."""
        if event.key == "escape":
            waited = bool(self._typed) or self.mode != "normal"
            if waited:
                self.enter("normal")
            return waited
        if self.mode == "insert":
            return False
        if self._on_command is not None and (self._typed or event.character or "").startswith(_LINE_SIGNS):
            self._take_line(event, self._on_command)
            return True
        letter = _SAME_AS.get(event.key) or (event.character if event.is_printable else "") or ""
        if not letter or (letter == " " and self._typed[-1:] not in _PREFIXES):
            return False
        self._read()
        self._typed += letter
        refused = ""
        try:
            if self._run(self._typed) or len(self._typed) > 80:
                self._typed = ""
        except _Refused as error:
            self._typed, refused = "", str(error)
        if self.mode.startswith("visual"):
            self._select()
        elif self.mode == "normal" and not self._typed:
            row, column = self._area.cursor_location
            length = len(self._area.document.get_line(row))
            if self._area.selection.is_empty and column >= length > 0:
                self._area.move_cursor((row, length - 1))
        self._show(refused)
        return True

    def _take_line(self, event: events.Key, run: Callable[[str], str]) -> None:
        refused = ""
        if event.key == "backspace":
            self._typed = self._typed[:-1]
        elif event.key != "enter":
            self._typed += (
                event.character or "" if event.is_printable and len(self._typed) < _MOST_TYPED else ""
            )
        else:
            sign, words, self._typed = self._typed[:1], self._typed[1:], ""
            self._read()
            try:
                if sign != ":":
                    self._jump(sign + words, 1)
                elif words.strip().isdecimal():
                    self._move_rows("G", min(_MOST_TIMES, _number(words.strip().lstrip("0"))), True)
                else:
                    refused = run(words.strip())
            except _Refused as error:
                refused = str(error)
            if self.mode.startswith("visual"):
                self._select()
        self._show(refused)

    def _show(self, refused: str = "") -> None:
        shown = VimDisplay(self.mode, "".join(sign for sign in self._typed if sign.isprintable()), refused)
        if shown != self.shown:
            self.shown = shown
            self._on_shown(shown)

    # ── offsets ────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        self._text = "\n".join(self._area.document.lines)

    @property
    def _at(self) -> int:
        row, column = self._area.cursor_location
        return self._offset(row) + column

    def _offset(self, row: int) -> int:
        lines = self._area.document.lines
        return sum(map(len, lines[:row])) + min(row, len(lines))

    def _place(self, at: int) -> Location:
        start = self._text.rfind("\n", 0, at) + 1
        return self._text.count("\n", 0, start), at - start

    def _go(self, at: int) -> None:
        self._area.move_cursor(self._place(max(0, min(at, len(self._text)))))

    def _replace(self, start: int, end: int, text: str) -> None:
        if self._area.read_only:
            raise _Refused("")
        ending = self._area.document.newline
        self._area.history.checkpoint()
        self._area.replace(
            text.replace("\n", ending),
            self._place(start),
            self._place(end),
            maintain_selection_offset=False,
        )
        self._area.history.checkpoint()
        self._read()
        self._go(start)

    def _select(self) -> None:
        at = self._at
        first, last = sorted((self._anchor, at))
        if self.mode == "visual line":
            first, last = line_at(self._text, first)[0], line_at(self._text, last)[1]
            # The cursor stays on its line, since it ends Textual's selection.
            far = self._place(first if at >= self._anchor else last)
            self._area.selection = Selection(far, self._place(at))
        else:
            far = self._anchor if at >= self._anchor else min(self._anchor + 1, len(self._text))
            self._area.selection = Selection(self._place(far), self._place(at))

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────

    def _run(self, typed: str) -> bool:
        """Returns `False` if it is incomplete."""
        found = _COMMAND.fullmatch(typed)
        assert found is not None
        register, first, again, operator, second, rest = found.groups()
        counted, count = bool(first or second), min(_MOST_TIMES, _number(first) * _number(second))
        self._register = register or again or ""
        visual = self.mode.startswith("visual")
        if not (operator and visual):
            if not rest or (len(rest) == 1 and rest in _PREFIXES):
                return False
            if (operator or visual) and rest in ("i", "a"):
                return False
        self._running = typed
        if visual:
            return self._in_visual(operator or rest, count, counted)
        if operator:
            row, to = self._area.cursor_location[0], self._rows_over(rest, count, counted)
            if rest == operator or (operator.startswith("g") and rest == operator[1]):
                span = self._rows(row, count)
            elif to is not None:
                between = self._rows(min(row, to), abs(to - row) + 1)
                span = None if to == row and rest in "jk" else between
            elif rest[0] in "ia" and len(rest) == 2:
                span = text_object(self._text, self._at, rest[1], count, around=rest[0] == "a")
            else:
                span = range_of(self._text, self._at, self._find_again(rest), count, operator == "c")
            if span is not None:
                self._operate(operator, span)
            return True
        if self._move(rest, count, counted):
            return True
        self._column = None
        return self._command(rest, count)

    def _in_visual(self, rest: str, count: int, counted: bool) -> bool:
        lines = self.mode == "visual line"
        match rest:
            case "v" | "V":
                mode: Mode = "visual" if rest == "v" else "visual line"
                self.enter("normal" if mode == self.mode else mode)
                return True
            case "o":
                at = self._at
                self._go(self._anchor)
                self._anchor = at
                return True
            case "i" | "a":
                return False
        if rest[0] in "ia" and len(rest) == 2:
            span = text_object(self._text, self._at, rest[1], count, around=rest[0] == "a")
            if span is not None:
                self._anchor = span.start
                self._go(max(span.start, span.end - 1))
                if span.lines:
                    self.enter("visual line")
            return True
        if self._move(rest, count, counted):
            return True
        first, last = sorted((self._anchor, self._at))
        span = TextRange(first, min(last + 1, len(self._text)))
        if lines or rest in ("D", "Y", "C", "S", "X"):
            span = TextRange(line_at(self._text, first)[0], line_at(self._text, last)[1], lines=True)
        operator = {"x": "d", "s": "c", "u": "gu", "U": "gU", "~": "g~"}.get(rest, rest)
        if rest in ("D", "Y", "C", "S", "X"):
            operator = {"S": "c", "X": "d"}.get(rest, rest.lower())
        if operator in ("d", "c", "y", "<", ">", "gu", "gU", "g~"):
            self._operate(operator, span)
        elif rest in ("p", "P"):
            words, whole = self._content()
            gone = Register(self._text[span.start : span.end], span.lines)
            around = whole and not span.lines
            self._replace(span.start, span.end, f"\n{words}\n" if around else words)
            self._register = ""
            self._write(gone)
        elif rest == "J":
            self._join(first, max(self._text.count("\n", first, last), 1))
        elif rest[0] == "r":
            kept = (sign if sign == "\n" else rest[1] for sign in self._text[span.start : span.end])
            self._replace(span.start, span.end, "".join(kept))
        else:
            return True
        if self.mode != "insert":
            self.enter("normal")
        return True

    def _command(self, rest: str, count: int) -> bool:
        text, at = self._text, self._at
        start, end = line_at(text, at)
        if self._area.read_only and rest[0] not in _HARMLESS:
            return True
        if rest[0] in _REPEATED:
            self._change = (self._running, "")
        match rest:
            case "i":
                self._insert(at, count)
            case "a":
                self._insert(min(at + 1, end), count)
            case "I":
                self._insert(min(indent_of(text, start), end), count)
            case "A":
                self._insert(end, count)
            case "o" | "O":
                indent = text[start : min(indent_of(text, start), end)]
                below = rest == "o"
                at = end if below else start
                self._replace(at, at, f"\n{indent}" if below else f"{indent}\n")
                self._insert(at + len(indent) + below, count)
            case "v":
                self.enter("visual")
            case "V":
                self.enter("visual line")
            case "x":
                self._operate("d", TextRange(at, min(at + count, end)))
            case "X":
                self._operate("d", TextRange(max(at - count, start), at))
            case "D" | "C":
                self._operate(rest.lower(), TextRange(at, end))
            case "s":
                self._operate("c", TextRange(at, min(at + count, end)))
            case "S" | "Y":
                if (span := self._rows(self._area.cursor_location[0], count)) is not None:
                    self._operate("c" if rest == "S" else "y", span)
            case "p" | "P":
                self._paste(after=rest == "p", count=count)
            case "u" | "\x12":
                for _ in range(min(count, 1_000)):
                    (self._area.undo if rest == "u" else self._area.redo)()
                self._read()
            case "J":
                self._join(at, max(count - 1, 1))
            case "~":
                last = min(at + count, end)
                self._replace(at, last, text[at:last].swapcase())
                self._go(last)
            case ".":
                self._repeat()
            case _ if rest[0] in "q@":
                raise _Refused("Macros are not supported: . repeats the last change")
            case _ if rest[0] == "r" and at + count <= end:
                self._replace(at, at + count, rest[1] * count)
                self._go(at + count - 1)
        return True

    def _operate(self, operator: str, span: TextRange) -> None:
        text, (start, end, lines) = self._text, span
        if operator != "y" and not self.mode.startswith("visual"):
            self._change = (self._running, "")
        match operator:
            case "y":
                self._write(Register(text[start:end], lines), copied=True)
                self._go(min(start, self._at) if not lines or start > self._at else self._at)
                if start < self._at and not lines:
                    self._go(start)
            case "d":
                if start < end or lines:
                    first, last = start, end
                    if lines:  # with the line ending after it, or before it for the last line
                        first, last = (start, end + 1) if end < len(text) else (max(start - 1, 0), end)
                    kept = Register(text[start:end], lines)
                    self._replace(first, last, "")
                    self._write(kept)
                    if lines:
                        self._go(indent_of(self._text, line_at(self._text, min(start, len(self._text)))[0]))
            case "c":
                if lines:
                    start = min(indent_of(text, start), end)
                kept = Register(text[span.start : end], lines)
                self._replace(start, end, "")
                self._write(kept)
                self._insert(start, 1)
            case "<" | ">":
                first, last = line_at(text, start)[0], line_at(text, max(start, end - (not lines)))[1]
                rows, width = text[first:last].split("\n"), self._area.indent_width
                if operator == "<":
                    rows = [dedented(row, width) for row in rows]
                else:
                    step = "\t" if self._area.indent_type == "tabs" else " " * width
                    rows = [row and ("\t" if row.startswith("\t") else step) + row for row in rows]
                self._replace(first, last, "\n".join(rows))
                self._go(indent_of(self._text, first))
            case _:
                change = {"gu": str.lower, "gU": str.upper, "g~": str.swapcase}[operator]
                self._replace(start, end, change(text[start:end]))

    def _join(self, at: int, times: int) -> None:
        start, end = line_at(self._text, at)
        rows = self._text[end + 1 :].split("\n", times)[:times] if end < len(self._text) else []
        joined = self._text[start:end]
        for row in rows:
            word = row.lstrip(" \t")
            close = not word or word[0] == ")" or not joined or joined[-1] in " \t"
            joined += word if close else f" {word}"
        if rows:
            self._replace(end, end + sum(len(row) + 1 for row in rows), joined[end - start :])

    # ── inserting ────────────────────────────────────────────────────────────────────────────────────────

    def _insert(self, at: int, count: int) -> None:
        if self._area.read_only:
            return
        self._go(at)
        self._insertion = (self._running, count, self._at, self._text)
        self.enter("insert")

    def _end_insertion(self) -> None:
        """Keeps the inserted text for `.`, and repeats it for a count."""
        insertion, self._insertion = self._insertion, None
        self._area.history.checkpoint()
        if insertion is None:
            return
        command, count, at, before = insertion
        grown = len(self._text) - len(before)
        same = grown >= 0 and self._text.startswith(before[:at]) and self._text[at + grown :] == before[at:]
        words = self._text[at : at + grown] if same else ""
        self._change = (command, words)
        if count > 1 and words:
            more = words if command[-1] not in "oO" else f"\n{words}"
            if len(more) * count <= _MOST_TEXT:
                self._replace(at + grown, at + grown, more * (count - 1))
                self._go(at + grown + len(more) * (count - 1))

    def _repeat(self) -> None:
        change, words = self._change
        if not change:
            return
        if count := re.sub(r"\D", "", self._running.rpartition(".")[0]):
            found = _COMMAND.fullmatch(change)
            assert found is not None
            register, _first, again, operator, _second, rest = found.groups()
            name = register or again
            change = (f'"{name}' if name else "") + count + (operator or "") + rest
        self._run(change)
        if self.mode == "insert":
            self._area.history.checkpoint()
            self._area.insert(words.replace("\n", self._area.document.newline))
            self.enter("normal")
        self._change = (change, words)

    # ── registers ────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, register: Register, *, copied: bool = False) -> None:
        app = self._area.app
        Registers.of(app).write(self._register, register, app, copied=copied)

    def _content(self) -> Register:
        found = Registers.of(self._area.app).read(self._register, self._area.app)
        text = found.text.replace("\r\n", "\n").replace("\r", "\n")
        return Register(text.removesuffix("\n") if found.lines else text, found.lines)

    def _paste(self, *, after: bool, count: int) -> None:
        words, lines = self._content()
        if not words and not lines:
            return
        if (len(words) + 1) * count > _MOST_TEXT and count > 1:
            raise _Refused(_TOO_LONG)
        start, end = line_at(self._text, self._at)
        if lines:
            at = end if after else start
            self._replace(at, at, f"\n{words}" * count if after else f"{words}\n" * count)
            self._go(indent_of(self._text, at + after))
        else:
            at = min(self._at + after, end)
            self._replace(at, at, words * count)
            self._go(at + len(words) * count - 1)

    # ── motions ──────────────────────────────────────────────────────────────────────────────────────────

    def _move(self, rest: str, count: int, counted: bool) -> bool:
        """Returns `False` if `rest` is not a motion."""
        if self._rows_over(rest, count, counted) is not None:
            self._move_rows(rest, count, counted)
            return True
        self._column = None
        if self._jump(rest, count):
            return True
        rest = self._find_again(rest)
        target = moved(self._text, self._at, rest, count)
        if target is not None:
            if rest == "$":
                self._column = _MOST_TEXT
            self._go(target)
        return target is not None or rest[0] in "fFtT%"

    def _move_rows(self, rest: str, count: int, counted: bool) -> None:
        area = self._area
        row, column = area.cursor_location
        if rest in ("G", "gg") and self._go_to_line(count if counted or rest == "gg" else -1):
            self._read()
            return
        if rest in "jk" and row == (0 if rest == "k" else area.document.line_count - 1):
            if self.mode == "normal":  # history in the prompt, more lines of a very long text
                (area.action_cursor_up if rest == "k" else area.action_cursor_down)()
                self._read()
            return
        to = self._rows_over(rest, count, counted) or 0
        line = area.document.get_line(to)
        if rest in "jk\x04\x15":
            self._column = column if self._column is None else self._column
            area.move_cursor((to, min(self._column, max(0, len(line) - 1))))
        else:
            self._column = None
            area.move_cursor((to, indent_of(line, 0) if line.strip() else 0))

    def _jump(self, rest: str, count: int) -> bool:
        try:
            target = self._places.target(rest, count, self._text, self._at)
        except LookupError as error:
            raise _Refused(str(error.args[0])) from None
        if target is not None:
            self._go(target)
        return target is not None

    def _rows_over(self, rest: str, count: int, counted: bool) -> int | None:
        row, last = self._area.cursor_location[0], self._area.document.line_count - 1
        half = max(1, self._area.size.height // 2) * count
        targets = {
            "j": row + count,
            "+": row + count,
            "k": row - count,
            "-": row - count,
            "\x04": row + half,
            "\x15": row - half,
            "G": count - 1 if counted else last,
            "gg": count - 1,
        }
        return None if rest not in targets else min(max(targets[rest], 0), last)

    def _find_again(self, rest: str) -> str:
        if rest[0] in "fFtT" and len(rest) == 2:
            self._last_find = rest
        elif rest in (";", ",") and self._last_find:
            kind, sign = self._last_find
            return (kind.swapcase() if rest == "," else kind) + sign
        return rest

    def _rows(self, row: int, count: int) -> TextRange:
        last = min(row + count, self._area.document.line_count) - 1
        start = self._offset(row)
        return TextRange(start, line_at(self._text, self._offset(last))[1], lines=True)


class _Refused(Exception):
    """A refused command, with a sentence for the line of the mode."""


def _number(digits: str | None) -> int:
    return 1 if not digits else int(digits) if len(digits) < 7 else _MOST_TIMES


def mode_words(shown: VimDisplay) -> Content:
    return parts((shown.mode.upper(), "$accent"), f"  {shown.typed}", (shown.refused, "$warning"))
