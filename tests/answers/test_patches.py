"""Patches taken apart into files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_agent.answers.markers import is_envelope, requests, sections
from tui_agent.answers.unified import Section, hunks_of
from tui_agent.answers.values import ChangeRequest

HUNK = ("@@ -1 +1 @@", "-a", "+b")
HUNKS = hunks_of(HUNK)


def text(*lines: str) -> str:
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("patch", "found"),
    [
        (text("--- a/x.py", "+++ b/x.py", *HUNK), Section("x.py", "update", HUNKS)),
        (text("--- x.py\t2024-01-01", "+++ x.py\t2024-01-02", *HUNK), Section("x.py", "update", HUNKS)),
        (text("--- x.py.orig", "+++ x.py", *HUNK), Section("x.py", "update", HUNKS)),
        (
            text("diff --git a/x.py b/x.py", "--- a/x.py", "+++ b/x.py", *HUNK),
            Section("x.py", "update", HUNKS),
        ),
        (
            text(
                "diff --git a/x.py b/y.py",
                "similarity index 90%",
                "rename from x.py",
                "rename to y.py",
                "--- a/x.py",
                "+++ b/y.py",
                *HUNK,
            ),
            Section("x.py", "update", HUNKS, rename_to="y.py"),
        ),
        (text("diff --git a/x b/y", "rename from x", "rename to y"), Section("x", "update", rename_to="y")),
        (text("diff --git a/x b/x", "deleted file mode 100644"), Section("x", "delete")),
        (
            text("--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+b"),
            Section("x", "add", content="b\n"),
        ),
        (
            text("--- a/x", "+++ /dev/null", "@@ -1 +0,0 @@", "-b"),
            Section("x", "delete", hunks_of(("@@ -1 +0,0 @@", "-b"))),
        ),
        (text('--- "a/\\303\\251 x"', '+++ "b/\\303\\251 x"', *HUNK), Section("é x", "update", HUNKS)),
        (text("--- a/my file.py", "+++ b/my file.py", *HUNK), Section("my file.py", "update", HUNKS)),
        (text(*HUNK), Section("", "update", HUNKS)),
        (text("*** Update File: x.py", *HUNK), Section("x.py", "update", HUNKS)),
    ],
)
def test_one_file(patch: str, found: Section) -> None:
    [section] = sections(patch)
    assert replace(section, short=False) == found


def test_a_removed_line_of_dashes_is_no_header() -> None:
    patch = text("--- a/x.sql", "+++ b/x.sql", "@@ -1,3 +1,2 @@", " a", "--- a comment", "+++ plus", " b")
    [section] = sections(patch)
    assert [(hunk.old, hunk.new) for hunk in section.hunks] == [("a\n-- a comment\nb\n", "a\n++ plus\nb\n")]


@pytest.mark.parametrize(
    ("body", "old", "new", "line"),
    [
        (["@@ -3,4 +3,4 @@", " a", "", "no mark", "-b", "+c", "", ""], "a\n\nno mark\nb\n", "a\n\nno mark\nc\n", 2),
        (["@@ -3,6 +3,6 @@", " a", "", "no mark", "-b", "+c", "", ""], "a\n\nno mark\nb\n", "a\n\nno mark\nc\n", 2),
        (["@@ -3,9 +3,9 @@", " a", "-b", "+c"], "a\nb\n", "a\nc\n", None),
        (["@@ -3,2 +4,2 @@", " a", "-b", "+c"], "a\nb\n", "a\nc\n", None),
        (["@@ -0,0 +1 @@", "+c"], "", "c\n", 0),
        (["-b", "+c"], "b\n", "c\n", None),
        (["", "", " a", "-b"], "a\nb\n", "a\n", None),
    ],
)  # fmt: skip
def test_a_hunk_has_its_lines_and_its_place(body: list[str], old: str, new: str, line: int | None) -> None:
    [hunk] = hunks_of(body)
    assert (hunk.old, hunk.new, hunk.line) == (old, new, line)


def test_a_hunk_has_the_lines_that_it_follows_and_the_end_of_the_file() -> None:
    first_lines = ["@@ class A:", "@@  def f(): @@", "-a", "+b", "\\ No newline at end of file"]
    [first, second] = hunks_of([*first_lines, "@@ ... @@", "-c", "+d", "*** End of File"])
    assert (first.anchors, first.ends_file, first.final_newline) == (("class A:", "def f():"), False, False)
    assert (second.anchors, second.ends_file, second.final_newline) == ((), True, None)
    assert [
        hunk.final_newline for hunk in hunks_of(["-a", "\\ No newline", "+b", "@@ x", " c", "\\ No newline"])
    ] == [True, False]


def test_many_files_in_one() -> None:
    patch = text(
        "--- a/x",
        "+++ b/x",
        *HUNK,
        "diff --git a/y b/y",
        "--- a/y",
        "+++ b/y",
        *HUNK,
        "--- a/z",
        "+++ b/z",
        *HUNK,
    )
    assert [section.path for section in sections(patch)] == ["x", "y", "z"]


def test_an_envelope_is_told_by_its_line() -> None:
    assert is_envelope("*** Begin Patch\n")
    assert not is_envelope("+*** Begin Patch\n")
    assert not is_envelope("The `*** Begin Patch` envelope")


def test_requests_share_what_the_change_said() -> None:
    like = ChangeRequest("given.py", todo_index=2, base_hash="abc")
    [alone] = requests(text("--- a/x", "+++ b/x", *HUNK), like)
    assert isinstance(alone, ChangeRequest)
    assert (alone.path, alone.todo_index, alone.base_hash) == ("given.py", 2, "abc")
    gone = requests("*** Delete File: given.py\n", like)
    assert gone == [ChangeRequest("given.py", delete=True, todo_index=2, base_hash="abc")]
    made = requests("*** Add File: given.py\n+one\n+two\n", like)
    assert made == [
        ChangeRequest("given.py", content="one\ntwo\n", fresh=True, todo_index=2, base_hash="abc")
    ]


@given(
    st.lists(
        st.sampled_from(
            [
                "--- a/x",
                "+++ b/x",
                "@@",
                "+a",
                "-b",
                " c",
                "",
                "*** Begin Patch",
                "*** Add File: q",
                "*** End Patch",
                "diff --git a/x b/y",
                "\\ No newline",
            ]
        ),
        max_size=20,
    )
)
def test_nothing_raises(lines: list[str]) -> None:
    requests("\n".join(lines), ChangeRequest("p"))
