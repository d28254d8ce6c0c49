"""Commands and sub-tasks in the queue of a real Slurm on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from support.places import SLEEP, all_ended, places, when_printed
from support.sessions import open_session, reply
from support.slurm import missing, slurm
from support.subtasks import GoalModel
from support.trees import make_repository, until
from support.workers import in_place, install, nothing_left, workers

from tui_agent.store.graph import SubTask

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "it can be started")
RUN = "srun --quiet --ntasks=1 {command}"


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Generator[Mapping[str, str]]:
    with slurm(tmp_path_factory.mktemp("slurm") / "one") as variables:
        yield variables


@pytest.fixture
def folder(tmp_path: Path, queue: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in queue.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TEST_OF", str(os.getpid()))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PATH", f"{install(tmp_path / 'installed')}:{os.environ['PATH']}")
    return make_repository(tmp_path / "my work", {"a.py": "print(1)\n"})


def empty() -> None:
    """Waits until no job is queued or runs."""
    until = time.monotonic() + 20
    while left := subprocess.check_output(("squeue", "-h", "-t", "PD,R")):
        assert time.monotonic() < until, left
        time.sleep(0.05)


async def test_a_command_and_its_stop(folder: Path) -> None:
    async with open_session(folder, [], overrides=places({"name": "there", "run": RUN})) as session:
        await session.commands.run("@there cat a.py; echo new > n; exit 4")
        await session.commands.ended()
        first = session.state.commands.results[-1]
        assert "print(1)\n" in first.output  # srun may add a line about the status, before or after it.
        assert (first.status, first.changed) == (4, ("n",))
        begun = asyncio.Event()
        session.subscribe(when_printed("begun", begun))
        await session.commands.run(f"@there trap '' TERM; echo begun; {SLEEP}1")
        await asyncio.wait_for(begun.wait(), 60)
        await session.stop_everything()
        assert session.state.commands.results[-1].how == "stopped"
        await asyncio.to_thread(all_ended, SLEEP)
    await asyncio.to_thread(empty)


@pytest.mark.parametrize("cancels", [False, True])
async def test_subtasks_are_jobs(folder: Path, cancels: bool) -> None:
    """A cancelled job is a lost machine; a stopped sub-task leaves no job."""
    made = reply("Made a.", fileChanges=[{"path": "a.txt", "content": "new\n"}])
    model = GoalModel({"Do a": [] if cancels else [made], "Do b": []})
    tasks = [SubTask(name, f"Do {name}") for name in "ab"]
    async with in_place(folder, model, tasks, {"run": RUN}, "subtasks.max_parallel=2") as session:
        await session.subtasks.run("a")
        if cancels:
            await until(lambda: model.unanswered == 1)
            model.answers["Do a"] = [made]
            await asyncio.to_thread(subprocess.check_call, ("scancel", "--user=root"))
        await session.subtasks.settled()
        task = session.state.subtasks.tasks[0]
        assert (task.state, task.runs) == ("completed", 1 + cancels), task.reason
        assert [change.path for change in session.state.review.changes] == ["a.txt"]
        await session.subtasks.run("b")
        await until(lambda: model.unanswered == 1 + cancels)
        begun = time.monotonic()
        await session.subtasks.stop("b")
        assert time.monotonic() - begun < 3
        assert not workers()
    await asyncio.to_thread(nothing_left)
    await asyncio.to_thread(empty)
