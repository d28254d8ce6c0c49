"""Sub-tasks stopped, waited for and ended at every awkward moment: none is left running, and every place is free."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import open_session, reply
from support.subtasks import GoalModel, states, working
from support.trees import until

from tui_agent.errors import FileError, SessionError
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage
from tui_agent.store.graph import SubTask
from tui_agent.subtasks import merge

GOALS = {name: f"Do part {name}" for name in ("a", "b", "x", "y")}
TASKS = tuple(SubTask(name, GOALS[name]) for name in ("a", "b"))


def made(name: str) -> dict:
    return reply(f"Made {name}.", fileChanges=[{"path": f"{name}.txt", "content": "new\n"}])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "work", {"start.txt": "start\n"})


async def test_a_stop_reaches_what_begins_in_the_same_moment(folder: Path):
    model = GoalModel({GOALS["a"]: [made("a")]})
    async with working(folder, model, TASKS) as session:
        for _ in range(2):
            await session.subtasks.run("a")
            await asyncio.sleep(0)
            with pytest.raises(SessionError, match="is running"):
                await session.subtasks.skip("a")
            await session.subtasks.stop("a")
            assert states(session)["a"] == "cancelled" and not session.state.subtasks.running
            await session.journal.record(e.SubTaskMoved("a", "pending"))
        assert model.requests == []
        await session.subtasks.run("a")
        await session.subtasks.settled()
        assert states(session)["a"] == "completed"


async def test_many_stops_at_once_are_one_and_what_was_paid_stands_in_the_log(folder: Path, home: Path):
    model = GoalModel({GOALS["a"]: [reply(todos=[{"text": "More"}], fileChanges=made("a")["fileChanges"])]})
    async with working(folder, model, TASKS) as session:
        await session.subtasks.run("a")
        await until(lambda: model.unanswered)
        await asyncio.gather(
            session.stop_everything(),
            session.subtasks.stop("a"),
            session.subtasks.stop_all(),
            session.chat.stop(),
        )
        task = session.state.subtasks.get("a")
        assert task and (task.state, task.wanted) == ("cancelled", False)
        paid = session.state.usage.session
        assert task.tokens == paid.input + paid.output > 120  # the second request was under way
        assert not session.state.subtasks.running
        copies = (home / "data" / "worktrees").glob("*/*")
        assert [path.name for path in copies if not path.name.startswith((".seed", ".gone-"))] == []


async def test_parts_of_a_part_come_before_the_others_and_never_more_than_may_work(folder: Path):
    split = [{"id": "x", "goal": GOALS["x"]}, {"id": "y", "goal": GOALS["y"], "dependencies": ["x"]}]
    model = GoalModel(
        {
            GOALS["a"]: [reply("Splits.", subTasks=split), reply("No more.")],
            **{GOALS[name]: [made(name)] for name in ("b", "x", "y")},
        }
    )
    overrides = ("subtasks.max_depth=2", "subtasks.max_parallel=1")
    async with working(folder, model, TASKS, overrides=overrides) as session:
        for name in ("a", "b"):
            await session.subtasks.run(name)
        await session.subtasks.settled()
        assert {change.path for change in session.state.review.open} == {"b.txt", "x.txt", "y.txt"}
        assert model.at_once == 1 and len(model.asked(GOALS["b"])) == 1


async def test_what_cannot_be_taken_in_has_failed_and_runs_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> str:
        raise FileError("content is damaged in the store", "read the file again")

    monkeypatch.setattr(merge, "text_under", broken)
    async with working(folder, GoalModel({GOALS["a"]: [made("a")]}), TASKS) as session:
        await session.subtasks.run("a")
        await session.subtasks.settled()
        task = session.state.subtasks.get("a")
        assert task and task.state == "failed" and "were rejected. content is damaged" in task.reason


async def test_what_may_cost_nothing_more_is_refused_once(folder: Path):
    async with working(folder, GoalModel({}), TASKS, overrides=("limits.session_tokens=1",)) as session:
        await session.journal.record(e.UsageCounted(Usage(2), "subtask"))
        await session.subtasks.run("a")
        await session.subtasks.settled()
        refused = [item for item in session.state.notices.items if "No sub-task is started" in item.text]
        assert len(refused) == 1 and not any(task.wanted for task in session.state.subtasks.tasks)
        assert notes(session) == [refused[0].text]


@pytest.mark.parametrize("needs", [[], ["nobody"]])
async def test_sub_tasks_that_are_refused_are_told_in_the_chat_for_good(folder: Path, needs: list[str]):
    tasks = [{"id": f"p{n}", "goal": f"Part {n}", "dependencies": needs} for n in range(20)]
    async with open_session(folder, [reply("Twenty parts.", subTasks=tasks)]) as session:
        await session.chat.submit("Split it")
        await session.chat.finished()
        (note,) = notes(session)
        assert ("nobody" if needs else "refused: p8, p9") in note


def notes(session: Session) -> list[str]:
    return [message.text for message in session.state.chat.messages if message.kind == "note"]
