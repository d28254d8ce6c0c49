"""Text from outside, made safe to look at: the one list of characters that act or hide instead of being seen.

File names, replies, file content and error texts may hold escape sequences, letters that turn the reading direction
and letters that nobody sees. Everything that is written for a person or listed for a model passes through here:
`clean` and `one_line` replace each such character by one visible character, so that columns stay where they are;
`escaped` spells it out, for names; `json_escaped` spells it as JSON does, so that nothing is lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

#: Controls, format characters (bidi controls and tags among them), line and paragraph separators, lone surrogates.
_ACTING = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))
#: What Unicode asks to be drawn as nothing although its category is that of a letter, a mark or none at all: the
#: joiner of graphemes, Hangul and Khmer fillers, variation selectors, and what is set aside for more of them.
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
)  # fmt: skip
#: Signs that are not letters of the text, but can be seen; as a file's name they are blank.
_BLANK = frozenset("\u2800")
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_ZWNJ, _ZWJ = "\u200c", "\u200d"
#: Scripts whose letters change their shape with their neighbours: there joiners are part of the spelling.
_JOINING = ((0x0600, 0x08FF), (0x0900, 0x109F), (0x1780, 0x1AAF), (0xA800, 0xABFF), (0x11000, 0x11FFF))
_IDEOGRAPHS = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_VIRAMA = 9
#: Bases of emoji whose category is not that of a symbol.
_EMOJI_BASES = frozenset("0123456789#*‼⁉ℹ〰〽")
_BREAKS = {"\n": "␤", "\t": "␉"}


def clean(text: str) -> str:
    """The text with every character that acts or hides made visible, one for one.

    Newlines and tabs stay; a carriage return before a newline goes, since the line ends there anyway. Joiners and
    variation selectors stay where they shape the letters, ideographs or emoji beside them: text would be spelled
    wrong without them, and there they change nothing but the shape of what is seen.
    """
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return replaced(text, _picture)


def one_line(text: str) -> str:
    """The same for a title, a label or a name: line breaks and tabs are made visible too."""
    text = clean(text)
    return "".join(_BREAKS.get(c, c) for c in text) if "\n" in text or "\t" in text else text


def escaped(text: str) -> str:
    """A name on one line, with what acts or hides spelled out: `\\n`, `\\x1b`, `\\u202e`."""
    return replaced(text, _spelled, "\n\t")


def json_escaped(text: str) -> str:
    """JSON with what acts or hides written as `\\uXXXX`: it reads back as the same value.

    Line ends between the values of an indented document stay.
    """
    return replaced(text, _json)


def hidden(name: str) -> str:
    """The first character of a name that nobody would see, or that would act; empty where there is none."""
    return next((c for at, c in enumerate(name) if c in _BLANK or (_hides(c) and not _shapes(name, at))), "")


def replaced(text: str, instead: Callable[[str], str], also: str = "") -> str:
    """The text with `instead` of each character that acts or hides, and of those in `also`."""
    if text.isascii() and (text if also else text.replace("\n", "").replace("\t", "")).isprintable():
        return text  # at once, where looking at each letter of a long text would hold up every other thread
    suspects = {c for c in set(text) if c in also or _hides(c)}
    shaping = {c for c in suspects if c in (_ZWNJ, _ZWJ) or _within(c, _SELECTORS)}
    if shaping:  # whether they stay depends on their neighbours as they were
        text = re.sub(
            f"[{''.join(shaping)}]",
            lambda found: found[0] if _shapes(found.string, found.start()) else instead(found[0]),
            text,
        )
    return text.translate({ord(c): instead(c) for c in suspects - shaping}) if suspects else text


@lru_cache(4096)
def _hides(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in _ACTING or _within(character, _IGNORABLE)


def _shapes(text: str, at: int) -> bool:
    """Whether the joiner or variation selector there belongs to what is beside it."""
    sign, before, after = text[at], text[at - 1] if at else "", text[at + 1 : at + 2]
    if not before or not (sign in (_ZWNJ, _ZWJ) or _within(sign, _SELECTORS)):
        return False
    if sign in (_ZWJ, _ZWNJ):
        if unicodedata.combining(before) == _VIRAMA:
            return True
        if _joins(before) and _joins(after):
            return True
        return sign == _ZWJ and _is_emoji(before) and _is_symbol(after)
    if sign <= "\ufe0f":
        return (
            _is_symbol(before) or before in _EMOJI_BASES or (sign < "\ufe03" and _within(before, _IDEOGRAPHS))
        )
    return _within(before, _IDEOGRAPHS)


def _joins(character: str) -> bool:
    return bool(character) and unicodedata.category(character)[0] in "LM" and _within(character, _JOINING)


def _is_emoji(character: str) -> bool:
    """A symbol, or what may follow one: a skin tone or the selector of its picture."""
    return _is_symbol(character) or character == "\ufe0f"


def _is_symbol(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in ("So", "Sm", "Sk")


def _within(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def size_in_words(count: int) -> str:
    """Bytes for the eye: `812 B`, `12.3 kB`, `4.0 MB`."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
