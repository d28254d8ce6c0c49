"""A text for many searches: words apart from layout, offsets of normalized lines, places of a search text."""

from __future__ import annotations

import pytest

from tui_agent.answers.values import EditHunk
from tui_agent.edits import source_text
from tui_agent.edits.locate import changes
from tui_agent.edits.source_text import NormalizedText, SourceText, Span, bare_end, cuts, every, key, spans


@pytest.mark.parametrize(
    ("line", "other", "same"),
    [
        ("f(a,b)", "f( a , b );", True),
        ('x = "a"', "x = 'a'", True),
        ("x = `a`", "x = 'a'", True),
        ("don't", "don t", False),
        ("don\u2019t", "don't", True),
        ("a\u2013b", "a - b", True),
        ("1.50x", "1. 50x", False),
        ('"a b"', '"a  b"', False),
        ("'", '"', True),
        ('"ab"', '"bb"', False),
        ('"ab"', '"aa"', False),
        ("''", "'", False),
        ("", "  ", True),
        ("x" * 2001, f" {'x' * 2001} ", True),
        (f"{'x' * 1000} {'y' * 1000}", f"{'x' * 1000}  {'y' * 1000}", False),
        (f"{'x' * 999} {'y' * 999}", f"{'x' * 999}  {'y' * 999}", True),
    ],
)
def test_lines_of_other_layout_have_one_key(line: str, other: str, same: bool) -> None:
    assert (key(line) == key(other)) is same


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("f(a, 'b c');", ["f", "(", "a", "'b c'", ")"]),
        ("  don't stop", ["don't", "stop"]),
        (f"  {'x' * 2000} ", ["x" * 2000]),
        (f" {' ' * 2000}", []),
    ],
)
def test_words_have_places(line: str, words: list[str]) -> None:
    assert [line[begin:end] for begin, end in spans(line)] == words


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("ab|cd", True),
        ("ab|_d", True),
        ("ab| d", False),
        ("|ab", False),
        ("ab|", False),
        ("1|.5", True),
        ("1.|5", True),
        ("1|.x", False),
        ("a|.5", False),
        ("a.|5", False),
        (".|5", False),
        ("1.|x", False),
        ("\u4e2d|\u6587", False),
        ("\u0e01|\u0e02", False),
    ],
)
def test_an_offset_may_cut_a_word(text: str, inside: bool) -> None:
    assert cuts(text.replace("|", ""), text.index("|")) is inside


def test_matches_overlap_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert every("aaaa", "aa") == [0, 1, 2]
    assert every("aaaa", "b") == []
    monkeypatch.setattr(source_text, "MOST_PLACES", 2)
    assert every("aaaa", "aa") == [0, 1]
    assert SourceText("x\nab\nx\nab\nx\nab\n").every("x\nab\n", whole=True) == [0, 5]


RAW = "\ufeffone\r\n  two  \r\nthree"


def test_a_text_has_lines_with_their_offsets_and_ends() -> None:
    source = SourceText(RAW)
    assert (source.raw, source.bom, source.ended, source.has_returns) == (RAW, "\ufeff", False, True)
    assert (source.text, source.lines, source.starts) == (
        "one\n  two  \nthree\n",
        ["one", "  two  ", "three"],
        [0, 4, 12, 18],
    )
    assert [source.line_of(at) for at in (0, 3, 4, 11, 12, 17)] == [0, 0, 1, 1, 2, 2]
    assert (source.stripped, source.has_blanks_only) == (["one", "two", "three"], True)
    assert source.keys(0, 2) == [key("one"), key("two")]
    assert SourceText("a b\nb\na\nbb").lines_with("b") == [0, 1, 3]
    empty = SourceText("")
    assert (empty.text, empty.lines, empty.ended, empty.bom, empty.has_returns) == ("", [], True, "", False)


@pytest.mark.parametrize(
    ("text", "only"),
    [("a\n  b\n", True), ("a\n\tb\n  c\n", False), ("\ta\n  b\n", False), ("a\n b\n", False)],
)
def test_only_blanks_may_indent_a_text(text: str, only: bool) -> None:
    assert SourceText(text).has_blanks_only is only


@pytest.mark.parametrize(
    ("text", "wanted", "whole", "found"),
    [
        ("a\nbb\nc\nbb\nc\n", "bb\nc", False, [2, 7]),
        ("a\nbb\nc\nabb\nc\n", "bb\nc\n", False, [2, 8]),
        ("a\nbb\nc\nabb\nc\n", "bb\nc\n", True, [2]),
        ("x\nlong\ny\nlong\nz\n", "x\nlong\ny", False, [0]),
        ("ax\nlong\nyy\n", "x\nlong\ny", False, [1]),
        ("long\n", "x\nlong\ny", False, []),
        ("a\na\na\n", "a\na\n", True, [0, 2]),
        ("b\naa\nb\n", "b\n", True, [0, 5]),
        ("ab\nb\n", "b", True, [3]),
    ],
)
def test_places_of_a_search_text(text: str, wanted: str, whole: bool, found: list[int]) -> None:
    assert SourceText(text).every(wanted, whole) == found


@pytest.mark.parametrize(
    ("wanted", "at_end", "at_start", "found"),
    [
        ("b\nc", False, False, [Span(2, 8, 0), Span(10, 13, 2)]),
        ("b\nc", True, False, [Span(2, 8, 0)]),
        ("b\nc", False, True, [Span(10, 13, 2)]),
        ("c\n", True, False, [Span(6, 9, 1)]),
        ("a b\n", False, True, [Span(0, 6, 0)]),
        ("cd\n", True, True, [Span(12, 15, 3)]),
    ],
)
def test_offsets_of_lines_without_trailing_blanks(
    wanted: str, at_end: bool, at_start: bool, found: list[Span]
) -> None:
    #       0     6    9   12
    text = "a b  \nc \n b\ncd\n"
    assert NormalizedText(SourceText(text), bare_end).spans(wanted, at_end, at_start) == found


def test_two_forms_of_lines() -> None:
    source = SourceText("a \u201cb\u201d \t\n")
    assert source.without_trailing.lines == ["a \u201cb\u201d"]
    assert source.looking_alike.lines == ['a "b"']


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("abc", "axyc", [(1, 2, 1, 3)]),
        ("abc", "abc", []),
        ("abcd", "xbd", [(0, 1, 0, 1), (2, 3, 2, 2)]),
        ("ab", "abc", [(2, 2, 2, 3)]),
    ],
)
def test_changed_parts(old: str, new: str, parts: list[tuple[int, int, int, int]]) -> None:
    assert list(changes(old, new)) == parts


@pytest.mark.parametrize(
    ("marks", "context", "added"),
    [
        (" -++ ", (1, 1), ["x", "y"]),
        ("  +", (2, 0), ["y"]),
        ("", (0, 0), ["a", "x", "y", "c"]),
    ],
)
def test_marks_of_a_diff_tell_context_from_added_lines(
    marks: str, context: tuple[int, int], added: list[str]
) -> None:
    hunk = EditHunk("a\nb\nc", "a\nx\ny\nc", marks=marks)
    assert (hunk.context, hunk.added) == (context, added)
