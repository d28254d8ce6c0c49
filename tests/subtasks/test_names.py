"""What a model may name a sub-task and its files: none of it leaves the folder, and a name may come again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import reply
from support.subtasks import GoalModel, states, working

from tui_agent.errors import SessionError
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask

GOAL = "Do the part"
ODD_FILES = ("../outside.txt", "/etc/passwd", "a\0b", "x" * 5000, ".git/config", "sub/", "", ".env", "a.txt")


async def test_no_name_of_a_task_or_file_leaves_the_folder_or_stops_it(tmp_path: Path, home: Path):
    folder = repository(tmp_path / "work", {"a.txt": "a\n"})
    (folder / ".env").write_text("KEY=abc\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    name = "../../a/b..\x1b[31m\0/☃" + "y" * 10_000
    model = GoalModel({GOAL: [reply("Done.", fileChanges=[{"path": "b.txt", "content": "b\n"}])]})
    async with working(folder, model, [SubTask(name, GOAL, ODD_FILES)]) as session:
        await session.subtasks.run(name)
        await session.subtasks.settled()
        assert states(session) == {name: "completed"}
        (kept,) = (path for path in session.storage.folder.glob("subtasks/*") if path.is_dir())
        assert kept.name.startswith("a-b-31m-") and len(kept.name) < 80
        assert (await session.subtasks.state_of(name)).chat.messages[-1].summary == "Done."
        shown = str(model.requests)
        assert "1: a" in shown and "KEY=abc" not in shown and "1: outside" not in shown


async def test_a_name_that_comes_again_in_another_graph_has_a_chat_of_its_own(tmp_path: Path):
    folder = repository(tmp_path / "work", {"a.txt": "a\n"})
    model = GoalModel({GOAL: [reply("First."), reply("Second."), reply("Third.")]})
    async with working(folder, model) as session:
        for number, summary in enumerate(("First.", "Second.", "Third."), 1):
            await session.journal.record(e.SubTasksProposed((SubTask("a", GOAL),)))
            await session.subtasks.run("a")
            await session.subtasks.settled()
            (task,) = session.state.subtasks.tasks
            assert (task.state, task.runs, task.run) == ("completed", 1, number)
            assert (await session.subtasks.state_of("a")).chat.messages[-1].summary == summary
        shutil.rmtree(
            session.storage.folder / "subtasks"
        )  # as in a fork, which has the graph and not the chats
        with pytest.raises(SessionError, match="not stored here"):
            await session.subtasks.state_of("a")
