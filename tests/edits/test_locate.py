"""The ladder: each rung in its order, two equal places, never a wrong one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import forms
from tui_agent.edits.locate import RUNGS, locate, lowest
from tui_agent.edits.source_text import SourceText, cuts
from tui_agent.errors import Ambiguous, EditFailed

FILE = """import os

class A:
    def first(self):
        return get(self.url)

    def second(self):
        return put(self.url)
"""


def edit(base: str, search: str, replace: str, threshold: float = 0.9) -> tuple[str, str]:
    request = ChangeRequest("a.py", edits=(EditHunk(search, replace),))
    proposal = forms.propose(request, base, threshold)
    assert proposal.new_text is not None
    return proposal.new_text, proposal.rung


LADDER = [
    ("exact", FILE, "get(self.url)", "get(self.url, 5)", "get(self.url)", "get(self.url, 5)"),
    (
        "line-endings",
        FILE.replace("\n", "\r\n"),
        "first(self):\n        return get(",
        "first(self):\n        return got(",
        "get(",
        "got(",
    ),
    ("line-endings", FILE, "first(self):\r\n", "one(self):\r\n", "first", "one"),
    (
        "trailing-space",
        FILE.replace("first(self):", "first(self):  \t"),
        "    def first(self):\n        return get(",
        "    def first(self):\n        return got(",
        "get(",
        "got(",
    ),
    ("trailing-space", FILE, "return get(self.url)   ", "return 1", "return get(self.url)", "return 1"),
    (
        "line-numbers",
        FILE,
        "4:     def first(self):\n5:         return get(self.url)",
        "4:     def first(self):\n5:         return 1",
        "return get(self.url)",
        "return 1",
    ),
    (
        "line-numbers",
        FILE,
        "5:         return get(self.url)\n",
        "        return 1\n",
        "return get(self.url)",
        "return 1",
    ),
    (
        "indentation",
        FILE,
        "def first(self):\n    return get(self.url)\n",
        "def first(self):\n    if x:\n        y()\n    return get(self.url)\n",
        "        return get",
        "        if x:\n            y()\n        return get",
    ),
    (
        "indentation",
        FILE.replace("    ", "\t"),
        "    def first(self):\n        return get(self.url)\n",
        "    def first(self):\n        if x:\n            return get(self.url)\n",
        "\t\treturn get",
        "\t\tif x:\n\t\t\treturn get",
    ),
    (
        "indentation",
        FILE,
        "            return get(self.url)\n",
        "            return 1\n",
        "return get(self.url)",
        "return 1",
    ),
    (
        "look-alikes",
        FILE.replace("import os", "x = “a” – ‘b’\u00a0c"),
        "x = \"a\" - 'b' c",
        "x = 1",
        "x = “a” – ‘b’\u00a0c",
        "x = 1",
    ),
    (
        "look-alikes",
        FILE,
        "return get(self.url)".replace(" ", "\u00a0"),
        "return 1",
        "return get(self.url)",
        "return 1",
    ),
    (
        "anchored",
        FILE.replace("get(self.url)\n", "get(self.url)\n        # end\n"),
        "    def first(self):\n        return get(self.url)\n\n    def second(self):\n",
        "    def first(self):\n        return 1\n\n    def second(self):\n",
        "return get(self.url)",
        "return 1",
    ),
    (
        "near",
        FILE,
        "    def first(self):\n        return get( self.url )\n",
        "    def first(self):\n        return 1\n",
        "return get(self.url)",
        "return 1",
    ),
]


@pytest.mark.parametrize(("rung", "base", "search", "replace", "old", "new"), LADDER)
def test_each_rung_finds_the_place_and_changes_nothing_else(
    rung: str, base: str, search: str, replace: str, old: str, new: str
) -> None:
    ending = "\r\n" if "\r\n" in base else "\n"
    assert edit(base, search, replace) == (base.replace(old, new.replace("\n", ending)), rung)


def test_the_rungs_are_named_in_their_order() -> None:
    assert list(dict.fromkeys(case[0] for case in LADDER)) == list(RUNGS)
    assert lowest("exact", "near") == lowest("near", "") == "near"


@pytest.mark.parametrize(
    ("base", "search", "lines"),
    [
        ("a = 1\nb = 2\na = 1\n", "a = 1", "lines 1 and 3"),
        ("a.a.a\n", "a.a", "lines 1 and 1"),
        ("  x()\n\ty\n  x()\n", "    x()\n", "lines 1 and 3"),
        ("x  \ny\nx \ny\n", "x\ny\n", "lines 1 and 3"),
        ("q = “a”\nz\nq = “a”\n", 'q = "a"', "lines 1 and 3"),
        ("x\n" * 9, "x", "lines 1, 2, 3, 4 and 5 more"),
    ],
)
def test_two_equal_places_are_an_error_that_names_both(base: str, search: str, lines: str) -> None:
    with pytest.raises(Ambiguous, match=lines):
        edit(base, search, "    new\n")


def test_two_places_that_are_equally_near_are_an_error() -> None:
    block = "def alpha(first, second):\n    return first %s second\n"
    with pytest.raises(Ambiguous, match="lines 1 and 4"):
        edit(block % "+ " + "\n" + block % " +", block % "+", "gone")


@pytest.mark.parametrize(
    ("base", "search"),
    [
        ("load_users()\n", "load_orders()"),
        ("version = 1.0.0\n", "version = 1.0.1"),
        ("version = 1.0.0\n", "version = 1.0"),
        ("timeout = 30\n", "timeout = 3"),
        ("load_users\n", "load_user"),
        ("max = 1\n", "x = 1"),
        ('say("hello", to=world)\n', 'say("hallo", to=world)'),
        ("count += step_of(alpha)\n", "count -= step_of(alpha)"),
        (FILE, "    def first(self):\n        return gett(self.url)\n"),
        (FILE, "    def third(self):\n        return get(self.url)\n"),
    ],
)
def test_another_name_number_string_or_operator_is_another_place(base: str, search: str) -> None:
    for text in (search, search.rstrip("\n") + "\n"):
        with pytest.raises(EditFailed):
            edit(base, text, "gone\n")


@pytest.mark.parametrize(
    ("base", "search", "replace"),
    [
        ("a\nb\n", "a\n", "a\nnew()\n"),
        ("import os\nimport sys\n", "import os", "import os\nimport sys"),
        ("import os\nimport sys\n", "import sys\n", "import os\nimport sys\n"),
        ("x = 1  # one\n", "x = 1", "x = 1  # one"),
        ("if ready:\n    go(now)\n", "go(now)", "if ready:\n    go(now)"),
        ("def new_name():\n    pass\n", "def old_name():\n", "def new_name():\n"),
    ],
)
def test_an_edit_that_has_been_made_is_not_made_again(base: str, search: str, replace: str) -> None:
    made = base.replace("b\n", "new()\nb\n") if base == "a\nb\n" else base
    with pytest.raises(EditFailed, match="already there"):
        edit(made, search, replace)


def test_a_copied_line_number_tells_between_equal_places() -> None:
    assert edit("x = 1\n\nx = 1\n", "3: x = 1", "3: x = 2") == ("x = 1\n\nx = 2\n", "line-numbers")


def test_what_is_nowhere_names_the_nearest_lines() -> None:
    with pytest.raises(EditFailed, match=r"5:         return get\(self\.url\)"):
        edit(FILE, "        yield get(self.uri, None)", "x")


@pytest.mark.parametrize(
    "search", ["y", "   ", "\n\n\n\n", "&lt;", "return pull(self.url)", "def third(self):", ""]
)
def test_what_is_nowhere_is_never_put_somewhere(search: str) -> None:
    with pytest.raises(EditFailed):
        edit(FILE.replace("y", "i"), search, "x")


def test_entities_are_never_unescaped() -> None:
    with pytest.raises(EditFailed):
        edit("if a < b:\n", "if a &lt; b:\n", "x")
    assert edit("x = 1\n", "x = 1", "x = '&lt;'")[0] == "x = '&lt;'\n"


def test_a_trailing_space_does_not_end_a_word() -> None:
    with pytest.raises(EditFailed):
        edit("foobar\n", "foo ", "x")


def test_a_near_match_can_be_ruled_out() -> None:
    search = "    def first(self):\n        return get( self.url )\n"
    with pytest.raises(EditFailed):
        edit(FILE, search, "x", forms.NEVER_NEAR)


def test_what_the_edit_does_not_change_stays_as_the_file_has_it() -> None:
    base = "s = “q”  \nt = 2\n"
    assert edit(base, 's = "q"\nt = 2\n', 's = "q"\nt = 3\n')[0] == "s = “q”  \nt = 3\n"
    near = "def function_of_mine(alpha, beta):\n    return  alpha\n    # end\n"
    text, rung = edit(
        near, near.replace("  alpha", " alpha"), near.replace("  alpha", " alpha").replace("# end", "# END")
    )
    assert (text, rung) == (near.replace("# end", "# END"), "near")


def test_whole_lines_are_not_glued_to_the_next_one() -> None:
    assert edit("a\nb\nc\n", "b\n", "x")[0] == "a\nx\nc\n"
    assert edit("a\nb\nc\n", "b\n", "")[0] == "a\nc\n"


NAMES = st.text(alphabet="abcdef(). \t", max_size=12)


@given(st.lists(NAMES, min_size=1, max_size=12), st.data())
def test_text_that_stands_once_is_found_exactly_there(lines: list[str], data: st.DataObject) -> None:
    text = "".join(line + "\n" for line in lines)
    start = data.draw(st.integers(0, len(text) - 1))
    search = text[start : data.draw(st.integers(start + 1, len(text)))]
    assume(text.find(search) == text.rfind(search))
    assume(not cuts(text, start) and not cuts(text, start + len(search)))
    # Brackets alone are identified by their indentation, so they are refused if they occur in another one.
    assume(any(map(str.isalnum, search)) or text.count(search.strip()) == 1)
    before = text[:start].rsplit("\n", 1)[-1]
    assume(before.strip() or not before)  # else the new lines get the indentation that the search text lacks
    place = locate(SourceText(text), EditHunk(search, "X\n" if search.endswith("\n") else "X", "it"))
    assert (place.start, place.end, place.rung) == (start, start + len(search), "exact")


@given(st.lists(NAMES, min_size=1, max_size=10, unique_by=str.strip), st.data())
def test_lines_in_another_indentation_are_never_put_in_a_wrong_place(
    lines: list[str], data: st.DataObject
) -> None:
    text = "".join(line + "\n" for line in lines)
    first = data.draw(st.integers(0, len(lines) - 1))
    count = data.draw(st.integers(1, len(lines) - first))
    block = lines[first : first + count]
    search = "".join(f"        {line}  \n" if line.strip() else "\n" for line in block)
    try:
        place = locate(SourceText(text), EditHunk(search, search, "it"))
    except EditFailed:
        return
    assert place.text == text[place.start : place.end]
    assert first <= place.line < first + count


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_nothing_but_an_edit_error_is_raised(base: str, search: str, replace: str) -> None:
    try:
        edit(base, search, replace)
    except EditFailed:
        pass


def test_many_lines_that_are_nearly_there_twice_are_an_error_that_names_both() -> None:
    block = "".join(f"    step_{number}(alpha, beta)\n" for number in range(8))
    with pytest.raises(Ambiguous, match="lines 1 and 10"):
        edit(block + "other\n" + block, block.replace("step_3(alpha", "step_3( alpha"), "gone")
