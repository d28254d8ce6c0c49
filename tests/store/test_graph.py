from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from tui_agent.edits.change import FileStep
from tui_agent.store import events as e
from tui_agent.store.graph import (
    MOVES,
    SubTask,
    faults,
    may_become,
    needed_by,
    priorities,
    startable,
    together,
    with_ready,
    with_task,
)
from tui_agent.store.state import State


def graph(**waits: str) -> tuple[SubTask, ...]:
    return tuple(
        SubTask(name, f"Do {name}", dependencies=tuple(after.split())) for name, after in waits.items()
    )


def test_doubles_strangers_and_circles_are_named() -> None:
    tasks = (*graph(a="", b="c", c="d", d="b", e="x y"), SubTask("a", "again"))
    assert faults(tasks) == [
        "sub-task ids occur twice: a",
        "sub-tasks depend on unknown ids: x, y",
        "sub-tasks depend on each other in a circle: b, c, d",
    ]
    assert faults(graph(a="", b="a", c="a b")) == []


def test_the_longest_path_behind_a_task_is_its_priority() -> None:
    tasks = graph(a="", b="a", c="b", d="a", e="")
    assert priorities(tasks) == {"a": 3, "b": 2, "c": 1, "d": 1, "e": 1}


def test_what_is_ready_and_wanted_can_start_most_urgent_first() -> None:
    tasks = with_ready(graph(e="", a="", b="a", d=""))
    wanted = [replace(task, wanted=task.id != "d") for task in tasks]
    assert [task.id for task in startable(wanted)] == ["a", "e"]


def test_what_a_task_builds_on_stands_in_order() -> None:
    tasks = graph(d="c", c="b a", b="a", a="", z="")
    assert [task.id for task in needed_by(tasks[0], tasks)] == ["a", "b", "c"]


def test_after_a_move_the_same_tasks_are_ready_as_if_all_were_looked_at() -> None:
    chance = random.Random(7)
    names = [f"t{number}" for number in range(12)]
    needs = {name: chance.sample(names[:at], chance.randint(0, min(at, 3))) for at, name in enumerate(names)}
    tasks = with_ready(graph(**{name: " ".join(after) for name, after in needs.items()}))
    seen = set()
    for _ in range(3000):
        task = chance.choice(tasks)
        moved = replace(task, state=chance.choice(sorted(MOVES)))
        at = tasks.index(task)
        whole = with_ready((*tasks[:at], moved, *tasks[at + 1 :]))
        tasks = with_task(tasks, moved)
        assert tasks == whole
        seen |= {task.state for task in tasks}
    assert seen == set(MOVES)


@pytest.mark.parametrize(
    ("state", "to"),
    [("running", {"completed", "failed", "cancelled"}), ("completed", {"pending"}), ("skipped", {"pending"})],
)
def test_only_some_moves_are_legal(state: str, to: set[str]) -> None:
    task = SubTask("a", "Do a", state=state)  # ty: ignore[invalid-argument-type]
    assert {other for other in MOVES if may_become(task, other)} == to


def test_a_proposal_joins_work_that_is_not_done_and_begins_anew_after_it() -> None:
    before, added = with_ready(graph(a="")), graph(b="")
    assert [task.id for task in together(before, added)] == ["a", "b"]
    done = (SubTask("a", "Do a", state="completed"),)
    assert [task.id for task in together(done, added)] == ["b"]


def test_what_was_changed_beside_the_scope_is_known() -> None:
    changed = (FileStep("a.py", "1", "2"), FileStep("b.py", "1", "2"))
    assert SubTask("a", "Do a", ("a.py",), changed=changed).outside == ("b.py",)
    assert SubTask("a", "Do a", changed=changed).outside == ()


def test_a_state_that_changes_leaves_all_other_tasks_as_they_are() -> None:
    state = State()
    tasks = (SubTask("a", ""), SubTask("b", "", dependencies=("a",)), SubTask("c", ""))
    for event in (
        e.SubTasksProposed(tasks),
        e.SubTasksWanted(("a", "b", "c")),
        e.SubTaskMoved("a", "running"),
    ):
        state = event.apply(state)
    before = state.subtasks.tasks
    after = e.SubTaskEnded("a", "completed").apply(state).subtasks.tasks
    assert [task.state for task in before] == ["running", "pending", "ready"]
    assert [task.state for task in after] == ["completed", "ready", "ready"]
    assert after[2] is before[2]
    failed = e.SubTaskEnded("a", "failed").apply(state).subtasks.tasks
    assert failed[1] is before[1] and failed[2] is before[2]
