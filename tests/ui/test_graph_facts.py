from __future__ import annotations

from msgspec.structs import replace

from tui_agent.edits.change import FileStep
from tui_agent.store.graph import SubTask
from tui_agent.store.state import SubTaskProgress
from tui_agent.ui.graph.facts import Fact, Facts, clock, dollars, short_count

NOW = 10_000.0
RUNS = SubTask("a", "", state="running", tokens=1000, seconds=60, cost=0.01)


def fact(task: SubTask, progress: SubTaskProgress | None = None) -> Fact:
    return Facts([task], {task.id: progress} if progress else {}, NOW, 30)[task.id]


def test_time_tokens_and_dollars_are_short():
    assert [clock(s) for s in (0, 8.9, 72, 3599, 7500)] == ["0s", "8s", "1:12", "59:59", "2h05"]
    assert [short_count(n) for n in (0, 980, 1000, 14_230, 1_260_000)] == ["0", "980", "1k", "14.2k", "1.3M"]
    assert [dollars(c) for c in (None, 0.0, 0.004, 0.034, 12.0)] == ["", "", "<1¢", "$0.03", "$12.00"]


def test_what_runs_tells_of_all_its_runs():
    progress = SubTaskProgress(tokens=500, cost=0.02, started=NOW - 30, heard=NOW)
    assert fact(RUNS, progress).long.text == "1:30 1.5k $0.03"
    assert fact(RUNS, progress).full == "1:30 · 1.5k tokens · $0.03"
    assert fact(RUNS, replace(progress, cost=None)).long.text == "1:30 1.5k"
    assert fact(RUNS).long.text == "running"


def test_silence_is_told_from_its_limit_on():
    progress = SubTaskProgress(started=NOW - 99, heard=NOW - 29)
    assert (fact(RUNS, progress).silent, fact(RUNS, progress).mark.text) == (0, "●")
    quiet = fact(RUNS, replace(progress, heard=NOW - 30))
    assert (quiet.silent, quiet.mark.text, quiet.short.text) == (30, "◌", "silent")


def test_what_has_not_begun_tells_what_is_to_come():
    words = [
        fact(task).long.text
        for task in (
            SubTask("a", "", dependencies=("b", "c")),
            SubTask("a", "", state="ready", auto_execute=True),
            SubTask("a", "", state="ready", wanted=True),
            SubTask("a", "", state="ready"),
        )
    ]
    assert words == ["waits for b, c", "ticked", "starting", "waits for you"]


def test_marks_differ_without_their_colours():
    states = ("ready", "running", "completed", "failed", "skipped", "cancelled")
    tasks = [SubTask("a", "", state=state) for state in states]
    tasks += [SubTask("a", "", auto_execute=True), SubTask("a", "", wanted=True)]
    assert len({fact(task).mark.text for task in tasks}) == len(tasks)


def test_changes_outside_the_scope_are_marked():
    done = SubTask("a", "", ("a.py",), state="completed", seconds=8, changed=(FileStep("b.py", "x", "y"),))
    assert (fact(done).long.text, fact(done).short.text) == ("8s ⚠", "⚠")
    assert fact(replace(done, files=())).short.text == ""


def test_only_facts_that_are_read_are_computed():
    asked: list[str] = []
    tasks = [SubTask(name, "", state="ready", wanted=True) for name in ("a", "b", "c")]
    facts = Facts(tasks, {}, NOW, 30, lambda task: asked.append(task.id) or "a decision")
    assert facts["b"].long.text == "waits for a decision" and facts["b"] is facts["b"]
    assert asked == ["b"] and len(facts) == 3 and facts.get("d") is None
