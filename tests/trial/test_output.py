"""What is kept and shown of a command's output."""

from __future__ import annotations

import pytest

from tui_agent.context.excerpts import head_and_tail
from tui_agent.trial import output
from tui_agent.trial.output import Output, plain

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
    monkeypatch.setattr(output, "HEAD", 100)
    monkeypatch.setattr(output, "TAIL", 100)
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
