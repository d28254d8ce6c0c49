"""What the terminal sends, read in pieces of any size, is the same events; its answers are none at all."""

from __future__ import annotations

import codecs
import tracemalloc
from collections.abc import Iterable
from random import Random

import pytest
from support.terminal_answers import ALL, cut, mixed
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

from tui_agent.ui.terminal_input import (
    LONGEST,
    OPEN_PASTE,
    SILENCE,
    BackgroundReported,
    PasteWaits,
    TerminalInput,
)

SENT = "a\x1b[200~one two\x00\n\x1b[201~b\x1b[A\x1b\x1b[200~three\x1b[201~\x1b[200~x\x1b[201~"
KEYS = [
    *(
        "a",
        "A",
        "]",
        "ü",
        "\r",
        "\t",
        "\x7f",
        "\x03",
        "\x1b[A",
        "\x1bOQ",
        "\x1b[15~",
        "\x1b[1;5D",
        "\x1b[[A",
        "\x1bx",
    ),
    *(
        "\x1b[27u",
        "\x1b[97;5u",
        "\x1b[13;3u",
        "\x1b[97;;97u",
        "\x1b[27;5;97~",
        "\x1b[200~pasted\x9b\x1b[201~",
    ),
    *("\x1b[<0;3;4M", "\x1b[<0;3;4m", "\x1b[<64;3;4M", "\x1b[57441;2u", "日"),
]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def words(found: Iterable[Message]) -> list[str]:
    """Keys, pastes and presses; of the focus nothing, and not where the mouse is."""
    said = []
    for event in found:
        match event:
            case events.Paste():
                said.append(f"paste {event.text!r}")
            case events.Key():
                said.append(event.key)
            case events.MouseMove():
                pass
            case events.MouseEvent():
                said.append(f"{type(event).__name__} {event.x},{event.y}")
            case PasteWaits():
                said.append("waits" if event.open else "waits no more")
    return said


def told(parser: TerminalInput | XTermParser, pieces: Iterable[str]) -> list[str]:
    return [word for piece in pieces for word in words(parser.feed(piece))]


def later(parser: TerminalInput, clock: Clock, seconds: float) -> list[str]:
    clock.now += seconds
    return words(parser.tick())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
def test_the_same_events_however_it_is_cut(size: int) -> None:
    pieces = [SENT[at : at + size] for at in range(0, len(SENT), size)]
    expected = ["a", r"paste 'one two\n'", "b", "up", "escape", "paste 'three'", "paste 'x'"]
    assert told(TerminalInput(), pieces) == expected
    assert told(XTermParser(), [SENT]) == expected


@pytest.mark.parametrize("key", [key for key in KEYS if "\x9b" not in key and "27;5;97" not in key])
def test_a_key_is_what_textual_takes_it_for(key: str) -> None:
    assert told(TerminalInput(), [key, "z"]) == told(
        XTermParser(), [key, "z"] if key != "\x1bx" else ["\x1b[120;3uz"]
    )


@pytest.mark.parametrize("answer", ALL, ids=lambda answer: repr(answer[:40]))
def test_an_answer_is_no_key_however_it_is_cut(answer: str) -> None:
    for size in (1, 2, 3, 1000):
        clock = Clock()
        parser = TerminalInput(clock=clock)
        for at in range(0, len(answer), size):
            assert told(parser, [answer[at : at + size]]) == [], at
            assert later(parser, clock, 0.01) == [], at
        assert told(parser, ["a"]) == ["a"]
        assert later(parser, clock, 60) == []


@pytest.mark.parametrize(
    "answer", [one for one in ALL if len(one) < 99], ids=lambda answer: repr(answer[:40])
)
@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_an_answer_cut_in_two_anywhere_is_no_key_before_any_key(answer: str, pause: float) -> None:
    for at in range(1, len(answer)):
        for key in ("T", "z", "\x1b[I", "\x1b[A", "\x1b[200~T\x1b[201~"):
            clock = Clock()
            parser = TerminalInput(clock=clock)
            said = told(parser, [answer[:at]]) + later(parser, clock, pause)
            said += told(parser, [answer[at:]]) + later(parser, clock, pause) + told(parser, [key])
            assert said + later(parser, clock, 60) == told(TerminalInput(), [key]), (at, key)


def test_what_is_typed_behind_the_focus_is_typed() -> None:
    for typed in ("T", "TE", "TERM", "TERMINAL", "TERM2", "Tt", "term2 ", "TERM2x", "ITERM2 3n"):
        for reads in (
            [f"\x1b[I{typed}"],
            ["\x1b[I", typed],
            ["\x1b[I", *typed],
            ["\x1b[", f"I{typed[0]}", *typed[1:]],
        ):
            clock = Clock()
            parser = TerminalInput(clock=clock)
            said = [word for one in reads for word in told(parser, [one]) + later(parser, clock, 0.02)]
            said += later(parser, clock, 60)
            assert said == told(TerminalInput(), typed), (typed, reads)
    clock = Clock()
    parser = TerminalInput(clock=clock)
    told(parser, ["\x1b[O\x1b[I"])
    assert told(parser, ["T"]) + later(parser, clock, 0.15) == ["T"], "a letter waits a tenth of a second"
    assert told(parser, ["T"]) == ["T"]
    assert told(parser, ["\x1b[ITE"]) == []
    assert words(parser.close()) == ["T", "E"]


def test_answers_between_keys_change_nothing() -> None:
    random = Random(1)
    for _ in range(100):
        keys = random.choices(KEYS, k=random.randint(1, 12))
        sent = cut(mixed(keys, random), random)
        assert told(TerminalInput(), sent) == told(TerminalInput(), keys), sent


def test_answers_between_keys_change_nothing_where_an_esc_comes_long_before_the_rest() -> None:
    random, late = (
        Random(3),
        [one for one in ALL if one[0] == "\x1b" and one[1] in "[]P_^X" and one.count("\x1b[") < 2],
    )
    for _ in range(200):
        answer, typed = random.choice(late), random.choice(KEYS)
        clock = Clock()
        parser = TerminalInput(clock=clock)
        assert told(parser, ["\x1b"]) + later(parser, clock, random.uniform(0.1, 0.9)) == ["escape"]
        said = [*told(parser, [answer[1:]]), *later(parser, clock, 0.01), *told(parser, [typed, "z"])]
        assert said == told(TerminalInput(), [typed, "z"]), (answer, typed)


def test_bytes_that_are_no_utf_8_are_c1_characters() -> None:
    decode = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape").decode
    sent = b"a\x9b?62;22cb\x9d11;rgb:1/2/3\x9cc\xc3\xa9\x90>|xterm\x9cd\xffe\x9b200~in\x9b201~"
    pieces = [decode(sent[at : at + 1]) for at in range(len(sent))]
    assert told(TerminalInput(), filter(None, pieces)) == [
        *"abcéd",
        "replacement_character",
        "e",
        "paste 'in'",
    ]


@pytest.mark.parametrize(
    "begun", ["\x1b]11;rgb:", "\x1bP>|a", "\x1b_G", "\x1b[?62;", "\x1b^", "\x1b[<0;1", "\x9d1"]
)
def test_what_never_ends_gives_the_keyboard_back(begun: str) -> None:
    clock = Clock()
    parser = TerminalInput(clock=clock)
    assert told(parser, [f"{begun}1"]) == []
    later(parser, clock, SILENCE)
    assert told(parser, ["ab"]) == ["a", "b"]
    for _ in range(int(LONGEST / 0.5) + 1):  # somebody types, and never waits
        told(parser, [f"{begun}1"] if clock.now < 101.5 else ["1"])
        later(parser, clock, 0.5)
    assert told(parser, ["ab"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("typed", "meant"), [("\x03", "ctrl+c"), ("\x1b[A", "up"), ("\x1b[27u", "escape"), ("\x1bOQ", "f2")]
)
def test_a_key_that_no_answer_holds_ends_one(typed: str, meant: str) -> None:
    assert told(TerminalInput(), ["\x1b]11;rgb:", typed, "a"]) == [meant, "a"]
    assert told(TerminalInput(), ["\x1b[?62;", typed, "a"]) == [meant, "a"]


def test_a_letter_with_alt_that_begins_an_answer_is_a_key_if_nothing_follows() -> None:
    clock = Clock()
    parser = TerminalInput(clock=clock)
    for letter, key in (("]", "alt+right_square_bracket"), ("P", "alt+shift+p"), ("O", "alt+shift+o")):
        assert told(parser, [f"\x1b{letter}"]) == []
        assert later(parser, clock, SILENCE) == [
            key if len(key) < 12 else words(XTermParser().feed(letter))[0]
        ]


@pytest.mark.parametrize("size", [1000, 5, 2])
def test_the_rest_of_an_answer_whose_esc_came_long_before_is_no_key(size: int) -> None:
    """Nor is it where more of it comes later still; an arrow is an arrow, and no letter."""
    for answer in [one for one in ALL if one[0] == "\x1b" and one[1] in "[]P_^X" and one.count("\x1b[") < 2]:
        clock = Clock()
        parser = TerminalInput(clock=clock)
        said = told(parser, ["\x1b"]) + later(parser, clock, 0.2)
        answer = answer if len(answer) < 99 else f"{answer[:90]}\x1b\\"
        for at in range(1, len(answer), size):
            said += told(parser, [answer[at : at + size]]) + later(parser, clock, 0.1)
        assert said == ["escape"], answer
        assert told(parser, ["a"]) + later(parser, clock, 60) == ["a"]
    parser = TerminalInput(clock=clock)
    assert told(parser, ["\x1b"]) + later(parser, clock, 0.2) == ["escape"]
    assert told(parser, ["["]) + later(parser, clock, 0.2) == ["left_square_bracket"]
    assert told(parser, ["1;5A"]) == ["ctrl+up"]


@pytest.mark.parametrize("end", ["\x1b\\", "\x9c", "\udc9c", "\a"])
def test_nor_is_it_where_only_its_first_character_comes_by_itself(end: str) -> None:
    for begun in ("]11;", "P>|", "_Gi=1;", "^", "X"):
        clock = Clock()
        parser = TerminalInput(clock=clock)
        said = told(parser, ["\x1b"]) + later(parser, clock, 0.2)
        said += told(parser, [begun[0], f"{begun[1:]}a A\rs U", f"{end[:1]}"]) + later(parser, clock, 0.5)
        assert said + told(parser, [f"{end[1:]}z"]) == ["escape", "z"], begun


def test_what_is_typed_behind_esc_is_typed() -> None:
    """All of it, in order, though some of it only when it is told from an answer."""
    clock = Clock()
    parser = TerminalInput(clock=clock)
    for reads in (
        "]",
        "[",
        "P",
        "A",
        "]]",
        "ab",
        "/x",
        "[x",
        "12",
        "X",
        "XX",
        "Xa\r",
        "^a",
        ("X", "abc", "d"),
    ):
        assert told(parser, ["\x1b"]) + later(parser, clock, 0.2) == ["escape"]
        said = told(parser, [reads] if isinstance(reads, str) else reads)
        assert len(said + later(parser, clock, 60)) == len("".join(reads)), reads
        assert told(parser, ["\x1b"]) + later(parser, clock, 0.2) == ["escape"]
        said = [word for one in "".join(reads) for word in told(parser, [one]) + later(parser, clock, 0.15)]
        assert said == told(TerminalInput(), "".join(reads)), reads
        later(parser, clock, 60)
    assert told(parser, ["\x1b"]) + later(parser, clock, 0.2) == ["escape"]
    assert told(parser, ["Xab", "c\x1b[Ad"]) == [*("X", "a", "b", "c"), "up", "d"]  # no answer holds an arrow


def test_who_goes_on_typing_behind_esc_sees_it_after_a_second() -> None:
    clock = Clock()
    parser = TerminalInput(clock=clock)
    said = told(parser, ["\x1b"]) + later(parser, clock, 0.2) + told(parser, ["Xa"])
    for _ in range(6):
        said += later(parser, clock, 0.2) + told(parser, ["b"])
    assert said == ["escape", "X", "a", *"bbbbbb"]
    parser.close()
    assert told(parser, ["\x1b"]) + later(parser, clock, 0.2) + told(parser, ["Xa"]) == ["escape"]
    assert words(parser.close()) == ["X", "a"]


def test_a_long_string_behind_esc_costs_no_memory_and_no_key() -> None:
    clock = Clock()
    parser = TerminalInput(clock=clock)
    assert told(parser, ["\x1b"]) + later(parser, clock, 0.2) == ["escape"]
    assert told(parser, ["X" + "aB\r" * 20_000 + "\x1b", "\\z"]) == ["z"]


def test_a_paste_without_its_end_waits_and_ends_at_ctrl_c() -> None:
    for ctrl_c in ("\x03", "\x1b[99;5u", "\x1b[27;5;99~"):
        clock = Clock()
        parser = TerminalInput(clock=clock)
        assert told(parser, ["\x1b[200~one \x03", "two\r"]) == []
        assert later(parser, clock, OPEN_PASTE - 0.1) == []
        assert later(parser, clock, 0.2) == ["waits"]
        assert later(parser, clock, 60) == []
        assert told(parser, ["a\x1b[A", *ctrl_c]) == ["waits no more", r"paste 'one \x03two\ra\x1b[A'"]
        assert told(parser, ["a"]) == ["a"]  # typed
        assert told(parser, ["the rest of it, which came late\r"]) == [
            r"paste 'the rest of it, which came late\r'"
        ]
        assert told(parser, ["\rand\x1b[201~b", "a longer burst of keys"]) == [
            *(r"paste '\rand'", "b"),
            *(word.replace(" ", "space") for word in "a longer burst of keys"),
        ]


def test_a_paste_right_behind_the_ctrl_c_that_ended_another_is_one_paste() -> None:
    clock = Clock()
    parser = TerminalInput(clock=clock)
    assert told(parser, ["\x1b[200~one"]) + later(parser, clock, 60) == ["waits"]
    assert told(parser, ["\x03\x1b[200~two", " three\x1b[201~a"]) == [
        *("waits no more", "paste 'one'"),
        *("paste 'two three'", "a"),
    ]


def test_a_paste_that_is_late_is_one_paste() -> None:
    clock = Clock()
    parser = TerminalInput(clock=clock)
    assert told(parser, ["\x1b[200~one"]) + later(parser, clock, 60) == ["waits"]
    assert told(parser, [" two\x1b[201", "~a"]) == ["waits no more", "paste 'one two'", "a"]


@pytest.mark.parametrize("answer", ["\x9fGi=1;OK\x9c", "\x9b?62;22c", "\udc90>|xterm a\udc9c"])
@pytest.mark.parametrize("end", ["\x1b[201~", "\x9b201~"])
def test_an_8_bit_answer_behind_a_paste_is_no_text_wherever_it_is_cut(end: str, answer: str) -> None:
    whole = f"\x1b[200~one{end}{answer}a"
    for first in range(1, len(whole)):
        for second in range(first, len(whole)):
            parts = [whole[:first], whole[first:second], whole[second:]]
            assert told(TerminalInput(), parts) == ["paste 'one'", "a"], parts


def test_what_was_pasted_is_handed_over_when_nothing_more_is_read() -> None:
    parser = TerminalInput()
    told(parser, ["\x1b[200~one"])
    assert words(parser.close()) == ["paste 'one'"]


def test_who_types_has_the_focus() -> None:
    parser = TerminalInput()
    kinds = [type(event).__name__ for event in parser.feed("\x1b[O\x1b[I\x1b[O\x1b[O\x1b[200~x\x1b[201~")]
    assert kinds == ["AppBlur", "AppFocus", "Paste"]


def test_megabytes_of_answers_cost_no_memory_and_no_key() -> None:
    random, parser = Random(2), TerminalInput()
    flood = "".join(random.choices(ALL, k=700))
    flood += "\x1b]52;c;" + "QUFh" * (10_000_000 // 4) + "\x1b\\" + "\x1b[I\x1b[O" * 1_000 + "\x1b[I"
    tracemalloc.start()
    said: list[str] = []
    for at in range(0, len(flood), 65536):
        said += told(parser, [flood[at : at + 65536]])
    assert told(parser, ["a\r"]) == ["a", "enter"]
    assert tracemalloc.get_traced_memory()[1] < 1_500_000
    tracemalloc.stop()
    assert not said


def test_a_long_paste_is_not_read_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(TerminalInput, "_key", lambda self, text, alt=False: read.append(text) or [])
    text = "a line of a log\n" * 50_000
    sent = f"\x1b[200~{text}\x1b[201~"
    found = (
        [
            event
            for at in range(0, len(sent), 4096)
            for event in TerminalInput.feed(parser, sent[at : at + 4096])
        ]
        if (parser := TerminalInput())
        else []
    )
    assert [event.text for event in found if isinstance(event, events.Paste)] == [text]
    assert not read


def test_a_letter_with_alt_is_a_key_and_no_letter() -> None:
    parser, found = TerminalInput(bound=lambda key: key == "alt+a"), []
    # of most terminals, of those that tell more, without a meaning
    for sent in ("\x1ba", "\x1b[97;3u", "\x1bx"):
        for event in parser.feed(sent):
            assert isinstance(event, events.Key)
            found.append((event.key, event.character, event.is_printable))
    assert found == [("alt+a", None, False), ("alt+a", None, False), ("alt+x", "x", True)]


@pytest.mark.parametrize(
    ("answer", "dark"),
    [
        ("\x1b]11;rgb:ffff/ffff/ffff\x07", False),
        ("\x1b]11;rgb:fdf6/e3e3/d0d0\x1b\\", False),
        ("\x1b]11;rgb:0000/2b2b/3636\x1b\\", True),
        ("\x9d11;rgba:1c/1c/1c/ff\x9c", True),
        ("\x1b]11;rgb:f/f/f\x07", False),
        ("\x1b]10;rgb:ffff/ffff/ffff\x07", None),
        ("\x1b]11;rgb:zzzz/0/0\x07", None),
        (f"\x1b]11;{'x' * 100_000}rgb:f/f/f\x07", None),
        ("\x1bP11;rgb:f/f/f\x1b\\", None),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 200_000])
def test_the_background_is_read_once_it_was_asked_for(answer: str, dark: bool | None, size: int) -> None:
    for asked in (True, False):
        reader = TerminalInput(background=asked)
        sent = "a" + answer + answer + "b"
        came = [one for at in range(0, len(sent), size) for one in reader.feed(sent[at : at + size])]
        assert [one.key for one in came if isinstance(one, events.Key)] == ["a", "b"]
        reported = [one.dark for one in came if isinstance(one, BackgroundReported)]
        assert reported == ([dark] if asked and dark is not None else [])
