"""What models are told of sub-tasks: the hand-over of each, and the report to their parent."""

from __future__ import annotations

from tui_agent.edits.change import FileStep
from tui_agent.store.graph import SubTask
from tui_agent.subtasks import run
from tui_agent.turn import request

DONE = SubTask(
    "api",
    "Change the client",
    ("api.py",),
    state="completed",
    summary="Changed it.",
    changed=(FileStep("net.py", "1", "2"),),
)


def test_the_hand_over_leaves_out_what_there_is_not() -> None:
    words = run.handover_text(run.HandOver(SubTask("a", "Do a"), splits=True))
    assert "Yours is “a”" in words
    for absent in ("word for word", "Files of this part", "are done", "not in your copy", "split"):
        assert absent not in words


def test_the_hand_over_names_files_what_is_done_and_what_is_missing() -> None:
    task = SubTask("b", "Do b", ("b.py", "c.py"), note="Again, on top.")
    words = run.handover_text(run.HandOver(task, "Do both", "In two parts.", (DONE,), ("vendor",)))
    for present in (
        "The whole request, word for word:\nDo both",
        "What was said of it: In two parts.",
        "Files of this part: b.py, c.py.",
        "- api: Changed it. Changed: net.py.",
        "leave them alone:\n- vendor",
        "Again, on top.",
        "Do not split this part",
    ):
        assert present in words


def test_the_report_has_a_row_for_each_state() -> None:
    failed = SubTask("b", "Do b", state="failed", reason="It declined: ask otherwise")
    waits = SubTask("c", "Do c", dependencies=("api", "b"))
    idle = SubTask("d", "Do d", state="completed", summary="Nothing to do.")
    rows = request.task_rows((DONE, failed, waits, idle))
    assert rows == {
        "api": "api: completed. Changed it. Changed, and shown to the person for review: net.py "
        "(beside its files: net.py).",
        "b": "b: failed, It declined: ask otherwise",
        "c": "c: waits for api, b",
        "d": "d: completed. Nothing to do. It changed no file.",
    }


def test_only_news_is_told_and_what_was_taken_out_once() -> None:
    rows = request.task_rows((DONE,))
    assert request.changed_rows(rows, {}) == rows
    assert request.changed_rows(rows, rows) == {}
    gone = request.changed_rows({}, rows)
    assert gone == {"api": "api: taken out by the person"}
    assert request.changed_rows({}, {**rows, **gone}) == {}
    assert (
        request.task_section({}) == ""
        and request.task_section(gone) == f"{request.TASKS_TITLE}\n- {gone['api']}"
    )


def test_an_attempt_is_no_part_of_a_larger_work() -> None:
    task = SubTask("best 1.1 claude", "Do it", attempt="best 1")
    words = run.handover_text(run.HandOver(task, "an earlier request", "an earlier answer", (), ("vendor",)))
    assert words.startswith("# One of several attempts") and "- vendor" in words
    assert "part" not in words.splitlines()[1] and "earlier" not in words
