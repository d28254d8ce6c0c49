"""Sub-tasks on a Dask cluster of worker processes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from support.cluster import ClusterProcess, cluster
from support.command_line import run_here
from support.sessions import reply
from support.subtasks import GoalModel, states
from support.trees import make_tree, until
from support.workers import in_place, nothing_left

from tui_agent.places import dask_place
from tui_agent.places.proof import ClusterProof
from tui_agent.settings.folders import user_folders
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask

NAMES = ("a", "b", "c", "d")
TASKS = [SubTask(name, f"Do part {name}") for name in NAMES]


def answered(*names: str) -> dict[str, list]:
    return {
        f"Do part {name}": [reply(f"Made {name}.", fileChanges=[{"path": f"{name}.txt", "content": "new\n"}])]
        for name in names
    }


@pytest.fixture(scope="module", params=[0, 3], ids=["no repetitions", "repetitions"])
def machines(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Generator[ClusterProcess]:
    with cluster(tmp_path_factory.mktemp("cluster"), 2, request.param) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "start.txt": "start\n",
        "bin/tool": "#!/bin/sh\n",
        "secret.pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n",
    }
    return make_tree(tmp_path / "my work", files)


def place(machines: ClusterProcess) -> dict[str, object]:
    return {"kind": "dask", "run": machines.address}


async def test_parts_run_there_and_the_folder_is_there_without_secrets(
    folder: Path, machines: ClusterProcess
):
    model = GoalModel(answered(*NAMES))
    (folder / "start.txt").write_text("as on disk\n")
    tasks = [SubTask("a", "Do part a", ("start.txt", "secret.pem")), *TASKS[1:]]
    async with in_place(folder, model, tasks, place(machines), "subtasks.max_parallel=4") as session:
        for name in NAMES:
            await session.subtasks.run(name)
        await session.subtasks.settled()
        assert set(states(session).values()) == {"completed"}, session.state.subtasks.tasks
        assert {change.path for change in session.state.review.changes} == {f"{name}.txt" for name in NAMES}
        assert {task.cost for task in session.state.subtasks.tasks} == {0.001}
        assert len(machines.starters()) <= 2, "one process of each machine forks all its workers"
    sent = str([request.messages for request in model.requests])
    assert "as on disk" in sent and "MIIEvQ" not in sent
    await asyncio.to_thread(nothing_left, machines.temporary)


async def test_stopped_within_two_seconds(folder: Path, machines: ClusterProcess):
    model = GoalModel({"Do part a": []})
    async with in_place(folder, model, TASKS, place(machines)) as session:
        await session.subtasks.run("a")
        await until(lambda: model.unanswered == 1)
        begun = time.monotonic()
        await session.subtasks.stop("a")
        assert time.monotonic() - begun < 2
        await asyncio.to_thread(nothing_left, machines.temporary)


@pytest.mark.parametrize("victim", ["the Dask worker", "our worker"])
async def test_a_lost_machine_ends_each_task_once(folder: Path, machines: ClusterProcess, victim: str):
    model = GoalModel({"Do part a": [], **answered("b")})
    model.held["Do part b"] = asyncio.Event()
    async with in_place(folder, model, TASKS, place(machines)) as session:
        await session.subtasks.run("a")
        await until(lambda: model.unanswered == 1)
        ((ours, theirs),) = machines.ours()
        model.answers.update(answered("a"))
        os.kill(ours if victim == "our worker" else theirs, signal.SIGKILL)
        await session.subtasks.settled()
        (task, *_) = session.state.subtasks.tasks
        assert (task.state, task.runs) == ("completed", 2), task.reason
        assert [change.path for change in session.state.review.changes] == ["a.txt"]
    await asyncio.to_thread(nothing_left, machines.temporary)


async def test_a_killed_worker_at_random_moments(folder: Path, machines: ClusterProcess):
    """Three rounds; `kill_at_random` takes any number."""
    await kill_at_random(folder, machines, 3, seed=1)


async def kill_at_random(folder: Path, machines: ClusterProcess, rounds: int, seed: int) -> None:
    """Each task of each round ends once, nothing is lost, doubled or left."""
    moments = random.Random(seed)
    for number in range(rounds):
        model = GoalModel({goal: one * 4 for goal, one in answered("a", "b").items()})
        root = make_tree(folder.parent / f"work {number}", {"start.txt": "start\n"})
        async with in_place(root, model, TASKS[:2], place(machines)) as session:
            for name in ("a", "b"):
                await session.subtasks.run(name)
            until_then = time.monotonic() + moments.uniform(0.0, 2.0)
            settled = asyncio.ensure_future(session.subtasks.settled())
            await asyncio.wait([settled], timeout=until_then - time.monotonic())
            for ours, theirs in machines.ours()[:1]:
                os.kill(moments.choice((ours, theirs)), signal.SIGKILL)
            await settled
            assert states(session) | {"c": "", "d": ""} == {
                "a": "completed",
                "b": "completed",
                "c": "",
                "d": "",
            }
            paths = sorted(change.path for change in session.state.review.changes)
            assert paths == ["a.txt", "b.txt"], paths
        await asyncio.to_thread(nothing_left, machines.temporary)


async def test_a_scheduler_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dask_place, "CONNECT", 0.3)
    async with in_place(
        folder, GoalModel({}), TASKS, {"kind": "dask", "run": "tcp://127.0.0.1:1"}
    ) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        (task, *_) = session.state.subtasks.tasks
        assert (task.state, task.runs) == ("failed", 3)
        reached = "The scheduler of there cannot be reached at tcp://127.0.0.1:1"
        assert task.reason == f"{reached}: start it, and see that `run` has its address"
        with pytest.raises(Exception, match="Only sub-tasks run in there"):
            await session.commands.run("@there true")


async def test_a_scheduler_that_is_lost_in_the_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each start is counted and shown; no worker and no task is left on its machines."""
    monkeypatch.setattr(dask_place, "CONNECT", 0.5)
    (tmp_path / "own").mkdir()
    with cluster(tmp_path / "own", 1) as own:
        model = GoalModel({"Do part a": []})
        async with in_place(folder, model, TASKS, place(own)) as session:
            moved: list[str] = []
            session.subscribe(
                lambda event, _: moved.append(event.reason) if isinstance(event, e.SubTaskMoved) else None
            )
            await session.subtasks.run("a")
            await until(lambda: model.unanswered == 1)
            own.process.kill()
            await session.subtasks.settled()
            (task, *_) = session.state.subtasks.tasks
            assert (task.state, task.runs) == ("failed", 3), task
            reached = f"The scheduler of there cannot be reached at {own.address}"
            assert task.reason == f"{reached}: start it, and see that `run` has its address"
            assert [words[:15] for words in moved if words] == ["Moved (1 of 2).", "Moved (2 of 2)."]
        await asyncio.to_thread(nothing_left, own.temporary)


async def test_each_step_of_the_proof_of_a_cluster(machines: ClusterProcess):
    seen = dask_place.Cluster("there", machines.address)
    # A worker that another test killed is started again.
    await (await seen.client()).wait_for_workers(2)  # ty: ignore[invalid-await]
    await seen.close()
    steps = [step async for step in ClusterProof("there", machines.address).steps()]
    assert [(step.name, step.ok) for step in steps] == [
        (name, True) for name in ("reach", "run", "stop", "speed")
    ], steps
    assert steps[0].words == "2 machines or processes, 2 at the same time"
    assert "MB/s" in steps[-1].words
    await asyncio.to_thread(nothing_left, machines.temporary)


def test_the_proof_of_a_cluster_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(dask_place, "CONNECT", 0.3)
    monkeypatch.chdir(tmp_path)
    settings = user_folders().config / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[[places]]\nname = "there"\nkind = "dask"\nrun = "tcp://127.0.0.1:1"\n')
    done = run_here(capfd, ["places", "test"])
    assert done.status == 1
    assert done.out.split()[:3] == ["there", "failed", "reach"] and done.out.count("\n") == 1
    assert "start it, and see that `run` has its address" in done.out
