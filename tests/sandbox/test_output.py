"""What is kept and shown of a command's output."""

from __future__ import annotations

import pytest

from tui_agent.context.blocks import head_and_tail
from tui_agent.sandbox import run
from tui_agent.sandbox.run import Output, plain

SHOWN = [
    ("plain\n", "plain\n"),
    ("10 %\r50 %\r100 %\ndone\n", "100 %\ndone\n"),
    ("line\r\nnext\r\n", "line\nnext\n"),
    ("abc\b\bX\n", "aX\n"),
    ("\x1b[31mred\x1b[0m\n", "red\n"),
    ("\x1b]0;a title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "textlink\n"),
    ("\x1b[2J\x1b[H\x1b[?1049hfull screen\n", "full screen\n"),
    ("\x1bP+q544e\x1b\\after\x07\n", "after\n"),
    ("\x1b]52;c;aGFjaw==\x07clipboard\n", "clipboard\n"),
    ("cut in the middle \x1b]0;no end", "cut in the middle "),
    ("one \x1b]0;no end\ntwo\nthree\n", "one \ntwo\nthree\n"),
    ("\x1bPone\x1b]two\x1b[31mthree\n", "three\n"),
]


@pytest.mark.parametrize(("printed", "shown"), SHOWN)
def test_it_is_what_a_terminal_would_show_in_the_end(printed: str, shown: str) -> None:
    assert plain(printed) == shown


def test_colours_can_be_kept() -> None:
    assert plain("\x1b[1;31mred\x1b[0m \x1b[2K\n", colours=True) == "\x1b[1;31mred\x1b[0m \n"


def test_head_and_tail_are_kept_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HEAD", 100)
    monkeypatch.setattr(run, "TAIL", 100)
    kept = Output()
    for number in range(1000):
        kept.add(f"line {number}\n".encode())
    content = kept.content()
    assert content.startswith(b"line 0\nline 1\n")
    assert content.endswith(b"line 998\nline 999\n")
    assert len(content) < 300
    assert f"[{kept.cut:,} bytes are not kept]".encode() in content
    assert kept.size == sum(len(f"line {number}\n") for number in range(1000))
    assert kept.last_line() == "line 999"


def test_a_model_gets_whole_lines_of_both_ends_and_how_many_are_missing() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    shown, left = head_and_tail(text, 400)
    assert len(shown) < 450
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 999")
    assert f"[{left} lines left out]" in shown
    assert shown.count("\n") + left == 1000
    assert head_and_tail("short\n", 400) == ("short\n", 0)
    assert "characters left out" in head_and_tail("x" * 1000, 100)[0]


def test_long_lines_are_cut_in_their_middle_and_both_ends_of_the_output_arrive() -> None:
    long = "{" + "x" * 9000 + "}"
    text = "\n".join(
        ["FAILED test_first", long, *(f"line {number}" for number in range(20)), long, "1 failed"]
    )
    shown, left = head_and_tail(text, 4000)
    assert left == 0
    assert shown.startswith("FAILED test_first\n{xxx")
    assert shown.endswith("xxx}\n1 failed")
    assert "line 19" in shown
    assert shown.count(" characters left out] ") == 2
    assert len(shown) <= 4000
    many, left = head_and_tail("\n".join(["begin", *[long] * 50, "the end"]), 4000)
    assert many.startswith("begin\n")
    assert many.endswith("the end")
    assert left > 40
    assert len(many) < 4400


def test_a_line_is_not_cut_inside_a_colour() -> None:
    line = "".join(f"\x1b[38;5;{number % 256}mword" for number in range(2000))
    shown, _ = head_and_tail(line, 1000)
    assert plain(shown, colours=True) == shown
    assert "\x1b" not in plain(shown)
    assert ";5;" not in plain(shown)


@pytest.mark.parametrize("shape", ["first", "last", "only"])
def test_an_end_of_an_output_without_line_breaks_is_shown(shape: str) -> None:
    long, rest = b"<" + b"x" * 600_000 + b">", b"".join(b"line %d\n" % n for n in range(40_000))
    kept = Output()
    kept.add({"first": long + b"\n" + rest, "last": b"first\n" + rest + long, "only": long}[shape])
    shown, cut, _ = run.printed(kept, 16_000)
    assert shown.startswith({"first": "<xxx", "last": "first\n", "only": "<xxx"}[shape])
    assert shown.rstrip().endswith({"first": "line 39999", "last": "xxx>", "only": "xxx>"}[shape])
    assert cut > 0 or shape == "only"
    assert len(shown) < 17_000


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ([b"abcd", b"ef"], b"abcdef"),
        ([b"abcde", b"fghij"], b"abcdefghij"),
        ([b"abcdefghij"], b"abcdefghij"),
        ([b"abcde", b"fghi", b"jkl"], b"abcdefghijkl"),
        ([b"abcde", b"fghij", b"k"], b"abcdefghijk"),
        ([b"abcde", b"fgh", b"ijklm"], b"abcde\n[3 bytes are not kept]\nijklm"),
        ([b"abcde", b"fgh", b"ijkl", b"m"], b"abcde\n[3 bytes are not kept]\nijklm"),
    ],
)
def test_a_tail_is_kept_in_whole_pieces(
    monkeypatch: pytest.MonkeyPatch, pieces: list[bytes], kept: bytes
) -> None:
    monkeypatch.setattr(run, "HEAD", 5)
    monkeypatch.setattr(run, "TAIL", 5)
    output = Output()
    for piece in pieces:
        output.add(piece)
    assert output.content() == kept
    assert output.size == sum(map(len, pieces))
    assert output.cut == (3 if b"[3 " in kept else 0)


@pytest.mark.parametrize(
    ("text", "size", "shown"),
    [
        (b"one\ntwo\n", 8, (b"one\ntwo\n", 0)),
        (b"aa\nbb\ncc\ndd\n", 8, (b"aa\n[2 lines left out]\ndd\n", 2)),
        (b"aa\nbbbbbb\ncc\n", 8, (b"aa\n[7 bytes left out]\ncc\n", 1)),
        (b"x" * 20, 8, (b"xxxx\n[12 bytes left out]\nxxxx", 0)),
    ],
)
def test_both_ends_of_an_output_end_at_lines(text: bytes, size: int, shown: tuple[bytes, int]) -> None:
    output = Output()
    output.add(text)
    assert output.ends(size) == shown


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        ([], ""),
        ([b"one\ntwo\n \n"], "two"),
        ([b"one\n", b"\x1b[31m  two\x1b[0m  "], "two"),
        ([b"a\rb"], "b"),
        ([b"\n\n"], ""),
    ],
)
def test_the_last_line_with_text(pieces: list[bytes], line: str) -> None:
    output = Output()
    for piece in pieces:
        output.add(piece)
    assert output.last_line() == line


def test_the_last_line_is_found_in_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HEAD", 4)
    output = Output()
    for piece in (b"one\n", b"two\n", b"4", b"5\n"):
        output.add(piece)
    assert output.last_line() == "45"


def test_colours_are_returned_beside_the_text_if_there_are_any() -> None:
    output = Output()
    output.add(b"\x1b[31mred\x1b[0m\n")
    assert run.printed(output, 100) == ("red\n", 0, "\x1b[31mred\x1b[0m\n")
    plain_one = Output()
    plain_one.add(b"red\x07\x00\n")
    assert run.printed(plain_one, 100) == ("red\n", 0, "")
    assert plain("a\b\bb\rc\r\n\r", colours=True) == "c\n"
