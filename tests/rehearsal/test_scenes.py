"""The scenes: each is offered by one before, and its edits have their place whatever was applied before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.rehearsal_scenes import (
    BATCH,
    CHECKED,
    CONFLICT,
    CORRECTED,
    GOING_ON,
    SCENES,
    SLOW_SERVICE,
    STALE,
    SUB_TASKS,
    SUB_TASKS_REQUEST,
    UNDO,
    UNDO_REQUEST,
    Scene,
)

from tui_agent.context.memory import asks_to_go_on
from tui_agent.edits.merge import merge
from tui_agent.rehearsal import FIRST_REQUEST, copy_project
from tui_agent.store.graph import SubTask, faults, layers

#: As they are when the person looks.
CHANGING = [CORRECTED if scene is CHECKED else scene for scene in SCENES if "fileChanges" in scene.answer]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "shop")


def apply(scene: Scene, folder: Path) -> None:
    """Every edit must stand at just one place in the file as it is."""
    for change in scene.answer["fileChanges"]:
        file = folder / change["path"]
        text = file.read_text(encoding="utf-8")
        for edit in change["edits"]:
            assert text.count(edit["search"]) == 1, (scene.request, change["path"], edit["search"])
            text = text.replace(edit["search"], edit["replace"])
        file.write_text(text, encoding="utf-8")


def run_its_tests(folder: Path) -> int:
    """Runs the project's own tests, which must pass; how many there are."""
    command = [sys.executable, "-B", "-m", "unittest"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.partition("Ran ")[2].split()[0])


def offered(scene: Scene) -> list[str]:
    return [step["inputText"] for step in scene.answer.get("nextSteps", ())]


def test_each_scene_is_offered_by_the_one_before() -> None:
    requests = [scene.request for scene in SCENES]
    assert requests[0] == FIRST_REQUEST
    assert len(set(requests)) == len(requests)
    for scene, request in zip(SCENES, requests[1:], strict=False):
        assert request in offered(scene)
    assert all(set(offered(scene)) <= set(requests) for scene in SCENES)
    assert offered(CONFLICT) == [UNDO_REQUEST, SUB_TASKS_REQUEST]
    assert offered(SCENES[-1]) == []


def test_what_is_offered_fits_on_a_line_of_a_small_screen() -> None:
    labels = [step["html"] for scene in SCENES for step in scene.answer.get("nextSteps", ())]
    assert max(map(len, labels)) <= 48


def test_all_scenes_in_order_leave_a_project_whose_tests_pass(project: Path) -> None:
    for scene in CHANGING:
        apply(scene, project)
    assert run_its_tests(project) == 11


@pytest.mark.parametrize("scene", CHANGING, ids=lambda scene: scene.answer["todos"][0]["text"])
def test_each_scene_fits_alone_and_the_tests_pass(scene: Scene, project: Path) -> None:
    apply(scene, project)
    assert run_its_tests(project) == (11 if scene is GOING_ON else 10)


def test_each_scene_fits_in_the_opposite_order(project: Path) -> None:
    for scene in reversed(CHANGING):
        apply(scene, project)
    assert run_its_tests(project) == 11


def test_the_batch_is_one_todo_for_every_file_of_the_folder(project: Path) -> None:
    changes = BATCH.answer["fileChanges"]
    there = {path.relative_to(project).as_posix() for path in (project / "docs").iterdir()}
    assert {change["path"] for change in changes} == there
    assert len(there) == 3
    assert [change["todoIndex"] for change in changes] == [0, 0, 0]
    assert len(BATCH.answer["todos"]) == 1


def test_the_read_again_file_takes_the_change_with_a_comment_at_its_top(project: Path) -> None:
    file = project / "shop/retry.py"
    file.write_text("# mine\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    apply(STALE, project)
    assert file.read_text(encoding="utf-8").startswith("# mine\n")
    assert run_its_tests(project) == 10


def test_the_todo_that_is_left_open_is_the_one_that_continue_does() -> None:
    tied = {change["todoIndex"] for change in STALE.answer["fileChanges"]}
    left = [todo for number, todo in enumerate(STALE.answer["todos"]) if number not in tied]
    assert left == GOING_ON.answer["todos"]
    assert asks_to_go_on(GOING_ON.request, turn=2)


def test_the_new_test_fails_where_the_error_does_not_say_how_often(project: Path) -> None:
    apply(GOING_ON, project)
    file = project / "shop/retry.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('f"no answer after {attempt} attempts"', '"no answer"'), encoding="utf-8")
    with pytest.raises(AssertionError, match="test_the_error_says_how_often_it_was_tried"):
        run_its_tests(project)


def test_what_is_proposed_first_breaks_a_test(project: Path) -> None:
    apply(CHECKED, project)
    with pytest.raises(AssertionError, match=r"\[0.5, 2.0\] != \[0.5, 1.0\]"):
        run_its_tests(project)


def test_a_line_changed_by_hand_first_conflicts_and_an_untouched_one_does_not(project: Path) -> None:
    base = (project / "shop/settings.py").read_text(encoding="utf-8")
    apply(CONFLICT, project)
    new = (project / "shop/settings.py").read_text(encoding="utf-8")
    assert merge(base, base, new).conflicts == 0
    assert merge(base, base.replace("10.0", "6.0"), new).conflicts == 1


def test_what_explains_changes_nothing() -> None:
    for scene in (SLOW_SERVICE, UNDO):
        assert not {"fileChanges", "todos", "subTasks"} & set(scene.answer)
    assert "Ctrl+O" in UNDO.answer["message"]


def test_the_sub_tasks_are_a_graph_with_a_shared_dependency() -> None:
    tasks = [_task(task) for task in SUB_TASKS.answer["subTasks"]]
    assert faults(tasks) == []
    assert [[task.id for task in layer] for layer in layers(tasks)] == [
        ["model"],
        ["client", "words"],
        ["command"],
    ]


def test_the_files_of_the_sub_tasks_are_there(project: Path) -> None:
    files = {path for task in SUB_TASKS.answer["subTasks"] for path in task["files"]}
    assert [path for path in files if not (project / path).is_file()] == []


def _task(task: dict[str, Any]) -> SubTask:
    return SubTask(task["id"], task["goal"], tuple(task["files"]), tuple(task["dependencies"]))
