from __future__ import annotations

from tui_agent.answers.same_file import joined
from tui_agent.answers.values import ChangeRequest, SearchReplace

A, B = SearchReplace("a", "b"), SearchReplace("c", "d")


def test_edits_of_one_file_in_several_entries_are_one_change_at_the_first_place() -> None:
    found = joined(
        [
            ChangeRequest("x.py", edits=(A,)),
            ChangeRequest("y.py", content="y"),
            ChangeRequest("x.py", edits=(B,), todo_index=1),
        ]
    )
    assert found == [ChangeRequest("x.py", edits=(A, B), todo_index=1), ChangeRequest("y.py", content="y")]


def test_diffs_are_joined_and_a_move_goes_with_them() -> None:
    found = joined(
        [
            ChangeRequest("x.py", diff="@@\n-a\n+b\n"),
            ChangeRequest("x.py", diff="@@\n-c\n+d"),
            ChangeRequest("x.py", rename_to="z.py"),
        ]
    )
    assert found == [ChangeRequest("x.py", diff="@@\n-a\n+b\n@@\n-c\n+d\n", rename_to="z.py")]


def test_what_cannot_be_one_change_stays_apart() -> None:
    apart = [
        ChangeRequest("x.py", content="x"),
        ChangeRequest("x.py", edits=(A,)),
        ChangeRequest("x.py", diff="@@\n-a\n+b\n"),
        ChangeRequest("x.py", delete=True),
    ]
    assert joined(apart) == apart
    versions = [
        ChangeRequest("x.py", edits=(A,), base_hash="1"),
        ChangeRequest("x.py", edits=(B,), base_hash="2"),
    ]
    assert joined(versions) == versions
