"""Text keeps its bytes: encodings, marks, endings."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.errors import Undecodable
from tui_agent.files.text import PIECE, TextFile, decode, encode, md5, pieces


@given(st.binary())
def test_what_decodes_encodes_to_the_same_bytes(data: bytes) -> None:
    try:
        file = decode(data)
    except Undecodable:
        return
    assert encode(file, file.text) == data


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.sampled_from([b"", *(codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)]),
)
def test_text_survives_every_mark(text: str, mark: bytes) -> None:
    encoding = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(mark, "utf-8")
    data = mark + text.encode(encoding)
    if not mark and data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE)):
        return  # then the mark is not ours
    if data.startswith(codecs.BOM_UTF32_LE):
        return
    file = decode(data)
    assert (file.text, file.mark) == (text, mark)
    assert encode(file, file.text) == data


def test_new_text_takes_the_old_mark_and_encoding() -> None:
    assert encode(decode(codecs.BOM_UTF16_BE + "a\r\n".encode("utf-16-be")), "ü") == b"\xfe\xff\x00\xfc"
    assert encode(decode(codecs.BOM_UTF8 + b"a"), "b") == codecs.BOM_UTF8 + b"b"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\0b", "binary"),
        (b"\x89PNG\r\n\x1a\n\0", "UTF-8"),
        (b"abc\xe9", r"byte 3"),
        (codecs.BOM_UTF32_LE + b"a\0\0\0", "UTF-32"),
        (codecs.BOM_UTF16_LE + b"a", "UTF-16"),
        (codecs.BOM_UTF16_LE + b"a\0\0\0", "binary"),
    ],
)
def test_what_is_no_text_is_named(data: bytes, words: str) -> None:
    with pytest.raises(Undecodable, match=words) as caught:
        decode(data, "x.bin")
    assert "x.bin" in caught.value.what


def test_half_a_character_cannot_be_written() -> None:
    with pytest.raises(Undecodable, match="position 1"):
        encode(TextFile(""), "a\ud800")


def test_the_ending_that_most_lines_have() -> None:
    assert decode(b"a\r\nb\r\nc\n").ending == "\r\n"
    assert decode(b"a\r\nb\nc\n").ending == "\n"
    assert decode(b"a").ending == "\n"


def test_md5() -> None:
    assert md5(b"") == "d41d8cd98f00b204e9800998ecf8427e"


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r\nbb\nccc\n\nd\re\x0cf\u2028g", "\n\n\n"])
def test_pieces_end_with_a_line_and_are_the_text(text: str) -> None:
    for size in range(1, 8):
        found = list(pieces(text, size))
        assert "".join(found) == text
        assert all(piece.endswith("\n") for piece in found[:-1])
        assert [line for piece in found for line in piece.splitlines()] == text.splitlines()


def test_a_long_text_is_in_pieces_of_about_a_megabyte() -> None:
    assert max(map(len, pieces("some words\n" * 200_000))) <= PIECE + len("some words\n")
