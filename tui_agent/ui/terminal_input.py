r"""Decodes the terminal's output to events: keys, pastes, mouse and focus. Discards the terminal's answers.

A terminal answers the questions of every program, even one that has ended: late, in pieces, and mixed
with keys. Every escape sequence that is not a key is such an answer. Its form determines its length
(ECMA-48, sections 5.4 and 5.6):

- CSI: `ESC [`, characters from `0x20` to `0x3F`, one from `0x40` to `0x7E`;
- OSC, DCS, APC, PM and SOS: `ESC` and one of `] P _ ^ X`, then text up to `ESC \`, BEL or the 8-bit ST;
- each introducer also as its C1 character, as a single byte or in UTF-8.

An unterminated sequence is dropped after `SILENCE` seconds, after `LONGEST` seconds at typing speed,
after `MOST` characters, or at the next Esc, Ctrl+C, Ctrl+X or Ctrl+Z. A paste ends only at its end mark,
or at Ctrl+C after `OPEN_PASTE` seconds.

An Esc is a key if nothing follows for `ESCAPE_DELAY`. Several characters read at once within `SILENCE`
continue a sequence if they have the form of an answer. After `^` and `X` any text is valid: only the
string's end distinguishes it from keys, which are then reported.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator

from textual import constants, events, messages
from textual.keys import Keys
from textual.message import Message

from tui_agent.files.numbers import whole_number
from tui_agent.ui.textual_patches.sequences import (
    ANSI_SEQUENCES_KEYS,
    FUNCTIONAL_KEYS,
    IGNORE_SEQUENCE,
    keys_of,
    parser,
)

#: Seconds without a byte that end a sequence.
SILENCE = 1.0
#: Seconds after which a sequence ends below this rate, in characters per second.
LONGEST, TYPED = 10.0, 50
MOST = 64_000_000
#: Seconds after which an open paste is reported and Ctrl+C ends it.
OPEN_PASTE = 2.0
#: Minimum characters of a read that is not typed.
NOT_TYPED = 16

ESC, CTRL_C = "\x1b", "\x03"
#: Maximum characters of a key's sequence.
LONGEST_KEY = 256
_SOMETHING = "…"
_PASTE, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
#: Ctrl+C as a control character and with modifier codes.
_CTRL_C = re.compile(r"\x03|\x1b\[99;5u|\x1b\[27;5;99~")
#: C1 characters, decoded or as undecodable bytes (`surrogateescape`).
_C1 = re.compile("(?<![\udca0-\udcff])[\x80-\x9f\udc80-\udc9f]")
_ANY_PASTE_END = re.compile("(?:\x1b\\[|[\x9b\udc9b])201~")
_PASTE_OR_C1 = re.compile(
    rf"(?:\x1b\[|[\x9b\udc9b])200~[\s\S]*?(?:{_ANY_PASTE_END.pattern}|\Z)|{_C1.pattern}"
)
_LONE_BYTE = re.compile("[\udc80-\udcff]")
_STRING_ENDS = re.compile("[\x03\x07\x18\x1a\x1b]")
_CSI = re.compile(r"\x1b\[[ -?]*([@-~]?)")
#: iTerm2's answer to `CSI 1337 n`, which has no standard form and begins like the focus event.
_ITERM = re.compile(r"\x1b\[ITERM2 [\d.]*(n?)")
_FOCUS_IN, _BEHIND_FOCUS = "\x1b[I", "TERM2 "
_MOUSE = re.compile(r"\x1b\[<\d{1,5};\d{1,5};\d{1,5}[Mm]")
_KEY = re.compile(
    r"\x1b\[(?P<code>\d{0,7})(?::\d{0,7}){0,2}"
    r"(?:;(?P<mods>\d{0,3})(?::(?P<kind>\d))?(?:;(?P<text>\d{1,7}(?::\d{1,7}){0,30})?)?)?(?P<end>[u~ABCDEFHPQS])"
)
_MODIFIED = re.compile(r"\x1b\[27;(?P<mods>\d{1,3});(?P<code>\d{1,7})~")
_CURSOR = re.compile(r"\x1b\[\d+;\d+R")
_FRAMES_AS_ONE = re.compile(r"\x1b\[\?2026;[1-4]\$y")
#: Beginning of a sequence whose Esc was already reported as a key; below, beginnings too short to tell.
_WITHOUT_ESC = re.compile(
    r"\[[\d;<=>?A-FHIMOP-SZu]|\][\dlLI]|P(?:[>!@]|\d{1,4}(?:[$+!]|\Z|(?:;\d{0,4}){1,2}q))|_G|[\]P_][^\x1b]*\x1b\\"
)
_INTRODUCERS = re.compile(r"[\[\]P_^X][\d;<=>?!]{0,30}")
#: Introducers of strings with any text. After a late Esc only their end distinguishes them from typed text.
_ANYTHING = ("^", "X")
#: Characters after which such text is a string even without an end.
MOST_TYPED = 65_536
_STRINGS = "]P_^X"
#: OSC 11: requests the background colour, answered as `rgb:RRRR/GGGG/BBBB` with one to four digits each.
ASK_BACKGROUND = "\x1b]11;?\x07"
_BACKGROUND = re.compile(r"\]11;rgba?:([\da-fA-F]{1,4})/([\da-fA-F]{1,4})/([\da-fA-F]{1,4})")
_LONGEST_COLOUR = 64


class PasteWaits(events.Event, bubble=False):
    """A paste has been `open` for `OPEN_PASTE` seconds, or has ended."""

    def __init__(self, open: bool) -> None:
        super().__init__()
        self.open = open


class BackgroundReported(events.Event, bubble=False):
    def __init__(self, dark: bool) -> None:
        super().__init__()
        self.dark = dark


class TerminalInput:
    """`feed` accepts input cut anywhere. Call `tick` several times a second for decisions by time."""

    def __init__(
        self,
        debug: bool = False,
        bound: Callable[[str], bool] = lambda key: False,
        clock: Callable[[], float] = time.monotonic,
        background: bool = False,
    ) -> None:
        """`bound`: whether a key has a function. `background`: whether `ASK_BACKGROUND` was sent."""
        self._parser = parser(debug)
        self._bound = bound
        self._clock = clock
        #: Incomplete sequence; only the last characters of a string.
        self._held = ""
        self._in_string = False
        #: Whether the background's answer is pending. `_string` begins the current string.
        self._background = background
        self._string = ""
        self._begun = self._heard = 0.0
        self._size = 0
        #: Time of the last Esc reported as a key, and later input that may belong to it.
        self._escaped = -SILENCE
        self._since_escape = ""
        #: The first character after that Esc, a key unless more follows at once; and text that is a string or
        #: keys.
        self._introducer = self._undecided = ""
        #: Time of a focus event that may begin an answer.
        self._focused = -SILENCE
        #: Pieces of an open paste; the last may contain part of the end mark.
        self._pasted: list[str] | None = None
        self._paste_begun = 0.0
        self._paste_told = False
        #: Whether a paste ended by Ctrl+C has no end mark yet.
        self._end_missing = False
        self._blurred = False
        self._focus: Message | None = None
        self._move: events.MouseMove | None = None
        self._frames_told = False

    def feed(self, text: str) -> Iterator[Message]:
        """`text` is decoded as UTF-8 with `surrogateescape` or `replace`."""
        now = self._heard = self._clock()
        if self._end_missing:
            text = yield from self._rest_of_paste(text)
        if self._undecided:
            text = self._decided(text, now)
        elif self._introducer or now - self._escaped < SILENCE:
            text = self._after_escape(text, now)
        if now - self._focused < SILENCE and text and _BEHIND_FOCUS.startswith(text[: len(_BEHIND_FOCUS)]):
            text = f"{_FOCUS_IN}{text}"
        yield from self._take(text)

    def _take(self, text: str) -> Iterator[Message]:
        goes_on = len(self._held)
        if (
            self._in_string and self._held == ESC
        ):  # The first half of ST, or the beginning of another sequence.
            if text.startswith("\\"):
                text, self._held = text[1:], ""
                yield from self._answered()
            self._in_string = False
        if not self._in_string:
            text, self._held = self._held + text, ""
        text = self._in_seven_bits(text)
        at = 0
        while at < len(text):
            if self._pasted is not None:
                at = yield from self._into_paste(text, at)
                if self._pasted is None:
                    text = text[:at] + self._in_seven_bits(text[at:])
            elif self._in_string:
                begins, at = at, self._into_string(text, at)
                if self._background:
                    self._string = (self._string + text[begins:at])[:_LONGEST_COLOUR]
                    if not self._in_string:
                        yield from self._answered()
            else:
                at = yield from self._read(text, at, goes_on)
        yield from self._late()

    def tick(self) -> Iterator[Message]:
        now = self._clock()
        if self._pasted is not None and not self._paste_told and now - self._paste_begun >= OPEN_PASTE:
            self._paste_told = True
            yield PasteWaits(True)
        undecided, silent = self._introducer or self._undecided, now - self._heard
        long = constants.ESCAPE_DELAY if self._introducer else SILENCE
        if undecided and (silent >= long or (not self._introducer and now - self._begun >= LONGEST)):
            self._introducer = self._undecided = ""
            yield from self._take(undecided)  # as keys
        if not self._held and not self._in_string:
            return
        if self._held == ESC and not self._in_string:
            if silent >= constants.ESCAPE_DELAY:
                self._held, self._escaped, self._since_escape = "", now, ""
                yield from self._with_earlier(events.Key("escape", ESC))
        elif silent >= (
            constants.ESCAPE_DELAY if self._held == f"{_FOCUS_IN}{_BEHIND_FOCUS[0]}" else SILENCE
        ) or now - self._begun >= max(LONGEST, self._size / TYPED):
            yield from self._give_up()

    def close(self) -> Iterator[Message]:
        if typed := self._introducer + self._undecided:
            self._introducer = self._undecided = ""
            yield from self._take(typed)
        if self._held.startswith(_FOCUS_IN):
            yield from self._give_up()
        if self._pasted is not None:
            yield from self._end_paste("".join(self._pasted))

    def _after_escape(self, text: str, now: float) -> str:
        """Restores the Esc if several characters read at once continue a sequence; "" if undecided."""
        came, keys = self._since_escape + text, self._introducer + text
        self._escaped, self._since_escape, self._introducer = now - SILENCE, "", ""
        if len(text) > 1 and _WITHOUT_ESC.match(came):
            return ESC + came
        if len(text) > 1 and came.startswith(_ANYTHING):
            self._begun = now
            return self._decided(keys, now)
        if _INTRODUCERS.fullmatch(came):
            self._escaped, self._since_escape = now, came
            if len(came) == 1:
                self._introducer = came
                return ""
        return keys

    def _decided(self, text: str, now: float) -> str:
        """The text after a string, or all if it is not a string; "" if undecided."""
        came = self._in_seven_bits(self._undecided + text)
        typed = self._undecided and len(text) == 1 and now - self._begun >= SILENCE
        self._undecided = ""
        end = _STRING_ENDS.search(came)
        if end is None or (end.end() == len(came) and end[0] == ESC):
            if typed:
                return came
            if len(came) > MOST_TYPED:
                return f"{ESC}{_ANYTHING[0]}{end[0] if end else ''}"
            self._undecided = came
            return ""
        if came.startswith("\x1b\\", end.start()):
            return came[end.end() + 1 :]
        return came[end.end() :] if end[0] == "\a" else came

    def _read(self, text: str, at: int, goes_on: int) -> Generator[Message, None, int]:
        """Returns the offset of the next change of state. `goes_on`: number of characters held before."""
        while at < len(text):
            if text[at] != ESC:
                end = text.find(ESC, at)
                end = len(text) if end < 0 else end
                for character in _LONE_BYTE.sub("\ufffd", text[at:end]):
                    yield from self._key(character)
                at = end
            elif text.startswith(_PASTE, at):
                self._pasted, self._paste_begun, self._end_missing = [""], self._clock(), False
                return at + len(_PASTE)
            elif text[at + 1 : at + 2] in tuple(_STRINGS):
                self._in_string, self._held = True, text[at : at + 2]
                self._string = text[at + 1]
                self._begun, self._size = self._clock(), 0
                return at + 2
            elif not (end := _end_of(text, at)):
                held, before = text[at:], 0 if at else goes_on
                if not before:
                    self._begun, self._size = self._clock(), 0
                self._size += len(held) - before
                # a placeholder if it is too long for a key
                self._held = "" if self._size > MOST else held if len(held) < LONGEST_KEY else f"{ESC}[?"
                return len(text)
            else:
                yield from self._sequence(text[at:end])
                at = end
        return at

    def _answered(self) -> Iterator[Message]:
        if self._background and (colour := _BACKGROUND.match(self._string)):
            self._background = False
            yield BackgroundReported(is_dark(*colour.groups()))

    def _into_string(self, text: str, at: int) -> int:
        match = _STRING_ENDS.search(text, at)
        if match is None:
            self._size += len(text) - at
            self._in_string = self._size <= MOST
            self._held = _SOMETHING if self._in_string else ""
            return len(text)
        end = match.start()
        if text[end] == ESC and end + 1 == len(text):
            self._held = ESC
            return len(text)
        self._in_string, self._held = False, ""
        if text.startswith("\x1b\\", end):
            return end + 2
        return end if text[end] in (ESC, CTRL_C) else end + 1

    def _in_seven_bits(self, text: str) -> str:
        if not _C1.search(text):
            return text
        begins = 0
        if self._pasted is not None and (end := _ANY_PASTE_END.search(text)):
            begins = end.start()
        elif self._pasted is not None:
            return text
        return text[:begins] + _PASTE_OR_C1.sub(_as_escape, text[begins:])

    def _give_up(self) -> Iterator[Message]:
        held, in_string = self._held, self._in_string
        self._held, self._in_string = "", False
        if in_string and held == ESC:
            yield from self._with_earlier(events.Key("escape", ESC))
        elif len(held) == 2 and held[0] == ESC:
            yield from self._key(held[1], alt=True)
        elif f"{_FOCUS_IN}{_BEHIND_FOCUS}".startswith(held) and held.startswith(_FOCUS_IN):
            yield from self._sequence(_FOCUS_IN)
            for character in held.removeprefix(_FOCUS_IN):
                yield from self._key(character)

    def _sequence(self, text: str) -> Iterator[Message]:
        self._focused = self._clock() if text == _FOCUS_IN else -SILENCE
        if text == ESC:
            yield from self._with_earlier(events.Key("escape", ESC))
        elif text[1] not in "[O" or len(text) == 2:
            yield from self._key(text[1:], alt=True)
        elif text in (_FOCUS_IN, "\x1b[O"):
            self._focus = events.AppFocus() if text[2] == "I" else events.AppBlur()
        elif _MOUSE.fullmatch(text):
            event = self._parser.parse_mouse_code(text)
            if isinstance(event, events.MouseMove) and not event.button:
                self._move = event
            elif event is not None:
                yield from self._with_earlier(event)
        elif _FRAMES_AS_ONE.fullmatch(text):
            if not self._frames_told:
                self._frames_told = True
                yield messages.TerminalSupportsSynchronizedOutput()
        elif key := _key_sequence(text):
            yield from self._key(key)

    def _key(self, text: str, alt: bool = False) -> Iterator[Message]:
        for event in keys_of(self._parser, text, alt):
            if event.key != Keys.Ignore:
                yield from self._with_earlier(event)

    def _into_paste(self, text: str, at: int) -> Generator[Message, None, int]:
        """Stores text in large pieces: single characters would take almost a second per megabyte."""
        assert self._pasted is not None
        held = self._pasted.pop()
        whole, at = held + text[at:], at - len(held)
        found = _ANY_PASTE_END.search(whole)
        if self._paste_told:
            until = found.start() if found else len(whole)
            keys = (key for key in _CTRL_C.finditer(whole, 0, until) if key.end() > len(held))
            if stopped := next(keys, None):
                self._end_missing, found = True, stopped
        if found is None:
            rest = max(0, len(whole) - 12)  # May begin the end mark or Ctrl+C.
            self._pasted += [whole[:rest], whole[rest:]]
            return len(text)
        yield from self._end_paste("".join([*self._pasted, whole[: found.start()]]))
        return at + found.end()

    def _end_paste(self, text: str) -> Iterator[Message]:
        self._pasted = None
        if self._paste_told:
            self._paste_told = False
            yield PasteWaits(False)
        if text:
            yield from self._with_earlier(events.Paste(_LONE_BYTE.sub("\ufffd", text.replace("\x00", ""))))

    def _rest_of_paste(self, text: str) -> Generator[Message, None, str]:
        """Returns the text after the rest of a paste that Ctrl+C ended. Without an end mark, only a read of
        `NOT_TYPED` characters is part of it.
        """
        before, ends, after = text.partition(_PASTE_ENDS)
        begins = text.find(_PASTE)
        if begins >= 0 and (not ends or begins < len(before)):
            self._end_missing = False
            return text
        if ends:
            self._end_missing = False
        elif len(before) < NOT_TYPED or before.startswith(ESC):
            return text
        if before:
            yield from self._with_earlier(events.Paste(_LONE_BYTE.sub("\ufffd", before.replace("\x00", ""))))
        return after

    def _with_earlier(self, event: Message) -> Iterator[Message]:
        """A character with Alt (sent as Esc and the character) inserts nothing if it has a function."""
        self._focused = -SILENCE
        yield from self._late()
        if self._blurred and isinstance(event, (events.Key, events.Paste, events.MouseDown)):
            self._blurred = False
            yield events.AppFocus()
        if isinstance(event, events.Key) and event.character and event.key.startswith("alt+"):
            event = events.Key(event.key, None) if self._bound(event.key) else event
        yield event

    def _late(self) -> Iterator[Message]:
        """Reports only the last focus event and the last mouse position."""
        if (focus := self._focus) is not None:
            self._focus = None
            blurred = isinstance(focus, events.AppBlur)
            if blurred != self._blurred:
                self._blurred = blurred
                yield focus
        if (move := self._move) is not None:
            self._move = None
            yield move


def _as_escape(match: re.Match[str]) -> str:
    text = match[0]
    return text if text[0] == ESC else f"{ESC}{chr((ord(text[0]) & 0xFF) - 0x40)}{text[1:]}"


def _end_of(text: str, at: int) -> int:
    """0 if it is incomplete."""
    after = text[at + 1 : at + 2]
    if not after:
        return 0
    if after == ESC:
        return at + 1
    if after == "O":
        end = at + 2
        while text[end : end + 1].isdecimal():  # Modifiers of old terminals.
            end += 1
        return 0 if end == len(text) else end + (text[end].isprintable() and text[end].isascii())
    if after != "[":
        return at + 2
    if text.startswith(f"{_FOCUS_IN}{_BEHIND_FOCUS[0]}", at) and f"{_FOCUS_IN}{_BEHIND_FOCUS}".startswith(
        text[at:]
    ):
        return 0
    match = _ITERM.match(text, at) or _CSI.match(text, at)
    assert match is not None
    end = match.end()
    if not match[1]:  # An invalid character ends it.
        return 0 if end == len(text) else end
    if text[at:end] == "\x1b[M":  # Three bytes follow; two can be decoded as one character.
        size = 0
        while size < 3:
            if end == len(text):
                return 0
            size += 1 if text[end] < "\x80" else len(text[end].encode("utf-8", "surrogateescape"))
            end += 1
    elif text[at:end] == "\x1b[[":  # A function key of the Linux console.
        return 0 if end == len(text) else end + (text[end].isascii() and text[end].isalpha())
    return end


def _key_sequence(text: str) -> str:
    """Returns a key's sequence in Textual's form; "" for others."""
    if _CURSOR.fullmatch(text):  # Shift+F3 in one terminal, a cursor position in all.
        return ""
    known = ANSI_SEQUENCES_KEYS.get(text)
    if known is not None:
        return "" if known is IGNORE_SEQUENCE else text
    if match := _MODIFIED.fullmatch(text):
        code, mods = match["code"], match["mods"]
        return _kitty(code, mods, code if mods == "2" else "", "u")
    match = _KEY.fullmatch(text)
    if match is None or match["kind"] == "3":  # Key release.
        return ""
    return _kitty(match["code"], match["mods"] or "", match["text"] or "", match["end"])


def _kitty(code: str, mods: str, text: str, end: str) -> str:
    if end == "u":
        numbers = (whole_number(one, 0xD800) for one in (code, *filter(None, text.split(":"))))
        if not all(number < 0xD800 or 0xDFFF < number <= 0x10FFFF for number in numbers):
            return ""
    elif f"{code or 1}{end}" not in FUNCTIONAL_KEYS:
        return ""
    return f"\x1b[{code or 1}{f';{mods}' if mods or text else ''}{f';{text}' if text else ''}{end}"


def is_dark(red: str, green: str, blue: str) -> bool:
    """Whether the luma of a background (hexadecimal components) is below one half (ITU-R BT.601)."""
    parts = [int(part, 16) / (16 ** len(part) - 1) for part in (red, green, blue)]
    return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] < 0.5
