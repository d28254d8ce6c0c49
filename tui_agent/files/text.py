"""Conversion between bytes and text that keeps encoding, byte-order mark and line endings, and clean text
for the screen.

File names, responses and errors may contain escape sequences, bidi controls and invisible characters.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tui_agent.errors import Undecodable

#: Controls, format characters (bidi controls, tags), line and paragraph separators, lone surrogates.
_ACTING = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
)  # fmt: skip
_BLANK = frozenset("\u2800")
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_ZWNJ, _ZWJ = "\u200c", "\u200d"
_JOINING = ((0x0600, 0x08FF), (0x0900, 0x109F), (0x1780, 0x1AAF), (0xA800, 0xABFF), (0x11000, 0x11FFF))
_IDEOGRAPHS = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_VIRAMA = 9
_EMOJI_BASES = frozenset("0123456789#*‼⁉ℹ〰〽")
_BREAKS = {"\n": "␤", "\t": "␉"}


def clean(text: str) -> str:
    """Replaces control and invisible characters by visible ones.

    Keeps newlines and tabs; drops a carriage return before a newline. Keeps joiners and variation
    selectors that shape adjacent letters, ideographs or emoji.
    """
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return replaced(text, lambda c: chr(0x2400 + ord(c)) if c < " " else "␡" if c == "\x7f" else "�")


def one_line(text: str) -> str:
    """Like `clean`, also for line breaks and tabs."""
    text = clean(text)
    return "".join(_BREAKS.get(c, c) for c in text) if "\n" in text or "\t" in text else text


def escaped(text: str) -> str:
    r"""Uses escapes: `\n`, `\x1b`, `\u202e`."""
    return replaced(text, lambda c: c.encode("unicode_escape").decode(), "\n\t")


def json_escaped(text: str) -> str:
    r"""Uses JSON's `\uXXXX` escapes, which keep the value. Keeps line ends between values."""
    units = re.compile("....")
    return replaced(text, lambda c: units.sub(r"\\u\g<0>", c.encode("utf-16-be", "surrogatepass").hex()))


def hidden(name: str) -> str:
    """Returns the first control or invisible character of a name, or ""."""
    return next((c for at, c in enumerate(name) if c in _BLANK or (_hides(c) and not _shapes(name, at))), "")


def replaced(text: str, instead: Callable[[str], str], also: str = "") -> str:
    """Maps control and invisible characters, and those in `also`."""
    if text.isascii() and (text if also else text.replace("\n", "").replace("\t", "")).isprintable():
        return text  # A loop would block other threads.
    suspects = {c for c in set(text) if c in also or _hides(c)}
    shaping = {c for c in suspects if c in (_ZWNJ, _ZWJ) or _within(c, _SELECTORS)}
    if shaping:  # Depends on the original neighbours.
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
    sign, before, after = text[at], text[at - 1] if at else "", text[at + 1 : at + 2]
    if not before or not (sign in (_ZWNJ, _ZWJ) or _within(sign, _SELECTORS)):
        return False
    if sign in (_ZWJ, _ZWNJ):
        if unicodedata.combining(before) == _VIRAMA:
            return True
        if _joins(before) and _joins(after):
            return True
        return sign == _ZWJ and (_is_symbol(before) or before == "\ufe0f") and _is_symbol(after)
    if sign <= "\ufe0f":
        return (
            _is_symbol(before) or before in _EMOJI_BASES or (sign < "\ufe03" and _within(before, _IDEOGRAPHS))
        )
    return _within(before, _IDEOGRAPHS)


def _joins(character: str) -> bool:
    return bool(character) and unicodedata.category(character)[0] in "LM" and _within(character, _JOINING)


def _is_symbol(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in ("So", "Sm", "Sk")


def _within(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)


def size_in_words(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


PIECE = 1 << 20
Encoding = Literal["utf-8", "utf-16-le", "utf-16-be"]
_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class TextFile(Struct, frozen=True):
    """`text` has the line endings; `mark` is the byte-order mark, or ""."""

    text: str
    encoding: Encoding = "utf-8"
    mark: bytes = b""

    @property
    def ending(self) -> str:
        r"""The most common line ending; `\n` without any."""
        windows = self.text.count("\r\n")
        plain = self.text.count("\n") - windows
        return "\r\n" if windows > plain else "\n"


def decode(data: bytes, name: str = "the file") -> TextFile:
    """Decodes UTF-8 or, with a byte-order mark, UTF-16. Raises Undecodable if the text could not be encoded
    back.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise Undecodable(f"{name} is UTF-32", "convert it to UTF-8 first")
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        where = len(mark) + error.start
        raise Undecodable(
            f"{name} is not {encoding.upper()} text (byte {where})", "convert it to UTF-8, or leave it alone"
        ) from error
    if "\0" in text:
        raise Undecodable(f"{name} is binary (it contains NUL bytes)", "it cannot be edited as text")
    return TextFile(text, encoding, mark)


def encode(file: TextFile, text: str) -> bytes:
    """Returns the original bytes if the text is unchanged. Raises Undecodable."""
    try:
        return file.mark + text.encode(file.encoding)
    except UnicodeEncodeError as error:
        raise Undecodable(
            f"the new text holds half of a character at position {error.start}", "write it without"
        ) from error


def md5(data: bytes) -> str:
    """For comparison and display; not cryptographically secure."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Splits after line feeds into pieces of about `size` characters: one call on a long text would block
    other threads.
    """
    at = 0
    while at < len(text):
        end = text.find("\n", at + size - 1) + 1 or len(text)
        yield text[at:end]
        at = end
