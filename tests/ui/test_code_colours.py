from __future__ import annotations

from rich.style import Style

from tui_agent.edits.change import Diff, Hunk
from tui_agent.ui.diff.diff_lines import DiffLines
from tui_agent.ui.widgets.syntax import LONGEST, DiffColours, StyleSpan, SyntaxColours, layered

STYLES = {"comment": Style(italic=True), "string": Style(bold=True), "number": Style(underline=True)}


def words(lines: list[str], row: int, language: str = "python") -> dict[str, Style]:
    found = SyntaxColours(lines, language, STYLES).of(row)
    return {lines[row][start:end]: style for start, end, style in found}


def test_lines_have_the_colours_of_their_syntax():
    lines = ["x = 'a'  # why\n", "y = 12\n"]
    assert words(lines, 0) == {"'a'": STYLES["string"], "# why": STYLES["comment"]}
    assert words(lines, 1) == {"12": STYLES["number"]}


def test_what_goes_over_several_lines_colours_each_of_them():
    lines = ["x = '''one\n", "  two\n", "'''\n"]
    assert words(lines, 1) == {"  two": STYLES["string"]}


def test_places_are_counted_in_characters():
    lines = ["é = '日本'  # ü\n"]
    assert words(lines, 0) == {"'日本'": STYLES["string"], "# ü": STYLES["comment"]}


def test_a_removed_line_has_the_colours_of_the_base_and_an_added_one_those_of_the_new_text():
    diff = Diff("a.py", ("x = 1\n", "y = 2\n"), (Hunk(0, ("x = 1\n",), ("'''x\n", "= 1'''\n")),))
    colours = DiffColours(diff, STYLES)
    said = [[(c.start, c.end, c.style) for c in colours.of(line)] for line in DiffLines(diff).lines]
    number, string = STYLES["number"], STYLES["string"]
    assert said == [[(4, 5, number)], [(0, 4, string)], [(0, 6, string)], [(4, 5, number)]]


def test_unknown_languages_and_long_texts_are_shown_without():
    for diff in (
        Diff("notes.unknown", (), (Hunk(0, (), ("x = 1\n",)),)),
        Diff("a.py", (), (Hunk(0, (), ("x = 1\n",) * (LONGEST + 1)),)),
    ):
        colours = DiffColours(diff, STYLES)
        assert colours.of(DiffLines(diff).lines[0]) == []


def test_layers_lie_over_each_other_and_lose_no_text():
    base, one, two = Style(dim=True), Style(bold=True), Style(italic=True)
    segments = layered("abcdef", base, [StyleSpan(1, 4, one), StyleSpan(3, 9, two)])
    assert [(segment.text, segment.style) for segment in segments] == [
        ("a", base),
        ("bc", base + one),
        ("d", base + one + two),
        ("ef", base + two),
    ]
    assert layered("", base, []) == []
