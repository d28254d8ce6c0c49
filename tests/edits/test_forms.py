"""Every form a model writes, against a file that is there and one that is not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.edit_requests import by_diff

from tui_agent.answers import markers, prose
from tui_agent.answers.values import ChangeRequest, EditHunk
from tui_agent.edits import forms
from tui_agent.edits.change import diff_of, unified
from tui_agent.edits.source_text import SourceText, every
from tui_agent.errors import Ambiguous, EditFailed

BASE = "import os\n\n\ndef f(x):\n    return get(x)\n\n\ndef g(x):\n    return get(x)\n"
NEW = BASE.replace("def g(x):\n    return get(x)", "def g(x):\n    return put(x)")


def propose(base: str | None, **form: Any) -> forms.Proposal:
    request = by_diff(form["diff"]) if "diff" in form else ChangeRequest("a.py", **form)
    return forms.propose(request, base)


def edits(*pairs: tuple[str, str]) -> tuple[EditHunk, ...]:
    return tuple(EditHunk(search, replace) for search, replace in pairs)


SWAP = "-    return get(x)\n+    return put(x)\n"
HEADERS = "--- a/a.py\n+++ b/a.py\n"
DIFFS = {
    "as git writes it": f"{HEADERS}@@ -7,3 +7,3 @@\n \n def g(x):\n{SWAP}",
    "with git's own lines": f"diff --git a/a.py b/a.py\nindex 1..2\n{HEADERS}@@ -8,2 +8,2 @@\n def g(x):\n{SWAP}",
    "wrong line numbers": f"{HEADERS}@@ -70,3 +99,3 @@\n \n def g(x):\n{SWAP}",
    "wrong counts": f"@@ -8,20 +8,1 @@\n def g(x):\n{SWAP}",
    "no file headers": f"@@ -8,2 +8,2 @@\n def g(x):\n{SWAP}".rstrip("\n"),
    "no header at all": f" def g(x):\n{SWAP}",
    "no numbers": f"@@\n def g(x):\n{SWAP}",
    "an anchor": f"@@ def g(x):\n{SWAP}",
    "blank context without its mark": f"@@ -6,4 +6,4 @@\n\n\n def g(x):\n{SWAP}\n\n",
    "context without its mark": f"@@ -8 +8 @@\ndef g(x):\n{SWAP}",
    "carriage returns": f"@@ -8,2 +8,2 @@\n def g(x):\n{SWAP}".replace("\n", "\r\n"),
    "an envelope": f"*** Begin Patch\n*** Update File: a.py\n@@ def g(x):\n{SWAP}*** End Patch",
    "an envelope without its ends": f"*** Update File: a.py\n@@\n def g(x):\n{SWAP}",
    "line numbers tell equal places apart": f"@@ -9,1 +9,1 @@\n{SWAP}",
    "end of file": f"@@\n{SWAP}*** End of File\n",
}


@pytest.mark.parametrize("diff", DIFFS.values(), ids=DIFFS.keys())
def test_a_diff_is_placed_by_its_lines(diff: str) -> None:
    assert propose(BASE, diff=diff).new_text == NEW


def test_a_diff_that_fits_twice_is_an_error() -> None:
    with pytest.raises(Ambiguous, match="lines 5 and 9"):
        propose(BASE, diff="@@ -70 +70 @@\n-    return get(x)\n+    return put(x)\n")


def test_hunks_stand_in_order_and_that_tells_equal_places_apart() -> None:
    diff = (
        "@@\n def f(x):\n-    return get(x)\n+    return one(x)\n@@\n-    return get(x)\n+    return two(x)\n"
    )
    assert propose(BASE, diff=diff).new_text == BASE.replace("get", "one", 1).replace("get", "two", 1)


@pytest.mark.parametrize(
    "diff",
    [
        "@@ -5,0 +6 @@\n+    added\n",
        "@@ -1 +1 @@\n-nowhere to be found in it\n+x\n",
        "@@ -1 +1 @@\n",
        "words",
        "Binary files a/a.py and b/a.py differ",
    ],
)
def test_a_diff_without_a_certain_place_is_refused(diff: str) -> None:
    with pytest.raises(EditFailed):
        propose(BASE, diff=diff)


def test_a_diff_says_what_becomes_of_the_last_newline() -> None:
    gone = "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"
    made = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
    assert propose("a\n", diff=gone).new_text == "b"
    assert propose("a", diff=made).new_text == "b\n"


def test_a_diff_of_a_new_file() -> None:
    diff = "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    [request] = prose.changes(diff).changes
    assert forms.propose(request, None) == forms.Proposal("create", "one\ntwo\n")
    assert propose(None, diff="@@ -0,0 +1 @@\n+one\n").new_text == "one\n"


def test_an_envelope_moves_and_changes() -> None:
    [request] = prose.changes(
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def g(x):\n-    return get(x)\n"
        "+    return put(x)\n*** End Patch"
    ).changes
    assert forms.propose(request, BASE) == forms.Proposal("rename", NEW, "b.py", "exact")


@given(st.lists(st.sampled_from(["a", "b", "", " c", "-d", "+e", "@@ f", "--- g"]), max_size=12), st.data())
def test_a_diff_that_was_made_from_two_texts_gives_the_second(lines: list[str], data: st.DataObject) -> None:
    base = "".join(f"{number} {line}\n" for number, line in enumerate(lines))
    chosen = data.draw(
        st.lists(st.sampled_from([*base.splitlines(keepends=True), "new\n", "\n"]), max_size=12)
    )
    new = "".join(chosen)
    diff = unified(diff_of("a.py", base, new))
    if diff and base and new:
        [request] = markers.requests(diff, ChangeRequest(""))
        assert isinstance(request, ChangeRequest)
        try:
            assert forms.propose(request, base).new_text == new
        except EditFailed:
            assert "\n+" in diff  # lines that are only added at the very edge have no context


@pytest.mark.parametrize(
    ("base", "pairs", "new"),
    [
        ("a b c\n", [("a", "1"), ("c", "3")], "1 b 3\n"),
        ("a b c\n", [("c", "3"), ("a", "1")], "1 b 3\n"),
        ("a\n", [("a", "b"), ("b", "c")], "c\n"),
        ("a b\n", [("a", "b"), ("b", "c")], "b c\n"),
        ("x y x\n", [("x", "z"), ("x", "z")], "z y z\n"),
        ("a.b.c\n", [("a.b", "X"), ("X.c", "Y")], "Y\n"),
        ("a\nb\n", [("a\n", ""), ("b\n", "")], ""),
        ("a\n", [("a", "a"), ("a", "b")], "b\n"),
    ],
)
def test_edits_are_looked_for_in_the_file_and_then_in_what_was_written(
    base: str, pairs: list[tuple[str, str]], new: str
) -> None:
    assert propose(base, edits=edits(*pairs)).new_text == new


def test_the_lowest_rung_of_all_edits_is_named() -> None:
    assert propose("a\nb  \nc\n", edits=edits(("a", "1"), ("b\nc", "2"))).rung == "trailing-space"


@pytest.mark.parametrize(
    "pairs", [[("a", "1"), ("gone", "2")], [("", "x")], [("a", "1"), ("", "x")], [("x", "1"), ("x", "2")]]
)
def test_one_edit_without_a_place_refuses_the_change(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(EditFailed):
        propose("a x x\n", edits=edits(*pairs))


def test_a_file_that_is_not_there() -> None:
    assert propose(None, content="x\r\n") == forms.Proposal("create", "x\r\n")
    assert propose(None, edits=edits(("", "x\n"))) == forms.Proposal("create", "x\n")
    for form in (
        {"delete": True},
        {"rename_to": "b"},
        {"edits": edits(("a", "b"))},
        {"diff": "@@\n-a\n+b\n"},
        {},
    ):
        with pytest.raises(EditFailed, match=r"a\.py"):
            propose(None, **form)


def test_delete_and_rename() -> None:
    assert propose("x", delete=True) == forms.Proposal("delete")
    assert propose("x", rename_to="b.py") == forms.Proposal("rename", None, "b.py")
    assert propose("x\n", rename_to="b.py", content="y\n") == forms.Proposal("rename", "y\n", "b.py")


@pytest.mark.parametrize(
    ("base", "content", "new"),
    [
        ("a\nb\n", "a\nc", "a\nc\n"),
        ("a\nb", "a\nc\n", "a\nc"),
        ("a\nb", "a\nb\n", "a\nb\n"),
        ("a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nX\nc\n", "a\r\nb\nX\r\nc\r\n"),
        ("a\rb\r", "a\nc\n", "a\rc\r"),
        ("\ufeffa\n", "b\n", "\ufeffb\n"),
        ("a\n", "\ufeffb\n", "b\n"),
        ("a\n", "", ""),
        ("", "b", "b"),
        ("a\fb\u2028c\n", "a\fb\u2028d\n", "a\fb\u2028d\n"),
    ],
)
def test_endings_mark_and_last_newline_stay_under_whole_content(base: str, content: str, new: str) -> None:
    assert propose(base, content=content).new_text == new


@pytest.mark.parametrize("base", ["a\r\nb\r\nc", "\ufeffa\r\nb\nc\r\n", "a\nb\nc", "a\rb\rc\r"])
def test_endings_mark_and_last_newline_stay_under_edits_and_diffs(base: str) -> None:
    wanted = base.replace("b", "X")
    assert propose(base, edits=edits(("a\nb\n", "a\nX\n"))).new_text == wanted
    assert propose(base, diff="@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n").new_text == wanted


ELISIONS = [
    "# ... rest unchanged ...",
    "// ... existing code ...",
    "/* rest of the file remains the same */",
    "    # (the rest of the code stays the same)",
    "<!-- ... -->",
    "# …",
    "// Rest of code here",
    "... rest of the file ...",
    "[... unchanged ...]",
    "{/* ... other handlers ... */}",
    "-- other functions unchanged",
]


@pytest.mark.parametrize("remark", ELISIONS)
def test_an_elision_is_refused_in_every_form(remark: str) -> None:
    for form in (
        {"content": f"import os\n{remark}\n"},
        {"edits": edits(("import os", f"import os\n{remark}"))},
        {"diff": f"@@\n-import os\n+{remark}\n"},
    ):
        with pytest.raises(EditFailed, match="leaves something out"):
            propose(BASE, **form)


@pytest.mark.parametrize(
    "line",
    [
        "# keep the rest for later",
        "x = f(...)  # see below",
        "# the same as before? no: faster",
        "print('...')",
        "# Other helpers",
    ],
)
def test_ordinary_lines_are_no_elisions(line: str) -> None:
    assert propose("import os\n", content=f"import os\n{line}\n").new_text


def test_a_remark_that_the_file_has_may_stay() -> None:
    base = "x = 1\n# ... rest unchanged ...\n"
    assert propose(base, content=base.replace("1", "2")).new_text == base.replace("1", "2")


@given(st.text(max_size=80), st.text(max_size=120))
def test_no_diff_raises_anything_but_an_edit_error(base: str, diff: str) -> None:
    for text in (diff, "@@\n" + diff, "*** Begin Patch\n*** Update File: a\n" + diff):
        for request in markers.requests(text, ChangeRequest("a.py")):
            if isinstance(request, ChangeRequest):
                with suppress(EditFailed):
                    forms.propose(request, base)


def test_many_edits_in_a_long_file() -> None:
    base = "".join(f"line number {number} of the file\n" for number in range(5000))
    pairs = [(f"number {number} of", f"NUMBER {number} of") for number in range(0, 5000, 100)]
    text = propose(base, edits=edits(*pairs)).new_text or ""
    assert text.count("NUMBER") == 50


def test_edits_that_reach_into_each_other_are_made_one_after_the_other() -> None:
    base = "a\nb\nc\nd\n"
    pairs = (("c\nd\n", "C\nD\n"), ("a\n", "A\n"), ("b\nC\n", "B\nC2\n"), ("D\n", "DD\n"))
    assert propose(base, edits=edits(*pairs)).new_text == "A\nB\nC2\nDD\n"


def test_more_edits_than_can_be_found_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_HUNKS", 2)
    base = "a\nb\nc\n"
    assert propose(base, edits=edits(("a", "A"), ("b", "B"))).new_text == "A\nB\nc\n"
    with pytest.raises(EditFailed, match="3 hunks"):
        propose(base, edits=edits(("a", "A"), ("b", "B"), ("c", "C")))
    with pytest.raises(EditFailed, match="3 hunks"):
        propose(base, diff="".join(f"@@ -{n} +{n} @@\n-{t}\n+{t}{t}\n" for n, t in enumerate("abc", 1)))


LINE = st.sampled_from(["a", "b", "", "ab", "b "])


@given(st.lists(LINE, max_size=30), st.lists(LINE, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_a_place_is_found_by_its_lines_where_a_search_through_the_text_finds_it(
    lines: list[str], wanted: list[str], begun: bool, ended: bool
) -> None:
    source = SourceText("\n".join(lines) + "\n")
    text = ("" if begun else "b\n") + "\n".join(wanted) + ("\n" if ended else "")
    assert not text or source.every(text) == every(source.text, text)


def test_a_diff_that_removes_a_file_shows_lines_that_it_has() -> None:
    gone = "--- a/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-{}\n"
    [right] = markers.requests(gone.format("a = 1"), ChangeRequest("m.py"))
    [wrong] = markers.requests(gone.format("z = 1"), ChangeRequest("m.py"))
    assert isinstance(right, ChangeRequest) and isinstance(wrong, ChangeRequest)
    assert forms.propose(right, "a = 1\n").kind == "delete"
    with pytest.raises(EditFailed, match="lines that the file does not have"):
        forms.propose(wrong, "a = 1\n")


@pytest.mark.parametrize(
    ("new", "found"),
    [
        ("a\n<<<<<<< SEARCH\nb\n", "<<<<<<< SEARCH"),
        ("a\n>>>>>>> REPLACE  \n", ">>>>>>> REPLACE"),
        ("*** Begin Patch\n", "*** Begin Patch"),
        ("<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", "<<<<<<< ours"),
        ("<<<<<<< ours\na\n>>>>>>> theirs\n", ""),
        ("=======\n>>>>>>> theirs\n", ""),
        ("<<<<<<< ours\na\n=======\nb\n", ""),
        (" <<<<<<< SEARCH\n", ""),
        ("Title\n=======\n", ""),
        ("<<<<<<< " + "x" * 300 + "\n=======\n>>>>>>> y\n", "<<<<<<< " + "x" * 192),
    ],
)
def test_a_leftover_marker_is_found_unless_the_file_had_it(new: str, found: str) -> None:
    assert forms.leftover_marker("a\n", new) == found
    assert forms.leftover_marker(new, new) == ""


@pytest.mark.parametrize(
    ("first", "then", "text"),
    [
        ({"edits": (("a", "A"),)}, {"edits": (("c", "C"),)}, "A\nb\nC\n"),
        ({"edits": (("a", "x"),)}, {"edits": (("x", "y"),)}, "y\nb\nc\n"),
        ({"content": "x\ny\n"}, {"edits": (("y", "Y"),)}, "x\nY\n"),
        ({"edits": (("a", "A"),)}, {"content": "new\n"}, None),
        ({"edits": (("a", "A"),)}, {"edits": (("a", "B"),)}, None),
    ],
)
def test_further_steps_are_located_in_the_file_or_in_the_result(
    first: dict[str, Any], then: dict[str, Any], text: str | None
) -> None:
    def request(fields: dict[str, Any], **more: Any) -> ChangeRequest:
        edits = tuple(EditHunk(*pair) for pair in fields.get("edits", ()))
        return ChangeRequest("x.py", content=fields.get("content"), edits=edits, **more)

    asked = request(first, then=(request(then),))
    if text is None:
        with pytest.raises(EditFailed):
            forms.propose(asked, "a\nb\nc\n")
    else:
        assert forms.propose(asked, "a\nb\nc\n").new_text == text


@pytest.mark.parametrize(
    ("fields", "base", "kind", "text"),
    [
        ({"executable": True}, "a\n", "edit", "a\n"),
        ({"rename_to": "y.py"}, "a\n", "rename", None),
        ({"content": "b\n"}, None, "create", "b\n"),
        ({"edits": (EditHunk("", "b\n"),)}, "", "edit", "b\n"),
        ({"edits": (EditHunk(" \n", "b\n"),)}, None, "create", "b\n"),
        ({"diff": (EditHunk("", "b\n", final_newline=False),)}, None, "create", "b"),
    ],
)
def test_the_kind_of_a_change(fields: dict[str, Any], base: str | None, kind: str, text: str | None) -> None:
    made = forms.propose(ChangeRequest("x.py", **fields), base)
    assert (made.kind, made.new_text) == (kind, text)


@pytest.mark.parametrize(
    ("fields", "base", "why"),
    [
        ({}, "a\n", "is empty"),
        ({"delete": True}, None, "does not exist"),
        ({"rename_to": "y.py"}, None, "does not exist"),
        ({"edits": (EditHunk("a", "b"),)}, None, "nothing to search in"),
        ({"edits": (EditHunk("q", "b"),)}, "a\n", "."),
    ],
)
def test_a_change_that_cannot_be_made(fields: dict[str, Any], base: str | None, why: str) -> None:
    with pytest.raises(EditFailed, match=why):
        forms.propose(ChangeRequest("x.py", **fields), base)
