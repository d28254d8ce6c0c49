"""Text in the indentation of the file: carried over where it is certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.edits import indent
from tui_agent.edits.locate import carried, one_by_one

#: Lines of the search, of the file, new lines, and those as they go in; None where that is not certain.
CASES = {
    "deeper": (["a", "  b"], ["    a", "      b"], ["a", "  b", "  c"], ["    a", "      b", "      c"]),
    "deeper, or written for the file": (["a", "  b"], ["    a", "      b"], ["a", "  b", "    c"], None),
    "less deep": (["    a"], ["a"], ["    a", "        c", ""], ["a", "    c", ""]),
    "tabs": (["a", "    b"], ["\ta", "\t\tb"], ["a", "    b", "        c"], ["\ta", "\t\tb", "\t\t\tc"]),
    "tabs, and deeper": (["    a", "      b"], ["\ta", "\t\tb"], ["    z"], ["\tz"]),
    "blanks for tabs": (["\ta", "\t\tb"], ["    a", "        b"], ["\t\t\tc"], ["            c"]),
    "wider": (["a", "  b"], ["a", "    b"], ["a", "  c"], ["a", "    c"]),
    "wider, or deeper, with a line that is aligned": (
        ["    a"],
        ["        a"],
        ["    for x in (b,", "               c):", "      d"],
        None,
    ),
    "wider, or written for the file": (["a", "  b"], ["a", "    b"], ["    c"], None),
    "a tab that may be two blanks or four": (["a"], ["\ta"], ["a", "  b"], None),
    "tabs among blanks": (["  a"], ["\ta"], ["\t\tz"], None),
    "less than there is": (["     a"], ["    a"], ["z"], None),
    "a stray blank": ([" a", "    b", "    c"], ["a", "    b", "    c"], ["    z"], ["    z"]),
    "as deep as the stray one": ([" a", "    b", "    c"], ["a", "    b", "    c"], [" z"], None),
    "a lone stray blank": (["     a"], ["    a"], ["    z"], ["    z"]),
    "beside a lone stray blank": (["     a"], ["    a"], ["     z"], ["    z"]),
    "first line bare": (
        ["a", "        b"],
        ["    a", "        b"],
        ["a.z", "        y"],
        ["    a.z", "        y"],
    ),
    "bare, and another line altogether": (["a", "        b"], ["    a", "        b"], ["z"], None),
    "bare, then deeper": (["a"], ["    a"], ["if z:", "    y"], ["    if z:", "        y"]),
    "bare, then beside": (["a"], ["    a"], ["z", "    y"], None),
    "bare, and written for the file": (["a"], ["        a"], ["        z"], None),
    "bare, with a line that is bare too": (["a", "  b"], ["  a", "  b"], ["a", "c", "  b"], None),
    "only depths that the search text has": (["a", "  b"], ["a", " b"], ["  c"], [" c"]),
    "wider, like the search text": (["a", "  b"], ["a", "    b"], ["z", "  y"], ["z", "    y"]),
    "a blank line that is moved too": ([" a"], ["a"], [" z", " "], ["z", ""]),
    "only a blank line, with scales": (["   a"], ["  a"], ["   a", " "], ["  a", ""]),
    "only a blank line": ([" a", " b"], ["a", "b"], [" a", " ", " b"], ["a", "", "b"]),
    "moved beside a bare first line": (["a", "    b"], ["    a", "    b"], ["a", "        b"], None),
    "a bare first line that would jump": (
        ["a", "        b"],
        ["    a", "        b"],
        ["if z:", "            y"],
        None,
    ),
    "white space in place of an empty line": (
        ["   a", "", "    b", "    c"],
        ["    a", "", "    b", "    c"],
        ["    z", "    ", "    b", "    c"],
        ["    z", "    ", "    b", "    c"],
    ),
    "white space, wider": (
        ["  a", "    b"],
        ["    a", "        b"],
        ["  a", "  ", "    c"],
        ["    a", "    ", "        c"],
    ),
    "white space, less deep": (["  a", "  b"], ["a", "b"], ["  a", "    ", "  c"], ["a", "  ", "c"]),
    "white space, less deep than empty lines": (
        ["  a", "", "  b"],
        ["a", "", "b"],
        ["  z", "  ", "  b"],
        ["z", "  ", "b"],
    ),
    "in place of a closing bracket": (["]", "        b"], ["    ]", "        b"], ["z", "        b"], None),
    "first line bare, as deep as the next, which is less deep now": (
        ["a, b,", "        c"],
        ["        a, b,", "        c"],
        ["a,", "    b,", "    c,"],
        None,
    ),
    "first line bare, as deep as the next": (
        ["a, b,", "        c"],
        ["        a, b,", "        c"],
        ["a,", "        c"],
        ["        a,", "        c"],
    ),
    "one became two": (["a", "b"], ["  a", "    b"], ["z"], None),
}


@pytest.mark.parametrize(("search", "found", "new", "result"), CASES.values(), ids=CASES.keys())
def test_lines_are_carried_over(
    search: list[str], found: list[str], new: list[str], result: list[str] | None
) -> None:
    ties = one_by_one(len(search))
    assert carried(search, found, new, ties, indent.unit(["x", *found])) == result


def test_the_star_of_a_comment_may_have_a_stray_blank_or_be_wider() -> None:
    assert carried(["  */", "a"], [" */", "a"], ["  */", "b {", "    c"], one_by_one(2), 2) is None


def test_text_within_code_may_have_half_a_level() -> None:
    search, found = [" " * 16 + "a", " " * 20 + "b"], [" " * 8 + "a", " " * 10 + "b"]
    assert carried(search, found, [" " * 8 + "y", " " * 12 + "z"], one_by_one(2), 4) is None


def test_the_width_of_a_level_is_the_most_common_step() -> None:
    assert indent.unit(["a", "  b", "  c", "a", "  b", "      d"]) == 2
    assert indent.unit(["a", "\tb"]) == 4


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), min_size=1),
    st.integers(1, 8),
    st.integers(0, 3),
)
def test_a_block_that_was_moved_as_a_whole_is_found_again(
    block: list[tuple[int, str]], unit: int, deeper: int
) -> None:
    written = [" " * unit * depth + letter for depth, letter in block]
    there = [" " * deeper + line for line in written]
    new = [line.upper() for line in written]
    assert carried(written, there, new, one_by_one(len(written)), unit) == [line.upper() for line in there]


@pytest.mark.parametrize(
    ("line", "found"), [("x", ["x"]), ("  x", ["   x"]), ("   x", None), ("    x", None)]
)
def test_a_depth_that_no_pair_explains_is_uncertain(line: str, found: list[str] | None) -> None:
    pairs = [("", ""), (" ", "  "), ("  ", "   ")]
    readings = indent.readings([line], pairs, 4, [0])
    assert all(one == found for one in readings) and bool(readings) is (found is not None)
