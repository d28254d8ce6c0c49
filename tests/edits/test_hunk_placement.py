"""All hunks of a file together: contradictions, edits that were made, places that two want."""

from __future__ import annotations

import pytest
from support.edit_requests import by_diff

from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import forms
from tui_agent.errors import EditFailed

TWINS = "x = 1\ny = 2\n\nz = 3\n\nx = 1\ny = 2\n"
BLOCKS = "def f(x):\n    return get(x)\n\n\ndef g(x):\n    return get(x)\n"


def diffed(base: str, diff: str) -> str:
    return forms.propose(by_diff(diff), base).new_text or ""


def edited(base: str, *pairs: tuple[str, str]) -> str:
    edits = tuple(EditHunk(*pair) for pair in pairs)
    return forms.propose(ChangeRequest("a.py", edits=edits), base).new_text or ""


@pytest.mark.parametrize("whole", [False, True])
def test_a_bracket_alone_is_no_place_where_others_differ_from_it_in_depth_only(whole: bool) -> None:
    hunk = EditHunk("  }\n", "  }\n}\n", whole=whole)
    assert forms.propose(ChangeRequest("a.js", edits=(hunk,)), "f {\n  }\n").new_text == "f {\n  }\n}\n"
    with pytest.raises(EditFailed, match="2 places, in lines 2 and 3"):
        forms.propose(ChangeRequest("a.js", edits=(hunk,)), "f {\n    }\n  }\n")


@pytest.mark.parametrize(
    ("made", "diff"),
    [
        (TWINS.replace("2", "3", 1), "@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"),
        (BLOCKS.replace("get", "put", 1), "@@ def f(x):\n-    return get(x)\n+    return put(x)\n"),
        ("def f():\n    a\n    b\n\ndef g():\n    a\n", "@@ def f():\n+    a\n+    b\n"),
    ],
)
def test_the_same_edit_asked_for_again_does_not_land_on_a_twin(made: str, diff: str) -> None:
    with pytest.raises(EditFailed, match="already there"):
        diffed(made, diff)


def test_a_copied_line_number_of_an_edit_that_was_made_does_not_lead_to_a_twin() -> None:
    search = "1: x = 1\n2: y = 2\n"
    assert edited(TWINS, (search, "x = 1\ny = 3\n")) == TWINS.replace("y = 2", "y = 3", 1)
    with pytest.raises(EditFailed, match="already there"):
        edited(TWINS.replace("y = 2", "y = 3", 1), (search, "x = 1\ny = 3\n"))


def test_an_edit_that_was_made_and_is_found_again_in_another_layout_is_not_made_twice() -> None:
    base = "import a\n\nlimits = {\n    # in all\n    'one': 1,  # first\n}\n"
    search = "\n\nlimits = {# in all\n          'one': 1, # first\n         }\n"
    with pytest.raises(EditFailed, match="already there"):
        edited(base, (search, "\nlimits = {\n    # in all\n    'one': 1,  # first\n}\n"))


def test_a_sign_that_the_file_has_elsewhere_is_still_a_slip_where_it_has_a_plain_one() -> None:
    base = "# ‘quoted’\nname = 'one'\n"
    with pytest.raises(EditFailed, match="not certain"):
        edited(base, ("# ‘quoted’\nname = ’one’\n", "# ‘quoted’\nname = ’two’\n"))


def test_a_header_that_names_lines_in_another_layout_contradicts_an_exact_place_however_little_is_said() -> (
    None
):
    base = "a:\n    x = 1\n    y = 2\nb:\n  x = 1\n  y = 2\n"
    with pytest.raises(EditFailed, match="layout only"):
        diffed(base, "@@ -5,2 +5,2 @@\n     x = 1\n-    y = 2\n+    y = 3\n")


def test_a_header_decides_where_a_line_may_lack_the_blank_in_front() -> None:
    base = "a\n  }\n\nb\n    }\n\nc\n"
    assert diffed(base, "@@ -2,2 +2,3 @@\n    }\n+  x\n \n") == base.replace("  }\n", "  }\n  x\n", 1)


def test_the_stars_of_a_comment_may_lack_the_blank_in_front_too() -> None:
    base = "/**\n * Words\n */\n\nx\n"
    assert diffed(base, "@@ -2,3 +2,4 @@\n * Words\n */\n\n+y\n") == base.replace("\n\n", "\n\ny\n")


def test_a_line_that_begins_with_a_backslash_may_lack_its_blank() -> None:
    assert diffed("\\section{a}\nb\n", "@@ -1,2 +1,2 @@\n\\section{a}\n-b\n+c\n") == "\\section{a}\nc\n"


def test_a_hunk_that_says_little_is_not_placed_elsewhere_than_its_header_says() -> None:
    with pytest.raises(EditFailed, match="another layout"):
        diffed("        }\n    }\n  };\n", "@@ -2,2 +2,3 @@\n     }\n+    x\n   }\n")


def test_a_header_that_names_a_near_place_and_lines_that_are_elsewhere_contradict_each_other() -> None:
    hunk = " def load(users):\n-    send(users)\n+    send(None)\n"
    base = "def load( users ):\n    send( users )\n\n\ndef load(users):\n    send(users)\n"
    with pytest.raises(EditFailed, match="line 1, where lines are"):
        diffed(base, f"@@ -1,2 +1,2 @@\n{hunk}")
    assert diffed(base, f"@@ -5,2 +5,2 @@\n{hunk}") == diffed(base, f"@@ -3,2 +3,2 @@\n{hunk}")


@pytest.mark.parametrize(
    "pairs",
    [
        (("x = 1", "x = 2"), ("x = 1", "x = 3")),
        (("x = 1", "x = 1  # one"), ("x = 1", "x = 3")),
        (("x = 1\ny = 2\n", "a\n"), ("y = 2\n", "b\n")),
    ],
)
def test_of_two_different_edits_of_one_place_neither_wins(pairs: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(EditFailed, match="edit 2 is of lines that an edit before it changes"):
        edited("x = 1\ny = 2\n", *pairs)


def test_two_edits_that_add_lines_below_one_line_are_both_made() -> None:
    assert edited("a\nz\n", ("a", "a\nb"), ("a", "a\nc")) == "a\nb\nc\nz\n"


@pytest.mark.parametrize(
    ("base", "search", "replace"),
    [
        ("f(a, b);\n", "b)", "c)"),
        ("x = [one, two]\n", "one", "three"),
        ("a = 1; b = 2\n", "a = 1", "a = 3"),
        ("f(a,)\n", "f(a", "f(b"),
    ],
)
def test_part_of_a_line_may_end_before_a_comma(base: str, search: str, replace: str) -> None:
    assert edited(base, (search, replace)) == base.replace(search, replace)


@pytest.mark.parametrize(("search", "replace"), [("})()", "};\n"), ("})()", "}\n"), ("})()", "};")])
def test_a_semicolon_of_the_file_is_neither_doubled_nor_left_alone(search: str, replace: str) -> None:
    with pytest.raises(EditFailed, match="ends before a `;`"):
        edited("x = (() => {\n})();\ny()\n", (search, replace))


@pytest.mark.parametrize(
    "at",
    [
        "...",
        "-XX,7 +XX,8",
        "(lines 11-13) @@",
        "... existing code ... @@",
        "-?,? +?,?",
        "-N +N",
        "-2,1",
        "2,1",
        "-2,+2",
        "line 2",
        "-5,2 +5,2",
        "...  @@ def f(x):",
        "",
    ],
    ids=repr,
)
def test_a_header_whose_numbers_cannot_be_read_is_none(at: str) -> None:
    hunk = " def g(x):\n-    return get(x)\n+    return put(x)\n"
    wanted = "return put(x)".join(BLOCKS.rsplit("return get(x)", 1))
    for header in (f"@@ {at} @@\n", f"@@ {at}\n"):
        assert diffed(BLOCKS, header + hunk) == wanted


def test_typographic_signs_that_only_a_new_line_has_stay() -> None:
    base = "title = 'a - b'\nend\n"
    assert edited(base, ("title = 'a - b'\n", "title = “a – b”\n")) == "title = “a – b”\nend\n"


def test_typographic_signs_where_the_file_has_plain_ones_are_not_guessed_at() -> None:
    base = "title = 'a - b'\nend\n"
    with pytest.raises(EditFailed):
        edited(base, ("title = ‘a - b’\nend\n", "title = ‘a - c’\nend\n"))
    assert edited(base, ("title = ‘a - b’\nend\n", "title = ‘a - b’\nEND\n")) == base.replace("end", "END")


def test_more_edits_than_can_be_looked_for_in_a_long_file_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "_MOST_LOOKED_THROUGH", 100)
    assert edited("a\n" * 20 + "b\n", ("b", "c"), ("b\n", "b\n")).endswith("c\n")
    with pytest.raises(EditFailed, match="so long a file"):
        edited("a\n" * 30 + "b\n", ("b", "c"), ("b\n", "b\n"))


F_MADE = "def f(x):\n    return put(x)\n\n\ndef g(x):\n    return get({}){}\n"
G_MADE = "def f(x):\n    return get(x)\n\n\ndef g(x):\n    return put(x)\n"


@pytest.mark.parametrize("twin", [F_MADE.format(" x ", ""), F_MADE.format("x", "  ")])
def test_an_edit_of_one_line_that_was_made_is_not_made_in_a_line_that_is_only_alike(twin: str) -> None:
    with pytest.raises(EditFailed, match="already there, in line 2"):
        edited(twin, ("    return get(x)\n", "    return put(x)\n"))


@pytest.mark.parametrize(
    "diff",
    [
        "@@ -6 +6 @@\n-    return get(x)\n+    return put(x)\n",
        "*** Update File: a.py\n@@\n-    return get(x)\n+    return put(x)\n*** End of File\n",
    ],
)
def test_a_hunk_that_was_made_where_it_says_is_not_made_in_its_twin(diff: str) -> None:
    for base in (G_MADE, f"# added above\n{G_MADE}"):
        with pytest.raises(EditFailed, match="already there"):
            diffed(base, diff)
