"""Find and replace in lines, and the brackets that belong together."""

from __future__ import annotations

import pytest

from tui_agent.edits import search
from tui_agent.edits.search import Occurrence, Search, near, partner
from tui_agent.errors import EditFailed

LINES = ["one Two", "two two", "", "twofold (two)"]


@pytest.mark.parametrize(
    ("words", "options", "found"),
    [
        ("two", {}, [(0, 4, 7), (1, 0, 3), (1, 4, 7), (3, 0, 3), (3, 9, 12)]),
        ("Two", {"case": True}, [(0, 4, 7)]),
        ("TWO", {}, [(0, 4, 7), (1, 0, 3), (1, 4, 7), (3, 0, 3), (3, 9, 12)]),
        ("(two)", {}, [(3, 8, 13)]),
        (r"\btwo\b", {"expression": True}, [(0, 4, 7), (1, 0, 3), (1, 4, 7), (3, 9, 12)]),
        (r"\btwo\b", {"expression": True, "case": True}, [(1, 0, 3), (1, 4, 7), (3, 9, 12)]),
        (r"^t", {"expression": True}, [(1, 0, 1), (3, 0, 1)]),
        ("three", {}, []),
    ],
)
def test_occurrences_are_found_in_order(
    words: str, options: dict[str, bool], found: list[tuple[int, int, int]]
) -> None:
    result = Search(words, **options).occurrences(LINES)
    assert [tuple(one) for one in result.found] == found and not result.more


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ((1, 0), None, [(1, 0), (1, 4), (3, 0), (3, 9)]),
        ((1, 1), None, [(1, 4), (3, 0), (3, 9)]),
        ((0, 0), (1, 7), [(0, 4), (1, 0), (1, 4)]),
        ((0, 0), (1, 6), [(0, 4), (1, 0)]),
        ((1, 4), (1, 7), [(1, 4)]),
        ((0, 0), (9, 0), [(0, 4), (1, 0), (1, 4), (3, 0), (3, 9)]),
    ],
)
def test_a_range_limits_the_search(
    start: tuple[int, int], end: tuple[int, int] | None, found: list[tuple[int, int]]
) -> None:
    assert [one[:2] for one in Search("two").occurrences(LINES, start, end).found] == found


def test_an_occurrence_is_looked_up_by_its_ends() -> None:
    found = Search("two").occurrences(LINES)
    assert found.exactly((1, 4), (1, 7)) == Occurrence(1, 4, 7)
    assert found.exactly((1, 4), (1, 6)) is None
    assert found.exactly((1, 5), (1, 7)) is None
    assert found.exactly((9, 0), (9, 3)) is None


def test_too_many_are_cut_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST", 3)
    result = Search("a").occurrences(["aaa", "a", "a"])
    assert result.more and len(result.found) == 3
    assert not Search("a").occurrences(["aaa"]).more


@pytest.mark.parametrize(
    ("words", "expression", "template", "expected"),
    [
        ("two", False, r"\1", {0: r"one \1", 1: r"\1 \1", 3: r"\1fold (\1)"}),
        (r"(t)(wo)\b", True, r"\2\1", {0: "one woT", 1: "wot wot", 3: "twofold (wot)"}),
        (r"(?P<all>^t)wo", True, r"\g<all>\n", {1: "t\n two", 3: "t\nfold (two)"}),
    ],
)
def test_all_are_replaced(words: str, expression: bool, template: str, expected: dict[int, str]) -> None:
    wanted = Search(words, expression=expression)
    assert wanted.all_replaced(LINES, wanted.occurrences(LINES).found, template) == expected


def test_errors_have_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EditFailed, match="The expression cannot be read"):
        Search("(", expression=True)
    wanted = Search("(t)wo", expression=True)
    with pytest.raises(EditFailed, match="The replacement cannot be read"):
        wanted.replaced("two", Occurrence(0, 0, 3), r"\2")
    with pytest.raises(EditFailed, match="changed meanwhile"):
        wanted.replaced("tow", Occurrence(0, 0, 3), "x")
    with pytest.raises(EditFailed, match="changed meanwhile"):
        wanted.replaced("two", Occurrence(0, 0, 2), "x")
    monkeypatch.setattr(search, "SECONDS", 0.0)
    with pytest.raises(EditFailed, match="takes longer"):
        wanted.occurrences(LINES)


CODE = ["f(a[0], {", "  'x': (1)", "}) ]"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((0, 1), (2, 1)),
        ((2, 1), (0, 1)),
        ((0, 3), (0, 5)),
        ((0, 5), (0, 3)),
        ((0, 8), (2, 0)),
        ((2, 0), (0, 8)),
        ((1, 7), (1, 9)),
        ((2, 3), None),
        ((0, 0), None),
        ((0, 99), None),
    ],
)
def test_a_bracket_has_a_partner(place: tuple[int, int], expected: tuple[int, int] | None) -> None:
    assert partner(CODE, place) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((0, 1), (0, 1)),
        ((0, 2), (0, 1)),
        ((0, 4), (0, 3)),
        ((0, 0), (0, 1)),
        ((1, 0), (1, 7)),
        ((2, 4), (2, 3)),
    ],
)
def test_the_nearest_bracket(place: tuple[int, int], expected: tuple[int, int]) -> None:
    assert near(CODE, place) == expected
    assert near(["no"], (0, 1)) is None
