"""All that one reply does to a file is one change, or is refused by name."""

from __future__ import annotations

import pytest
from support.edit_requests import hunks

from tui_agent.answers.reply_builder import joined_changes
from tui_agent.answers.values import ChangeRequest, EditHunk, Refusal

A, B = EditHunk("a", "b"), EditHunk("c", "d")


def test_edits_of_one_file_in_several_entries_are_one_change_at_the_first_place() -> None:
    found = joined_changes(
        [
            ChangeRequest("x.py", edits=(A,)),
            ChangeRequest("y.py", content="y"),
            ChangeRequest("./x.py", edits=(B,), todo_index=1),
        ]
    )
    edits = ChangeRequest("x.py", edits=(A, B), todo_index=1)
    assert found == ([edits, ChangeRequest("y.py", content="y")], [])


def test_edits_that_are_asked_for_twice_are_asked_for_once() -> None:
    once = ChangeRequest("x.py", edits=(A, B))
    assert joined_changes([once, ChangeRequest("x.py", edits=(A, B), todo_index=1)])[0] == [
        ChangeRequest("x.py", edits=(A, B), todo_index=1)
    ]


def test_other_forms_are_further_steps_and_a_move_goes_with_them() -> None:
    diff = ChangeRequest("x.py", diff=hunks("@@\n-a\n+b\n"))
    other = ChangeRequest("x.py", diff=hunks("@@\n-c\n+d\n"))
    edits = ChangeRequest("z.py", edits=(A,))
    [one], refused = joined_changes([diff, ChangeRequest("x.py", rename_to="z.py"), other, edits, other])
    assert (one.path, one.diff, one.rename_to, refused) == ("x.py", diff.diff, "z.py", [])
    assert [(step.diff, step.edits) for step in one.then] == [(other.diff, ()), ((), (A,))]


@pytest.mark.parametrize(
    "several",
    [
        [ChangeRequest("x.py", delete=True), ChangeRequest("x.py", content="x")],
        [ChangeRequest("x.py", content="x"), ChangeRequest("x.py", content="x", todo_index=1)],
    ],
)
def test_the_last_content_counts_where_nothing_is_lost_by_it(several: list[ChangeRequest]) -> None:
    [one], refused = joined_changes(several)
    assert (one.content, one.delete, one.then, refused) == ("x", False, (), [])


@pytest.mark.parametrize(
    ("several", "paths"),
    [
        ([ChangeRequest("x", content="1"), ChangeRequest("x", content="2")], ["x"]),
        ([ChangeRequest("x", edits=(A,)), ChangeRequest("x", content="2")], ["x"]),
        ([ChangeRequest("x", edits=(A,)), ChangeRequest("x", delete=True)], ["x"]),
        ([ChangeRequest("x", delete=True), ChangeRequest("x", edits=(A,))], ["x"]),
        ([ChangeRequest("x", rename_to="y"), ChangeRequest("x", rename_to="z")], ["x"]),
        ([ChangeRequest("x", rename_to="y"), ChangeRequest("x", content="new")], ["x"]),
        ([ChangeRequest("x", rename_to="y"), ChangeRequest("y", rename_to="x")], ["x", "y"]),
        ([ChangeRequest("y", edits=(A,)), ChangeRequest("x", rename_to="y")], ["x", "y"]),
        ([ChangeRequest("x", rename_to="z"), ChangeRequest("y", rename_to="z")], ["x", "y"]),
        (
            [
                ChangeRequest("x", edits=(A,), base_hash="12"),
                ChangeRequest("x", edits=(B,), base_hash="13"),
            ],
            ["x"],
        ),
    ],
)
def test_what_cannot_be_one_change_is_refused_by_name(several: list[ChangeRequest], paths: list[str]) -> None:
    changes, refused = joined_changes([ChangeRequest("other", content="kept"), *several])
    assert [change.path for change in changes] == ["other"]
    assert sorted({one.path for one in refused}) == paths
    assert all(one.why for one in refused)


def test_where_one_thing_about_a_file_is_refused_all_are() -> None:
    refusal = Refusal("x.py", "it is binary")
    found = joined_changes([ChangeRequest("x.py", edits=(A,)), ChangeRequest("y.py", edits=(B,))], [refusal])
    assert found == ([ChangeRequest("y.py", edits=(B,))], [refusal])


def test_a_file_cannot_be_the_folder_of_another() -> None:
    found, refused = joined_changes(
        [
            ChangeRequest("d", content="x"),
            ChangeRequest("a", rename_to="d/x/a"),
            ChangeRequest("e", content="e"),
        ]
    )
    assert [change.path for change in found] == ["e"]
    assert [one.path for one in refused] == ["d", "a"] and all(
        "same reply creates" in one.why for one in refused
    )
    assert not joined_changes([ChangeRequest("d", delete=True), ChangeRequest("d/x", content="y")])[1]
