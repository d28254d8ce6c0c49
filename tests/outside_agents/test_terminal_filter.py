"""The output of a program at a terminal: clipboard and titles are left out, modes are kept and put back."""

from __future__ import annotations

import random

import pytest

from tui_agent.outside_agents.terminal_filter import MOST_WAITING, TerminalFilter


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"plain \xc3\xa4 \x1b[1;31mred\x1b[m", b"plain \xc3\xa4 \x1b[1;31mred\x1b[m"),
        (b"a\x1b]52;c;c2VjcmV0\x07b", b"ab"),
        (b"a\x1b]52;c;c2VjcmV0\x1b\\b", b"ab"),
        (b"a\x1b]0;title\x07b\x1b]2;title\x1b\\c", b"abc"),
        (
            b"\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\",
            b"\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\",
        ),
        (b"\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\end", b"\x1b\\end"),
        (b"\x1bP$q m\x1b\\", b"\x1bP$q m\x1b\\"),
        (b"\x1b7\x1b8\x1bM", b"\x1b7\x1b8\x1bM"),
        (b"a\x1b]52;c;" + b"x" * (2 * MOST_WAITING) + b"\x07b", b"ab"),
        (b"a\x1bP" + b"x" * (2 * MOST_WAITING) + b"\x1b]52;c;eA==\x07b", b"ab"),
        (b"\x1b\x1b]52;c;eA==\x07b", b"b"),
        (b"\x1b\n]52;c;eA==\x07b", b"\n]52;c;eA==\x07b"),
        (b"\x1b\xc3\xa9]52;c;eA==\x07b", b"\xc3\xa9]52;c;eA==\x07b"),
        (b"\x1b]8;;x\x1b]52;c;eA==\x07b", b"b"),
        (b"\x1b]8;;x\x18\x1b]2;title\x07b", b"b"),
        (
            b"\xc2\x9d52;c;eA==\x07\xc2\xc2\x9d\x9d\xe2\x9d\xa4",
            b"\xef\xbf\xbd52;c;eA==\x07\xc2\xef\xbf\xbd\x9d\xe2\x9d\xa4",
        ),
        (b"\x1b%@\x9d52;c;eA==\x07\x1b G", b"\x9d52;c;eA==\x07"),
        (b"\x1b]5522;type=write\x1b\\\x1b]1337;Copy=:eA==\x07\x1bktitle\x1b\\\x1b_title\x1b\\b", b"b"),
        (b"\x1b]9;done\x07\x1b]9;4;1;50\x07\x1b]9;7;program\x07", b"\x1b]9;done\x07\x1b]9;4;1;50\x07"),
        (b"\x1bP0;1|17/726d\x1b\\\x1bPq#0\x1b\\", b"\x1bPq#0\x1b\\"),
        (b"\x1b[2t\x1b[22;0t\x1b[18t\x1b[5i\x1b[?5ib", b"\x1b[18tb"),
        (b"\x1b[1\n;2mb\x1b(B\x1b[?1$p", b"[1\n;2mb\x1b(B\x1b[?1$p"),
    ],
)
def test_what_passes_is_the_same_in_any_pieces(printed: bytes, shown: bytes) -> None:
    assert TerminalFilter().feed(printed) == shown
    chance = random.Random(printed[:9])
    for _ in range(5):
        filter_, got, at = TerminalFilter(), b"", 0
        while at < len(printed):
            size = chance.choice((1, 2, 7, len(printed)))
            got += filter_.feed(printed[at : at + size])
            at += size
            if size == 1 and len(printed) > 1000:
                got += filter_.feed(printed[at : at + MOST_WAITING])
                at += MOST_WAITING
        assert got == shown


def test_modes_are_put_back_and_set_again() -> None:
    filter_ = TerminalFilter()
    filter_.feed(
        b"\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?2004h\x1b[>1u\x1b[>5u\x1b[<u\x1b=\x1b[2 q\x1b[?1004h\x1b[?1004l"
    )
    assert filter_.is_full_screen
    left = filter_.leave()
    assert left.startswith(b"\x1b[?2026l")
    for part in (
        b"\x1b[?25h",
        b"\x1b[?1000l",
        b"\x1b[?1006l",
        b"\x1b[?2004l",
        b"\x1b[<1u",
        b"\x1b>",
        b"\x1b[0 q",
    ):
        assert part in left
    assert b"1004" not in left and left.index(b"?25h") < left.index(b"?1049l")
    again = filter_.again()
    assert again.startswith(b"\x1b[?1049h") and b"\x1b[?25l" in again and again.count(b"\x1b[>1u") == 1
    filter_.feed(b"\x1b[?1049l\x1b[>3u\x1b[!p")
    assert b"\x1b[?1000l" in filter_.leave() and b"\x1b[<1u" in filter_.leave()
    filter_.feed(b"\x1bc")
    assert not filter_.is_full_screen and filter_.again() == b""


@pytest.mark.parametrize(
    ("printed", "left", "again"),
    [
        (b"\x1b[>4;2m", b"\x1b[>4m", b"\x1b[>4;2m"),
        (b"\x1b[>4;2m\x1b[>4m", b"", b""),
        (b"\x1b[4h", b"\x1b[4l", b"\x1b[4h"),
        (b"\x1b[2;9r", b"\x1b7\x1b[r\x1b8", b""),
        (b"\x1b]11;#fff\x07\x1b]10;?\x07\x1b]9;4;1;9\x07", b"\x1b]111\x07\x1b]9;4;0\x07", b""),
        (b"\x1b[?1003h\x1b[?1003s\x1b[?1003l\x1b[?1003r", b"\x1b[?1003l", b"\x1b[?1003h"),
        # Each screen has its own stack of keyboards.
        (b"\x1b[>1u\x1b[?1049h\x1b[>7u", b"\x1b[<1u\x1b[?1049l\x1b[<1u", b"\x1b[>1u\x1b[?1049h\x1b[>7u"),
    ],
)
def test_what_a_program_leaves_behind_is_undone(printed: bytes, left: bytes, again: bytes) -> None:
    filter_ = TerminalFilter()
    filter_.feed(printed)
    assert filter_.leave() == b"\x1b[?2026l" + left + b"\x0f\x1b(B\x1b[m"
    assert filter_.again() == again
