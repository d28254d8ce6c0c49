"""A sub-task that names an agent has its prompt, its model and its tools, and never more than its parent."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import calls, reply
from support.subtasks import GoalModel, working

from tui_agent.model.client import ModelRequest
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store.graph import SubTask

AUTO = ("subtasks.begin=auto",)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "person"
    (folder / ".claude/agents").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("one = 1\n")
    return tmp_path / "work"


def write(home: Path, *lines: str) -> None:
    text = "\n".join(["---", "description: Reviews code", *lines, "---", "You review line by line."])
    (home / ".claude/agents/reviewer.md").write_text(text)


def names(request: ModelRequest) -> set[str]:
    return {tool["function"]["name"] for tool in request.tools}


def text(request: ModelRequest) -> str:
    return "\n".join(text_of(message) for message in request.messages)


async def turn(session: Session, words: str = "Review all") -> None:
    await session.chat.submit(words)
    await session.chat.finished()
    await session.subtasks.settled()


def spawn(agent: str) -> list:
    task = {"id": "look", "goal": "Look at a.py", "autoExecute": True, "agent": agent}
    return calls(("spawn_subtasks", {"subTasks": [task]}))


async def test_the_model_names_an_agent(home: Path, work: Path) -> None:
    write(home, "tools: Read, Bash(git log:*)", "model: openai/gpt-5")
    run = [("run_command", {"command": f"git {words}"}) for words in ("status", "log; rm a.py")]
    model = GoalModel(
        {"Review all": [spawn("reviewer")], "Look at a.py": [calls(*run), calls(text="Fine.")]}, []
    )
    model.tools = True
    more = (*AUTO, "protocol=tools", "models.fallbacks=openai/gpt-5")
    async with working(work, model, [], overrides=more) as session:
        await turn(session)
        (task,) = session.state.subtasks.tasks
        assert (task.state, task.agent) == ("completed", "reviewer")
    first, child, answered = model.requests
    assert "- reviewer: Reviews code" in text(first) and "agent" in str(first.tools)
    assert child.model == "openai/gpt-5" and names(child) == {"read_files", "run_command"}
    assert "You review line by line." in text(child)
    assert text(answered).count("the rule `tools` of the sub-task's agent denies it") == 2


async def test_an_agent_has_no_tool_that_its_parent_lacks(home: Path, work: Path) -> None:
    write(home, "tools: Read, Bash, Edit", "disallowedTools: Edit")
    model = GoalModel({"Look at a.py": [calls(text="Fine.")]}, [])
    model.tools = True
    task = SubTask("look", "Look at a.py", agent="reviewer")
    more = ("protocol=tools", 'tools.off=["run_command"]')
    async with working(work, model, [task], overrides=more) as session:
        await session.subtasks.run("look")
        await session.subtasks.settled()
    assert names(model.requests[0]) == {"read_files"}


async def test_an_unknown_agent_is_refused_with_the_names(home: Path, work: Path) -> None:
    write(home)
    model = GoalModel({"Review all": [spawn("painter")]}, [])
    model.tools = True
    async with working(work, model, [], overrides=(*AUTO, "protocol=tools")) as session:
        await turn(session)
        assert not session.state.subtasks.tasks
        said = "\n".join(notice.text for notice in session.state.notices.items)
        assert "there is no agent painter (the agents are: reviewer)" in said


async def test_an_agent_that_is_gone_fails_its_sub_task(home: Path, work: Path) -> None:
    model = GoalModel({}, [])
    async with working(work, model, [SubTask("look", "Look at a.py", agent="gone")]) as session:
        await session.subtasks.run("look")
        await session.subtasks.settled()
        assert "There is no agent gone any more" in session.state.subtasks.tasks[0].reason
    assert not model.requests


async def test_without_agents_the_requests_say_nothing_about_them(work: Path) -> None:
    model = GoalModel({"Review all": [reply()]}, [])
    async with working(work, model, []) as session:
        await turn(session)
    assert "agent" not in str(model.requests[0].schema) and "# Agents" not in text(model.requests[0])
