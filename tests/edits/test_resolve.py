"""What a decision means for the disk: apply, skip, undo, redo, conflicts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_agent.edits import resolve
from tui_agent.edits.change import Change, FileStep, Pick, compose, hunks
from tui_agent.edits.resolve import Conflict, OnDisk, Write
from tui_agent.errors import EditFailed

BASE = "".join(f"line {number}\n" for number in range(12))
NEW = BASE.replace("line 1\n", "ONE\n").replace("line 6\n", "SIX\n").replace("line 10\n", "TEN\n")


def change(**fields: Any) -> Change:
    parts = len(hunks(BASE, NEW))
    return replace(Change("c1.1", 1, "a.py", "edit", base="b", new="n", hunks=("pending",) * parts), **fields)


def applied(result: Write | Conflict) -> Write:
    assert isinstance(result, Write)
    return result


def test_all_of_a_change_onto_the_file_that_was_seen() -> None:
    write = applied(resolve.apply(change(), BASE, NEW, OnDisk(BASE, "h")))
    assert write == Write("a.py", "h", NEW, state="applied", hunks=("applied",) * 3)


def test_one_hunk_leaves_the_others_waiting() -> None:
    write = applied(resolve.apply(change(), BASE, NEW, OnDisk(BASE, "h"), [Pick("c1.1", 1)]))
    assert write.text == BASE.replace("line 6\n", "SIX\n")
    assert (write.state, write.hunks) == ("pending", ("pending", "applied", "pending"))


@given(st.permutations([0, 1, 2]))
def test_hunks_in_any_order_one_by_one_give_the_whole(order: list[int]) -> None:
    current, disk = change(), BASE
    for number in order:
        write = applied(resolve.apply(current, BASE, NEW, OnDisk(disk, "h"), [Pick("c1.1", number)]))
        current, disk = replace(current, hunks=write.hunks, state=write.state), write.text or ""
    assert (disk, current.state) == (NEW, "applied")


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 2), min_size=1), st.sampled_from(["top\n", "mid\n"]))
def test_what_was_written_on_disk_since_stays(chosen: set[int], word: str) -> None:
    edited = word + BASE if word == "top\n" else BASE.replace("line 4\n", "line 4\nmid\n")
    picks = [Pick("c1.1", number) for number in chosen]
    result = resolve.apply(change(), BASE, NEW, OnDisk(edited, "h2"), picks)
    write = applied(result)
    target = compose(BASE, hunks(BASE, NEW), chosen)
    expected = word + target if word == "top\n" else target.replace("line 4\n", "line 4\nmid\n")
    assert (write.text, write.merged, write.expected) == (expected, True, "h2")


def test_the_same_lines_on_disk_are_a_conflict_and_nothing_is_written() -> None:
    disk = BASE.replace("line 6\n", "mine\n")
    result = resolve.apply(change(), BASE, NEW, OnDisk(disk, "h2"))
    assert isinstance(result, Conflict) and "changed on disk" in result.reason
    other = resolve.apply(change(), BASE, NEW, OnDisk(disk, "h2"), [Pick("c1.1", 0)])
    assert applied(other).text == disk.replace("line 1\n", "ONE\n")


def test_what_the_disk_already_has_needs_no_write() -> None:
    assert not applied(resolve.apply(change(), BASE, NEW, OnDisk(NEW, "n"))).needed


def test_nothing_waiting_is_an_error() -> None:
    done = change(hunks=("applied", "skipped", "applied"), state="applied")
    for picks in ([], [Pick("c1.1", 0)], [Pick("c1.1")]):
        with pytest.raises(EditFailed, match="nothing"):
            resolve.apply(done, BASE, NEW, OnDisk(NEW, "n"), picks)


@pytest.mark.parametrize(
    ("disk", "outcome"), [(None, "write"), ("", "write"), ("new\n", "nothing"), ("other\n", "conflict")]
)
def test_a_new_file_never_replaces_another(disk: str | None, outcome: str) -> None:
    create = change(kind="create", base="", hunks=("pending",))
    result = resolve.apply(create, None, "new\n", OnDisk(disk, "h" if disk is not None else ""))
    if outcome == "conflict":
        assert isinstance(result, Conflict)
    else:
        assert (applied(result).text, applied(result).needed) == ("new\n", outcome == "write")


@pytest.mark.parametrize(("disk", "outcome"), [(BASE, "write"), (None, "nothing"), ("other\n", "conflict")])
def test_only_the_file_that_was_seen_is_deleted(disk: str | None, outcome: str) -> None:
    delete = change(kind="delete", new="", hunks=("pending",))
    result = resolve.apply(delete, BASE, None, OnDisk(disk, "h"))
    if outcome == "conflict":
        assert isinstance(result, Conflict)
    else:
        assert (applied(result).text, applied(result).needed) == (None, outcome == "write")


def test_an_empty_file_and_a_pure_rename_have_no_hunks_and_can_be_applied() -> None:
    assert applied(resolve.apply(change(kind="delete", hunks=()), "", None, OnDisk("", "h"))).text is None
    move = change(kind="rename", rename_to="b.py", hunks=())
    write = applied(resolve.apply(move, BASE, BASE, OnDisk(BASE, "h")))
    assert (write.path, write.rename_to, write.text, write.needed) == ("a.py", "b.py", BASE, True)
    with pytest.raises(EditFailed):
        resolve.apply(replace(move, state="applied"), BASE, BASE, OnDisk(BASE, "h"))


def test_a_rename_moves_once_and_later_hunks_follow() -> None:
    move = change(kind="rename", rename_to="b.py")
    first = applied(resolve.apply(move, BASE, NEW, OnDisk(BASE, "h"), [Pick("c1.1", 0)]))
    assert (first.path, first.rename_to) == ("a.py", "b.py")
    moved = replace(move, hunks=first.hunks, written="x")
    second = applied(resolve.apply(moved, BASE, NEW, OnDisk(first.text, "x")))
    assert (second.path, second.rename_to, second.text) == ("b.py", "", NEW)


def test_a_file_that_is_gone_is_a_conflict() -> None:
    assert isinstance(resolve.apply(change(), BASE, NEW, OnDisk()), Conflict)


def test_skipping_closes_a_change_when_nothing_waits() -> None:
    assert resolve.skip(change()) == ("skipped", ("skipped",) * 3)
    assert resolve.skip(change(), [Pick("c1.1", 0)]) == ("pending", ("skipped", "pending", "pending"))
    some = change(hunks=("applied", "pending", "skipped"))
    assert resolve.skip(some, [Pick("c1.1")]) == ("applied", ("applied", "skipped", "skipped"))
    assert resolve.skip(change(hunks=(), kind="rename")) == ("skipped", ())


def test_picks_mean_only_what_waits_of_their_own_change() -> None:
    some = change(hunks=("applied", "pending", "pending"))
    assert resolve.picked(some, []) == {1, 2}
    assert resolve.picked(some, [Pick("c1.1")]) == {1, 2}
    assert resolve.picked(some, [Pick("c1.1", 0), Pick("c1.1", 2), Pick("c9.9", 1)]) == {2}
    assert resolve.picked(some, [Pick("c9.9")]) == frozenset()


STEP = FileStep("a.py", "b", "n")


@pytest.mark.parametrize(
    ("before", "after", "disk", "text", "needed"),
    [
        (BASE, NEW, NEW, BASE, True),
        (BASE, NEW, BASE, BASE, False),
        (None, NEW, NEW, None, True),
        (None, NEW, None, None, False),
        (BASE, None, None, BASE, True),
        (BASE, NEW, "top\n" + NEW, "top\n" + BASE, True),
    ],
)
def test_undo_takes_back_only_what_was_written(
    before: str | None, after: str | None, disk: str | None, text: str | None, needed: bool
) -> None:
    write = applied(resolve.undo(STEP, before, after, OnDisk(disk, "h")))
    assert (write.text, write.needed, write.expected) == (text, needed, "h")


@pytest.mark.parametrize(
    ("before", "after", "disk"),
    [
        (BASE, NEW, NEW.replace("SIX", "mine")),
        (BASE, NEW, None),
        (None, NEW, NEW + "more\n"),
        (BASE, None, "other\n"),
    ],
)
def test_undo_never_overwrites_what_was_written_since(
    before: str | None, after: str | None, disk: str | None
) -> None:
    assert isinstance(resolve.undo(STEP, before, after, OnDisk(disk, "h")), Conflict)


@settings(max_examples=20, deadline=None)
@given(st.permutations([0, 1, 2]), st.permutations([0, 1, 2]))
def test_applies_are_undone_in_any_order(order: list[int], back: list[int]) -> None:
    current, disk = change(), BASE
    steps: dict[int, tuple[str, str]] = {}
    for number in order:
        write = applied(resolve.apply(current, BASE, NEW, OnDisk(disk, "h"), [Pick("c1.1", number)]))
        steps[number] = (disk, write.text or "")
        current, disk = replace(current, hunks=write.hunks, state=write.state), write.text or ""
    for number in back:
        before, after = steps[number]
        disk = applied(resolve.undo(STEP, before, after, OnDisk(disk, "h"))).text or ""
    assert disk == BASE


@pytest.mark.parametrize(
    ("hunks", "state", "picks", "skipped", "reopened"),
    [
        (("skipped", "skipped", "skipped"), "skipped", [None], True, ("pending",) * 3),
        (("skipped", "skipped", "pending"), "pending", [0], True, ("pending", "skipped", "pending")),
        (("skipped", "pending", "pending"), "pending", [1], False, ("skipped", "pending", "pending")),
        (("skipped", "applied", "skipped"), "applied", [0, 1], False, ("pending", "applied", "skipped")),
        (("skipped", "applied", "skipped"), "applied", [2], True, ("skipped", "applied", "pending")),
        (("skipped", "skipped", "skipped"), "undone", [1], True, ("skipped", "pending", "skipped")),
        (("pending", "pending", "pending"), "undone", [None], True, ("pending",) * 3),
        ((), "skipped", [None], True, ()),
        ((), "undone", [None], True, ()),
        ((), "applied", [None], False, ()),
    ],
)
def test_what_was_skipped_is_pending_again(
    hunks: Any, state: Any, picks: list[int | None], skipped: bool, reopened: tuple[str, ...]
) -> None:
    some = change(hunks=hunks, state=state)
    chosen = [Pick("c1.1", number) for number in picks]
    assert resolve.is_skipped(some, chosen) is skipped
    assert resolve.unskipped(some, chosen) == ("pending", reopened)
    assert not resolve.is_skipped(change(hunks=hunks, state=state, reason="replaced by c2.1"), chosen)


def reverted(disk: str | None, picks: list[int], **fields: Any) -> Write | Conflict:
    some = change(hunks=("applied",) * 3, state="applied", **fields)
    chosen = [Pick("c1.1", number) for number in picks] or [Pick("c1.1")]
    return resolve.revert(some, BASE, NEW, OnDisk(disk, "h"), chosen)


def test_applied_hunks_leave_the_file_and_later_edits_stay() -> None:
    write = applied(reverted("top\n" + NEW, []))
    assert (write.path, write.text, write.state) == ("a.py", "top\n" + BASE, "undone")
    write = applied(reverted(NEW, [1]))
    assert write.text == NEW.replace("SIX\n", "line 6\n")
    assert (write.state, write.hunks) == ("applied", ("applied", "skipped", "applied"))
    conflict = reverted(NEW.replace("SIX", "mine"), [1])
    assert isinstance(conflict, Conflict) and "changed since" in conflict.reason
    gone = reverted(None, [])
    assert isinstance(gone, Conflict) and "no longer exists" in gone.reason


@pytest.mark.parametrize(
    ("hunks", "picks", "state", "undone"),
    [
        (("applied", "applied"), [0, 1], "undone", ("skipped", "skipped")),
        (("applied", "applied"), [1], "applied", ("applied", "skipped")),
        (("applied", "pending"), [0], "pending", ("skipped", "pending")),
        (("applied", "skipped"), [0], "undone", ("skipped", "skipped")),
        (("skipped", "applied", "pending"), [1], "pending", ("skipped", "skipped", "pending")),
    ],
)
def test_what_is_undone_is_decided_and_what_was_not_decided_waits(
    hunks: Any, picks: list[int], state: str, undone: tuple[str, ...]
) -> None:
    some = change(hunks=hunks, state="applied")
    chosen = [Pick("c1.1", number) for number in picks]
    assert resolve.taken_back(some, chosen) == (state, undone)
    assert resolve.applied_again(change(hunks=undone, state=state), chosen)[1] == hunks


def test_a_renamed_file_goes_back_with_its_last_hunk() -> None:
    moved = {"kind": "rename", "rename_to": "b.py", "written": "n"}
    assert applied(reverted(NEW, [], **moved)).rename_to == "a.py"
    assert applied(reverted(NEW, [0], **moved)).rename_to == ""


def test_only_what_is_applied_is_reverted() -> None:
    with pytest.raises(EditFailed, match="nothing of the change"):
        resolve.revert(change(), BASE, NEW, OnDisk(NEW, "h"), [Pick("c1.1")])
    made = change(kind="create", base="", hunks=("applied",), state="applied", written="n")
    write = applied(resolve.revert(made, None, NEW, OnDisk(NEW, "h"), [Pick("c1.1")]))
    assert (write.text, write.state, write.hunks) == (None, "undone", ("skipped",))
    deleted = change(kind="delete", new="", hunks=("applied",), state="applied")
    write = applied(resolve.revert(deleted, BASE, None, OnDisk(None, ""), [Pick("c1.1")]))
    assert (write.text, write.state) == (BASE, "undone")
