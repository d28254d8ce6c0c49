"""Sub-tasks think as much as the session that they belong to."""

from __future__ import annotations

from pathlib import Path

from support.sessions import reply
from support.subtasks import GoalModel, working

from tui_agent.store.graph import SubTask


async def test_a_sub_task_has_the_effort_that_was_chosen_in_its_session(tmp_path: Path) -> None:
    model = GoalModel({"Say hello": [reply()]})
    task = SubTask("hello", "Say hello")
    async with working(tmp_path, model, [task], overrides=["model=openai/o3"]) as session:
        await session.models.set_effort("high")
        await session.subtasks.run("hello")
        await session.subtasks.settled()
    assert [request.effort for request in model.requests if request.purpose == "subtask"] == ["high"]
