"""A change, its hunks, and the diff of some of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tui_agent.edits.change import (
    Change,
    FileStep,
    Hunk,
    compose,
    counts,
    diff_of,
    hunks,
    proposing_tasks,
    same_hunk,
    unified,
)


@pytest.mark.parametrize(
    ("state", "is_open", "waits"),
    [
        ("pending", True, True),
        ("merged", True, True),
        ("conflict", False, True),
        ("applied", False, False),
        ("failed", False, False),
    ],
)
def test_a_change_waits_until_it_is_decided(state: str, is_open: bool, waits: bool) -> None:
    change = Change("c1", 1, "a.py", "edit", state, base="b", new="n")  # ty: ignore[invalid-argument-type]
    assert (change.is_open, change.waits, change.version) == (is_open, waits, "b:n")


def test_a_change_is_called_by_its_tasks() -> None:
    mine = Change("c1", 1, "a.py", "edit", rival="c2")
    theirs = Change("c2", 1, "a.py", "edit", tasks=("one", "two"))
    assert (mine.called, theirs.called) == ("Your change to a.py", "The change of one, two to a.py")
    assert proposing_tasks(mine, [mine, theirs]) == ((), ("one", "two"))
    assert proposing_tasks(mine, [mine]) == ((), ()) and proposing_tasks(theirs, [mine]) == (
        ("one", "two"),
        (),
    )


def test_a_step_is_reversed() -> None:
    assert FileStep("a", "old", "new", 0o644, 0o755).reversed == FileStep("a", "new", "old", 0o755, 0o644)


BASE = "".join(f"{number}\n" for number in range(1, 21))
NEW = BASE.replace("2\n3\n", "2\nnew\n", 1).replace("10\n", "").replace("20\n", "20\nend", 1)


def test_hunks_are_numbered_counted_and_found_again() -> None:
    found = hunks(BASE, NEW)
    assert found == (Hunk(2, ("3\n",), ("new\n",)), Hunk(9, ("10\n",), ()), Hunk(20, (), ("end",)))
    assert counts(found) == (2, 2)
    assert [same_hunk(hunk, found) for hunk in found] == [0, 1, 2]
    assert same_hunk(found[1], [found[1], found[0], found[1]]) is None and same_hunk(found[0], ()) is None
    assert (compose(BASE, found, ()), compose(BASE, found, (0, 1, 2))) == (BASE, NEW)
    assert compose(BASE, found, (1,)) == BASE.replace("10\n", "")
    assert hunks(BASE, BASE) == ()


def test_a_diff_shows_the_chosen_hunks_with_their_lines_around() -> None:
    diff = diff_of("a.py", BASE, NEW)
    alone, two = (replace(diff, hunks=diff.hunks[start:2]) for start in (1, 0))
    assert unified(alone) == ("--- a/a.py\n+++ b/a.py\n@@ -7,7 +7,6 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n")
    assert unified(two).splitlines()[2:] == [
        "@@ -1,13 +1,12 @@", " 1", " 2", "-3", "+new", *(f" {n}" for n in range(4, 10)), "-10", " 11", " 12", " 13",
    ]  # fmt: skip
    assert unified(diff).splitlines()[-6:] == [
        "@@ -18,3 +17,4 @@", " 18", " 19", " 20", "+end", "\\ No newline at end of file",
    ]  # fmt: skip
    assert unified(replace(diff, hunks=())) == ""


@pytest.mark.parametrize(
    ("base", "new", "shown"),
    [
        ("", "a\n", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,1 @@\n+a\n"),
        ("a\n", "", "--- a/x\n+++ b/x\n@@ -1,1 +0,0 @@\n-a\n"),
        ("a", "a\n", "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"),
    ],
)
def test_a_diff_of_a_file_that_begins_or_ends(base: str, new: str, shown: str) -> None:
    assert unified(diff_of("x", base, new)) == shown
