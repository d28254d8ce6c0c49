"""A process that is killed while a sub-task runs: the next start says so, and nothing of its copy is left."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from support.repositories import git, repository
from support.sessions import reply
from support.subtasks import GoalModel, states, working
from support.trees import until

from tui_agent.store.graph import SubTask

GOAL = "Do part a"
TASK = SubTask("a", GOAL, ("a.txt",))


def killed(folder: Path) -> None:
    """Begin a session whose sub-task waits for its model, and kill it there."""

    async def run() -> None:
        model = GoalModel({GOAL: [reply()]})
        model.held[GOAL] = asyncio.Event()
        async with working(folder, model, [TASK]) as session:
            await session.subtasks.run("a")
            await until(lambda: model.open == 1)
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            asyncio.run(run())
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_the_next_start_leaves_nothing_and_runs_it_again_when_asked(tmp_path: Path, home: Path) -> None:
    folder = repository(tmp_path / "work", {"a.txt": "one\n"})
    killed(folder)
    assert list((home / "data" / "worktrees").glob("*/*")), "it was killed before it had a copy"

    async def again() -> None:
        change = {"path": "a.txt", "edits": [{"search": "one", "replace": "two"}]}
        model = GoalModel({GOAL: [reply(fileChanges=[change])]})
        async with working(folder, model, session="last") as session:
            await until(lambda: not list((home / "data" / "worktrees").glob("*/*")))
            assert git(folder, "worktree", "list").count("\n") == 1
            (task,) = session.state.subtasks.tasks
            assert (task.state, task.wanted) == ("failed", False) and "Interrupted" in task.reason
            assert model.requests == []
            await session.subtasks.retry("a")
            await session.subtasks.settled()
            assert states(session) == {"a": "completed"}

    asyncio.run(again())
    assert not list((home / "data" / "worktrees").glob("*"))
    assert git(folder, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"
