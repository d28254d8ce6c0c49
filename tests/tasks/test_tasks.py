"""A slice of the benchmark, and that its scripted model knows only the words of the person."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tasks.all_tasks import LEGACY, PYTHON, REPOSITORIES, TASKS
from tests.tasks.runs import headless
from tests.tasks.task import Repository, Task, judged, wrong_edits


def test_there_are_thirty_tasks_over_six_repositories() -> None:
    assert [len(repository.tasks) for repository in REPOSITORIES] == [5] * 6
    assert len({task.name for _, task in TASKS}) == 30
    three = [task for _, task in TASKS if task.name.endswith(("three-files", "three-places"))]
    assert [len(task.skills) for task in three] == [3] * 6


@pytest.mark.parametrize(("repository", "task"), TASKS, ids=[task.name for _, task in TASKS])
def test_a_skill_has_words_of_the_person_and_no_path(repository: Repository, task: Task) -> None:
    prompt = task.prompt.lower()
    for skill in task.skills:
        assert skill.word.lower() in prompt
        parts = re.split(r"[^a-z]+", skill.guess.rpartition(".")[0].lower())
        assert all(
            part in prompt.replace("_", " ") + prompt
            for part in parts
            if part not in ("src", "script", "tests")
        )
        assert skill.guess not in repository.files() or skill.guess.lower() in prompt
    for path in task.creates:
        assert path in task.prompt


@pytest.mark.parametrize(("repository", "number", "seed"), [(PYTHON, 0, 1), (LEGACY, 2, 1)])
def test_a_task_is_solved_with_a_model_that_errs(
    repository: Repository, number: int, seed: int, tmp_path: Path
) -> None:
    task, home = repository.tasks[number], tmp_path / "home"
    home.mkdir()
    (tmp_path / "before").mkdir()
    assert judged(repository, task, repository.write(tmp_path / "before")) is False
    outcome = headless(repository, task, tmp_path, home, seed, "structured")
    assert outcome.solved and outcome.errors, outcome
    assert (outcome.wrong, outcome.lost, outcome.faults) == ([], [], [])
    assert outcome.figures.turns == outcome.turns == 1


def test_a_change_of_another_file_and_a_lost_line_end_are_wrong_edits(tmp_path: Path) -> None:
    task = LEGACY.tasks[0]
    root = LEGACY.write(tmp_path)
    (root / "INC" / "Dates.py").write_bytes(b"x\r\n")
    (root / "CONFIG.INI").write_bytes(b"[tax]\n")
    (root / "INC" / "Params.py").write_bytes(b"def a():\r\n\treturn 1\r\n")
    assert wrong_edits(LEGACY, task, root) == ["CONFIG.INI", "INC/Dates.py"]
