"""Text in the indentation of the file: carried over where it is certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.edits import indent


@pytest.mark.parametrize(
    ("search", "found", "replaced", "result"),
    [
        (["a", "  b"], ["    a", "      b"], ["a", "  b", "    c"], ["    a", "      b", "        c"]),
        (["    a"], ["a"], ["    a", "        c", ""], ["a", "    c", ""]),
        (["a", "    b"], ["\ta", "\t\tb"], ["a", "    b", "        c"], ["\ta", "\t\tb", "\t\t\tc"]),
        (["    a", "      b"], ["\ta", "\t\tb"], ["  z"], ["z"]),
        (["\ta", "\t\tb"], ["    a", "        b"], ["\t\t\tc"], ["            c"]),
        (["a"], ["\ta"], ["a", "  b"], None),
        (["  a"], ["\ta"], ["\t\tz"], None),
        (["    a"], ["  a"], ["z"], None),
    ],
)
def test_lines_are_carried_over(
    search: list[str], found: list[str], replaced: list[str], result: list[str] | None
) -> None:
    known = indent.mapping(search, found)
    assert known is not None
    assert indent.reindented(replaced, known) == result


def test_one_indentation_that_became_two_is_not_certain() -> None:
    assert indent.mapping(["a", "b"], ["  a", "    b"]) is None


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
    known = indent.mapping(written, there)
    assert known is not None
    assert indent.reindented(written, known) == there
