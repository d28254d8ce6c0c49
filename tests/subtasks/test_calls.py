from __future__ import annotations

from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import reply
from support.subtasks import GoalModel, states, working

from tui_agent.edits.change import Change
from tui_agent.errors import SessionError
from tui_agent.store.graph import SubTask
from tui_agent.store.state import ChatMessage, ChatSlice, ReviewSlice, State
from tui_agent.subtasks.run import work_of
from tui_agent.ui.panes.subtasks import title

API, UI, TESTS = "Give the client timeouts", "Show the timeouts", "Test both"
TASKS = (
    SubTask("api", API, ("api.py",)),
    SubTask("ui", UI, ("ui.py",)),
    SubTask("tests", TESTS, ("test_both.py",), ("api", "ui")),
)


def edit(path: str, search: str, to: str) -> dict:
    return {"path": path, "edits": [{"search": search, "replace": to}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"api.py": "a = 1\n", "ui.py": "u = 1\n"})


async def test_a_sub_task_works_in_a_copy_and_its_changes_wait_for_review(folder: Path):
    model = GoalModel({API: [reply("Gives them.", fileChanges=[edit("api.py", "a = 1", "a = 2")])]})
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("api")
        await session.subtasks.settled()
        api = session.state.subtasks.get("api")
        assert api and (api.state, api.summary, api.runs) == ("completed", "Gives them.", 1)
        assert [step.path for step in api.changed] == ["api.py"]
        (change,) = session.state.review.open
        assert (change.path, change.tasks, change.state) == ("api.py", ("api",), "pending")
        assert (folder / "api.py").read_text() == "a = 1\n"
        await session.review.apply()
        assert (folder / "api.py").read_text() == "a = 2\n"
    assert git(folder, "worktree", "list").count("\n") <= 1


async def test_what_waits_for_others_begins_with_what_they_did(folder: Path):
    model = GoalModel(
        {
            API: [reply(fileChanges=[edit("api.py", "a = 1", "a = 2")])],
            UI: [reply(fileChanges=[edit("ui.py", "u = 1", "u = 2")])],
            TESTS: [reply(fileChanges=[edit("api.py", "a = 2", "a = 3")])],
        }
    )
    async with working(folder, model, TASKS) as session:
        for task in TASKS:
            await session.subtasks.run(task.id)
        await session.subtasks.settled()
        assert states(session) == dict.fromkeys(("api", "ui", "tests"), "completed")
        assert [task.outside for task in session.state.subtasks.tasks] == [(), (), ("api.py",)]
        await session.review.apply()
    assert (folder / "api.py").read_text() == "a = 3\n"
    assert (folder / "ui.py").read_text() == "u = 2\n"


async def test_one_that_waits_does_not_begin_and_is_refused_where_each_begins_by_key(folder: Path):
    async with working(folder, GoalModel({}), TASKS, overrides=("subtasks.begin=manual",)) as session:
        with pytest.raises(SessionError, match="waits for others"):
            await session.subtasks.run("tests")


async def test_files_that_are_missing_or_outside_are_told_and_the_summary_is_of_the_work(folder: Path):
    task = SubTask("api", API, ("api.py", "gone.py", "../other.py"))
    model = GoalModel({API: [reply("Adds the timeout.", fileChanges=[edit("api.py", "a = 1", "a = 2")])]})
    async with working(folder, model, (task,)) as session:
        await session.subtasks.run("api")
        await session.subtasks.settled()
        told = "gone.py is not there; ../other.py is outside the workspace"
        assert any(told in notice.text for notice in session.state.notices.items)
        api = session.state.subtasks.get("api")
        assert api and api.summary == f"Adds the timeout. ({told})"


def test_the_work_is_what_was_said_with_the_changes_and_not_the_last_word():
    changes = (Change("c1", 1, "a.py", "edit", "applied"),)

    def work(*said: tuple[str, tuple[str, ...]]) -> str:
        messages = tuple(ChatMessage(n, "agent", 1, text, changes=ids) for n, (text, ids) in enumerate(said))
        return work_of(State(chat=ChatSlice(messages), review=ReviewSlice(changes)))

    assert work(("Adds a timeout to a.py.", ("c1",)), ("ok", ())) == "Adds a timeout to a.py."
    assert work(("", ("c1",)), ("The client gives up after 5 s.", ()), ("All done.", ())) == (
        "The client gives up after 5 s."
    )
    assert work(("", ("c1",)), ("ok.", ())) == "Changed a.py."


def test_the_title_counts_conflicts_and_what_is_stalled():
    tasks = (
        SubTask("a", "A", state="failed"),
        SubTask("b", "B", dependencies=("a",)),
        SubTask("c", "C", dependencies=("b",)),
        SubTask("d", "D", state="completed"),
    )
    changes = (Change("c1", 1, "a.py", "edit", "conflict", tasks=("d",)),)
    assert title("Sub-tasks", tasks, 4, changes=changes) == "Sub-tasks 1/4 ✗1 ⚠1 · 2 stalled"
