from __future__ import annotations

from tui_agent.edits.change import Change, Pick
from tui_agent.store.state import ReviewSlice
from tui_agent.ui.panes.review_rows import (
    ReviewPosition,
    hunk_states,
    next_waiting,
    outcome,
    pick,
    restored_position,
    shown_changes,
    step_file,
    step_hunk,
    waiting,
)

API = Change("c1", 2, "api.py", "edit", hunks=("applied", "pending", "pending"))
NEW = Change("c2", 2, "new.py", "create", hunks=("pending",))
MOVE = Change("c3", 2, "old.py", "rename", rename_to="b.py")
BATCH = (API, NEW, MOVE)


def test_the_first_hunk_that_waits_is_where_a_review_begins():
    assert restored_position(BATCH, None) == ReviewPosition("c1", 1)
    assert restored_position(BATCH, {"change": "c2", "hunk": 0}) == ReviewPosition("c2", 0)
    assert restored_position(BATCH, {"change": "gone", "hunk": 7}) == ReviewPosition("c1", 1)
    assert restored_position(BATCH, ["no place"]) == ReviewPosition("c1", 1)
    assert restored_position((), None) is None


def test_what_waits_comes_next_and_goes_round():
    assert next_waiting(BATCH, ReviewPosition("c1", 1)) == ReviewPosition("c1", 2)
    assert next_waiting(BATCH, ReviewPosition("c1", 2)) == ReviewPosition("c2", 0)
    assert next_waiting(BATCH, ReviewPosition("c3", 0)) == ReviewPosition("c1", 1)
    assert next_waiting((NEW,), ReviewPosition("c2", 0)) == ReviewPosition("c2", 0)


def test_steps_go_through_all_hunks_and_stop_at_the_ends():
    assert step_hunk(BATCH, ReviewPosition("c1", 2), 1) == ReviewPosition("c2", 0)
    assert step_hunk(BATCH, ReviewPosition("c2", 0), -1) == ReviewPosition("c1", 2)
    assert step_hunk(BATCH, ReviewPosition("c3", 0), 1) == ReviewPosition("c3", 0)


def test_files_are_stepped_through_in_a_round_to_what_waits_in_them():
    assert step_file(BATCH, ReviewPosition("c3", 0), 1) == ReviewPosition("c1", 1)
    assert step_file(BATCH, ReviewPosition("c1", 1), -1) == ReviewPosition("c3", 0)


def test_a_change_without_hunks_is_decided_as_a_whole():
    assert pick(MOVE, ReviewPosition("c3", 0)) == Pick("c3", None, MOVE.version)
    assert pick(API, ReviewPosition("c1", 2)) == Pick("c1", 2, API.version)
    assert ReviewPosition("c3", 0) in waiting(BATCH)


def test_older_turns_are_shown_while_they_wait():
    done = Change("c0", 1, "done.py", "edit", "applied", hunks=("applied",))
    open_before = Change("c9", 1, "open.py", "edit", hunks=("pending",))
    assert shown_changes(ReviewSlice((done, NEW))) == (NEW,)
    assert shown_changes(ReviewSlice((done, open_before, NEW))) == (done, open_before, NEW)
    assert shown_changes(ReviewSlice((done,))) == (done,)


def test_a_change_that_another_replaced_is_not_shown():
    replaced = Change("c0", 2, "new.py", "create", "skipped", reason="replaced by c2")
    assert shown_changes(ReviewSlice((replaced, NEW))) == (NEW,)
    written = Change("c2", 2, "new.py", "create", "applied")
    assert outcome([replaced, written]) == "1 file written"


def test_hunks_of_a_change_that_was_decided_as_a_whole_are_decided():
    skipped = Change("c1", 2, "api.py", "edit", "skipped", hunks=("applied", "pending"))
    assert hunk_states(skipped, 2) == ("applied", "skipped")
    assert hunk_states(API, 3) == API.hunks
    assert hunk_states(Change("c", 1, "a", "edit", "applied"), 2) == ("applied", "applied")


def test_a_broken_change_waits_after_those_that_can_be_applied_and_is_decided_as_a_whole():
    broken = Change("c0", 2, "lost.py", "edit", "conflict", hunks=("pending", "pending"))
    assert restored_position((broken, NEW), None) == ReviewPosition("c2", 0)
    assert next_waiting((broken, NEW), ReviewPosition("c2", 0)) == ReviewPosition("c0", 0)
    assert pick(broken, ReviewPosition("c0", 0)) == Pick("c0", None, broken.version)
    assert hunk_states(broken, 2) == ("pending", "pending")
