"""Conversion between bytes and text that preserves encoding, byte-order mark and line endings."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from tui_agent.errors import Undecodable

#: Characters processed per call on long texts.
PIECE = 1 << 20
Encoding = Literal["utf-8", "utf-16-le", "utf-16-be"]
_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class TextFile(Struct, frozen=True):
    """A decoded file. `text` keeps each line's ending; `mark` is its byte-order mark, if any."""

    text: str
    encoding: Encoding = "utf-8"
    mark: bytes = b""

    @property
    def ending(self) -> str:
        r"""The most common line ending; `\n` by default."""
        windows = self.text.count("\r\n")
        plain = self.text.count("\n") - windows
        return "\r\n" if windows > plain else "\n"


def decode(data: bytes, name: str = "the file") -> TextFile:
    """Decodes UTF-8 (with or without a mark) or UTF-16 (with a mark). Raises Undecodable if the result could
    not be encoded back."""
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
        raise Undecodable(f"{name} is binary (it holds NUL bytes)", "it cannot be edited as text")
    return TextFile(text, encoding, mark)


def encode(file: TextFile, text: str) -> bytes:
    """Encodes new text in the file's encoding; unchanged text gives the original bytes. Raises
    Undecodable."""
    try:
        return file.mark + text.encode(file.encoding)
    except UnicodeEncodeError as error:
        raise Undecodable(
            f"the new text holds half of a character at position {error.start}", "write it without"
        ) from error


def md5(data: bytes) -> str:
    """Hexadecimal content hash for comparison and display; not cryptographically secure."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """The text in pieces of about `size` characters, split after line feeds. One call on a long text would
    block other threads."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + size - 1) + 1 or len(text)
        yield text[at:end]
        at = end
