from __future__ import annotations

import asyncio
from pathlib import Path

from support.repositories import repository
from support.sessions import reply
from support.subtasks import GoalModel, states, working

from tui_agent.store.graph import SubTask

API, TALK = "Give the client timeouts", "Talk with me"


async def test_the_turn_and_all_sub_tasks_stop_and_none_begins_after_them(tmp_path: Path):
    folder = repository(tmp_path / "work", {"api.py": "a = 1\n"})
    model = GoalModel({API: [reply()], TALK: [reply()]})
    model.held = {API: asyncio.Event(), TALK: asyncio.Event()}
    tasks = SubTask("api", API, ("api.py",)), SubTask("next", "Go on", ("api.py",), ("api",))
    async with working(folder, model, tasks) as session:
        await session.subtasks.run("api")
        await session.subtasks.run("next")
        await session.chat.submit(TALK)
        while model.open < 2:  # noqa: ASYNC110 as a person would see it, from outside
            await asyncio.sleep(0.01)
        await session.stop_everything()
        assert not session.state.turn.running
        assert states(session) == {"api": "cancelled", "next": "pending"}
        assert not any(task.wanted for task in session.state.subtasks.tasks)
