"""Filters a program's terminal output, and tracks its terminal modes.

Standard: ECMA-48 and xterm's control sequences. Omits clipboard (OSC 52), titles (OSC 0 to 2) and
sequences that are passed through tmux, which could hold either.
"""

from __future__ import annotations

import re

from tui_agent.files.numbers import whole_number

#: Bytes of an unfinished sequence; a longer one is dropped up to its end.
MOST_WAITING = 64 * 1024
_DROPPED_OSC = frozenset((b"0", b"1", b"2", b"52", b"50", b"777"))
_CSI = re.compile(rb"\x1b\[([<=>?]?)([0-9;:]*)([ -/]*)([@-~])")
_STRING_END = re.compile(rb"\x07|\x1b\\|\x18|\x1a")
_UNFINISHED_CSI = re.compile(rb"\x1b(?:\[[<=>?]?[0-9;:]*[ -/]*)?\Z")
#: Private modes that are on by default: cursor, autowrap.
_ON_BY_DEFAULT = frozenset((7, 25))
#: Tracked private modes; others have no effect on another program.
_KEPT = frozenset((1, 6, 7, 9, 12, 25, 45, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016)) | {
    1047,
    1049,
    2004,
    2026,
    2027,
    2031,
    2048,
}
#: Modes of the alternate screen: set first, reset last.
_ALTERNATE = frozenset((47, 1047, 1049))


class TerminalFilter:
    """Accepts output in any pieces."""

    def __init__(self) -> None:
        self._waiting = b""
        self._is_dropping = False
        self._modes: dict[int, bool] = {}
        self._keyboard: list[bytes] = []
        self._keypad = self._cursor = False

    def feed(self, data: bytes) -> bytes:
        """Drops sequences; an unfinished one waits for its end."""
        data, self._waiting, kept, at = self._waiting + data, b"", [], 0
        if self._is_dropping:
            end = _STRING_END.search(data)
            if end is None:
                self._waiting = data[-1:] if data.endswith(b"\x1b") else b""
                return b""
            self._is_dropping, at = False, end.end()
        while (start := data.find(b"\x1b", at)) >= 0:
            kept.append(data[at:start])
            kind = data[start + 1 : start + 2]
            if kind in (b"]", b"P", b"^", b"_", b"X"):
                end = _STRING_END.search(data, start + 2)
                if end is None:
                    self._hold(data[start:])
                    return b"".join(kept)
                if not self._is_dropped(data[start : end.end()]):
                    kept.append(data[start : end.end()])
                at = end.end()
            elif found := _CSI.match(data, start):
                self._note(*found.groups())
                kept.append(found[0])
                at = found.end()
            elif _UNFINISHED_CSI.match(data, start):
                self._hold(data[start:])
                return b"".join(kept)
            else:
                if kind in (b"=", b">"):
                    self._keypad = kind == b"="
                elif kind == b"c":
                    self._forget()
                kept.append(data[start : start + 2])
                at = start + 2
        kept.append(data[at:])
        return b"".join(kept)

    def leave(self) -> bytes:
        """Returns sequences that restore the terminal's usual modes."""
        modes = [mode for mode, on in self._modes.items() if on != (mode in _ON_BY_DEFAULT)]
        modes.sort(key=lambda mode: mode in _ALTERNATE)
        kept = [b"\x1b[?%d%c" % (mode, b"h"[0] if mode in _ON_BY_DEFAULT else b"l"[0]) for mode in modes]
        kept += [b"\x1b[<%du" % len(self._keyboard)] if self._keyboard else []
        kept += [b"\x1b>"] if self._keypad else []
        kept += [b"\x1b[0 q"] if self._cursor else []
        return b"\x1b[?2026l" + b"".join(kept) + b"\x1b[r\x1b[m"

    def again(self) -> bytes:
        """Returns sequences that set the program's modes again."""
        modes = [mode for mode, on in self._modes.items() if on != (mode in _ON_BY_DEFAULT) and mode != 2026]
        modes.sort(key=lambda mode: mode not in _ALTERNATE)
        kept = [b"\x1b[?%d%c" % (mode, b"l"[0] if mode in _ON_BY_DEFAULT else b"h"[0]) for mode in modes]
        kept += [b"\x1b[>%su" % flags for flags in self._keyboard]
        kept += [b"\x1b="] if self._keypad else []
        return b"".join(kept)

    @property
    def is_full_screen(self) -> bool:
        return any(self._modes.get(mode) for mode in _ALTERNATE)

    def _hold(self, rest: bytes) -> None:
        if len(rest) > MOST_WAITING:
            self._is_dropping = True
            rest = rest[-1:] if rest.endswith(b"\x1b") else b""
        self._waiting = rest

    @staticmethod
    def _is_dropped(sequence: bytes) -> bool:
        if sequence.startswith(b"\x1b]"):
            return re.split(rb"[;\x07\x1b]", sequence[2:], maxsplit=1)[0] in _DROPPED_OSC
        return sequence.startswith((b"\x1bPtmux;", b"\x1bP\x1b", b"\x1b^", b"\x1bX"))

    def _note(self, private: bytes, numbers: bytes, between: bytes, final: bytes) -> None:
        if private == b"?" and final in b"hl":
            for number in numbers.split(b";"):
                if (mode := whole_number(number.decode(), 0)) in _KEPT:
                    self._modes[mode] = final == b"h"
        elif final == b"u" and private == b">":
            self._keyboard = [*self._keyboard, numbers or b"0"][-16:]
        elif final == b"u" and private == b"<":
            count = whole_number(numbers.decode(), 1)
            self._keyboard = self._keyboard[: max(0, len(self._keyboard) - count)]
        elif final == b"q" and between == b" ":
            self._cursor = True
        elif final == b"p" and between == b"!":
            self._forget()

    def _forget(self) -> None:
        self._modes.clear()
        self._keyboard.clear()
        self._keypad = self._cursor = False
