"""Filters a program's terminal output, and tracks its terminal modes.

Standard: ECMA-48 and xterm's control sequences. Omits clipboard, titles, printing, window operations, and sequences
that terminals parse in different ways.
"""

from __future__ import annotations

import re

from tui_agent.files.numbers import whole_number

#: Bytes of an unfinished sequence; a longer one is dropped up to its end.
MOST_WAITING = 64 * 1024
_STRINGS = b"]P^_Xk"
#: Colours, links, progress and notifications, text size, marks of prompts; images, and questions about settings.
_KEPT_STRING = re.compile(
    rb"\x1b(?:\](?:(?:[458]|1\d|66|99|10[45]|11\d|133)(?!\d)|9;(?:4;|(?!\d+(?:[;\x07\x1b]))))"
    rb"|P(?:[0-9;]*q|[$+]q|=[12]s)|_G)"
)
#: Colours and progress stay after a program's end.
_SET = re.compile(rb"\x1b\](?:([45]|1\d);(?!\?)|9;4;)")
#: Window operations that report sizes.
_KEPT_WINDOW = frozenset((11, 13, 14, 15, 16, 18, 19))
_CSI = re.compile(rb"\x1b\[([<=>?]?)([0-?]{0,1000})([ -/]{0,9})([@-~])")
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]{0,1000}[ -/]{0,9}|[ %])?\Z")
_STRING_END = re.compile(rb"\x1b\\?|[\x18\x1a]")
_COMMAND_END = re.compile(rb"\x07|\x1b\\?|[\x18\x1a]")
#: C1 controls in UTF-8, which some terminals obey.
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()  # without it, the bytes around could join
#: Private modes that are on by default: cursor, autowrap.
_ON_BY_DEFAULT = frozenset((7, 25))
#: Tracked private modes; others have no effect on another program.
_KEPT = frozenset((1, 5, 6, 7, 9, 12, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007)) | {
    1015,
    1016,
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
_SOFT_RESET = (1, 6, 7, 25)


class TerminalFilter:
    def __init__(self) -> None:
        self._waiting = b""
        #: End of a string that is dropped.
        self._dropped_to: re.Pattern[bytes] | None = None
        self._forget()

    def feed(self, data: bytes) -> bytes:
        """Drops sequences; an unfinished one waits for its end."""
        data, self._waiting = self._waiting + data, b""
        begun = data[-1:] if data.endswith(b"\xc2") else b""
        data = _C1.sub(_REPLACEMENT, data.removesuffix(begun))
        kept, at = [], 0
        if self._dropped_to is not None:
            end = self._dropped_to.search(data)
            if end is None or (end[0] == b"\x1b" and end.end() == len(data)):
                self._waiting = (end[0] if end else b"") + begun
                return b""
            self._dropped_to, at = None, end.start() if end[0] == b"\x1b" else end.end()
        while (start := data.find(b"\x1b", at)) >= 0:
            kept.append(data[at:start])
            kind = data[start + 1 : start + 2]
            if kind and kind in _STRINGS:
                ends = _COMMAND_END if kind == b"]" else _STRING_END
                end = ends.search(data, start + 2)
                if end is None or (end[0] == b"\x1b" and end.end() == len(data)):
                    self._waiting = data[start:]
                    if len(self._waiting) > MOST_WAITING:
                        self._dropped_to = ends
                        self._waiting = b"\x1b" if data.endswith(b"\x1b") else b""
                    break
                # Another escape ends the string in some terminals, and is a part of it in others.
                whole = end[0] in (b"\x07", b"\x1b\\")
                if whole and self._is_kept(data[start : end.end()]):
                    kept.append(data[start : end.end()])
                at = end.start() if end[0] == b"\x1b" else end.end()
            elif _UNFINISHED.match(data, start):
                self._waiting = data[start:]
                break
            elif kind == b"[":
                found = _CSI.match(data, start)
                if found is not None and self._note(*found.groups()):
                    kept.append(found[0])
                at = found.end() if found is not None else start + 1
            elif kind in b" %":  # 8-bit controls
                at = start + 3
            elif b"!" <= kind <= b"~":
                if kind in b"=>":
                    self._keypad = kind == b"="
                elif kind == b"c":
                    self._forget()
                kept.append(data[start : start + 2])
                at = start + 2
            else:
                at = start + 1  # terminals obey this byte, and then continue the sequence
        else:
            kept.append(data[at:])
        self._waiting += begun
        return b"".join(kept)

    def leave(self) -> bytes:
        modes = [mode for mode, on in self._modes.items() if on != (mode in _ON_BY_DEFAULT)]
        kept = [b"\x1b[?%d%c" % (mode, b"h"[0] if mode in _ON_BY_DEFAULT else b"l"[0]) for mode in modes]
        alternate = [one for one, mode in zip(kept, modes, strict=True) if mode in _ALTERNATE]
        kept = [one for one in kept if one not in alternate]
        kept += [b"\x1b[%dl" % mode for mode in sorted(self._ansi_modes)]
        kept += [b"\x1b[>4m"] if self._other_keys else []
        kept += [b"\x1b>"] if self._keypad else []
        kept += [b"\x1b[0 q"] if self._cursor else []
        kept += sorted(self._resets)
        kept += [b"\x1b7\x1b[r\x1b8"] if self._margins else []
        # Each screen has its own stack.
        ours, others = self._keyboards[self.is_full_screen], self._keyboards[not self.is_full_screen]
        kept += [b"\x1b[<%du" % len(ours)] if ours else []
        kept += alternate
        kept += [b"\x1b[<%du" % len(others)] if others and alternate else []
        return b"\x1b[?2026l" + b"".join(kept) + b"\x0f\x1b(B\x1b[m"

    def again(self) -> bytes:
        modes = [mode for mode, on in self._modes.items() if on != (mode in _ON_BY_DEFAULT) and mode != 2026]
        modes.sort(key=lambda mode: mode not in _ALTERNATE)
        kept = [b"\x1b[>%su" % flags for flags in self._keyboards[False] if self.is_full_screen]
        kept += [b"\x1b[?%d%c" % (mode, b"l"[0] if mode in _ON_BY_DEFAULT else b"h"[0]) for mode in modes]
        kept += [b"\x1b[>%su" % flags for flags in self._keyboards[self.is_full_screen]]
        kept += [b"\x1b[%dh" % mode for mode in sorted(self._ansi_modes)]
        kept += [b"\x1b[>4;%sm" % self._other_keys] if self._other_keys else []
        kept += [b"\x1b="] if self._keypad else []
        return b"".join(kept)

    @property
    def is_full_screen(self) -> bool:
        return any(self._modes.get(mode) for mode in _ALTERNATE)

    def _is_kept(self, string: bytes) -> bool:
        if _KEPT_STRING.match(string) is None:
            return False
        if found := _SET.match(string):
            number = found[1]
            self._resets.add(b"\x1b]%d\x07" % (100 + whole_number(number)) if number else b"\x1b]9;4;0\x07")
        return True

    def _note(self, private: bytes, numbers: bytes, between: bytes, final: bytes) -> bool:
        first = whole_number(numbers.partition(b";")[0], 0)
        if private == b"?" and final in b"hlr" and not between:
            for number in numbers.split(b";"):
                if (mode := whole_number(number, 0)) in _KEPT:
                    self._modes[mode] = (final == b"h") if final != b"r" else mode not in _ON_BY_DEFAULT
        elif final == b"u" and private in (b"<", b">") and not between:
            stack = self._keyboards[self.is_full_screen]
            if private == b">":
                stack[:] = [*stack, numbers or b"0"][-16:]
            else:
                del stack[max(0, len(stack) - whole_number(numbers, 1)) :]
        elif private == b">" and final in b"mn" and first in (0, 4):
            value = numbers.partition(b";")[2] if final == b"m" and first else b""
            self._other_keys = value if whole_number(value, 0) else b""
        elif final == b"p" and between == b"!":
            self._keypad = False
            for mode in _SOFT_RESET:
                self._modes.pop(mode, None)
        elif final == b"q" and between == b" ":
            self._cursor = True
        elif not private and not between:
            if final in b"hl":
                changed = {4, 20} & {whole_number(number, 0) for number in numbers.split(b";")}
                self._ansi_modes = self._ansi_modes | changed if final == b"h" else self._ansi_modes - changed
            self._margins = self._margins or final == b"r"
            return final != b"i" and (final != b"t" or first in _KEPT_WINDOW)
        return (final != b"t" or bool(between)) and (final != b"i" or bool(between))

    def _forget(self) -> None:
        self._modes: dict[int, bool] = {}
        #: Flags of kitty's protocol in the main and in the alternate screen.
        self._keyboards: tuple[list[bytes], list[bytes]] = ([], [])
        self._ansi_modes: set[int] = set()
        self._resets: set[bytes] = set()
        self._other_keys = b""
        self._keypad = self._cursor = self._margins = False
