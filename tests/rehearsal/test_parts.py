"""The sub-tasks of the rehearsal run, come together, and leave a project whose tests pass."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from support.rehearsal_scenes import SUB_TASKS_REQUEST

from tui_agent.rehearsal import copy_project, recording
from tui_agent.session.opening import Opening, open_session


def its_tests(folder: Path) -> int:
    """Runs the project's own tests, which must pass; how many there are."""
    command = [sys.executable, "-B", "-m", "unittest"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return int(done.stderr.partition("Ran ")[2].split()[0])


async def test_they_run_together_and_their_work_is_one_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "0")
    project = copy_project(tmp_path / "shop")
    session = await open_session(Opening(project, replay=recording(), rehearsal=True))
    try:
        await session.start_services()
        await session.chat.submit(SUB_TASKS_REQUEST)
        await session.chat.finished()
        await session.subtasks.run_ticked()
        await session.subtasks.settled()
        assert {task.state for task in session.state.subtasks.tasks} == {"completed"}
        assert {change.state for change in session.state.review.open} == {"pending"}
        cli = next(change for change in session.state.review.open if change.path == "shop/cli.py")
        assert cli.tasks == ("words", "command")
        await session.review.apply()
        await session.subtasks.retry("client")
        await session.subtasks.settled()
        assert session.state.subtasks.tasks[1].state == "completed"
    finally:
        await session.close()
    assert await asyncio.to_thread(its_tests, project) == 12
