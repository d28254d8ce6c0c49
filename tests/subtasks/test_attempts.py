"""Attempts at one goal by agents and by the model: compared, and one is taken into the review."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.repositories import repository
from support.sessions import open_session, reply
from support.subtasks import GoalModel, working
from support.trees import until

from tui_agent.errors import SessionError
from tui_agent.session.session import Session
from tui_agent.ui.slash_commands import call_of

CHECK = [{"name": "no three", "command": "! grep -q three a.txt"}]


def profile(session: Session, name: str, script: str) -> None:
    folder = session.folders.config / "agent-programs"
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"program": "/bin/sh", "headless": ["-c", f"{script}; echo Done by {name}.", "x", "{prompt}"]}
    (folder / f"{name}.toml").write_text(
        "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
    )


async def said(session: Session, text: str) -> str:
    call = call_of(session, text)
    assert call is not None
    return await call


def compared(session: Session) -> list[str]:
    return [message.text for message in session.state.chat.messages if "/take" in message.text]


async def test_two_agents_try_the_same_and_one_is_taken_into_the_review(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n", "b.txt": "b\n"})
    async with open_session(root, [], overrides=(f"checks.commands={json.dumps(CHECK)}",)) as session:
        profile(session, "good", "echo two >> a.txt; rm b.txt; chmod +x a.txt")
        profile(session, "bad", "echo three >> a.txt; echo $1 > goal.txt")
        assert "2 attempts" in await said(session, "/best good bad Add two")
        await session.subtasks.settled()
        await until(lambda: compared(session), "the comparison")
        lines = compared(session)[0].splitlines()
        assert "best 1.1 good (" in lines[0] and "checks passed, 2 files, +1 -1: Done by good." in lines[0]
        assert "best 1.2 bad (" in lines[1] and "no three failed, 2 files, +" in lines[1]
        assert session.state.review.changes == ()
        assert {path.name: path.read_text() for path in root.glob("*.txt")} == {
            "a.txt": "one\n",
            "b.txt": "b\n",
        }
        assert await said(session, "/take good") == "2 changed files in the review"
        kinds = {one.path: (one.kind, one.executable, one.state) for one in session.state.review.changes}
        assert kinds == {"a.txt": ("edit", True, "pending"), "b.txt": ("delete", None, "pending")}
        with pytest.raises(SessionError, match="are in the review"):
            await session.subtasks.take("best 1.1 good")
        await session.review.apply()
        assert (root / "a.txt").read_text() == "one\ntwo\n" and not (root / "b.txt").exists()
        with pytest.raises(SessionError, match="no sub-task"):
            await session.subtasks.take("another")


async def test_the_model_tries_several_times_and_what_fails_is_in_the_comparison(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n"})
    answers = [
        reply(f"Way {number}.", fileChanges=[{"path": f"{number}.txt", "content": "new\n"}])
        for number in (1, 2)
    ]
    async with working(root, GoalModel({"Find a way": answers})) as session:
        with pytest.raises(SessionError, match="2 to 8"):
            await said(session, "/best 1 Find a way")
        with pytest.raises(SessionError, match="2 to 8"):
            await said(session, "/best 3")
        profile(session, "broken", "exit 3")
        await said(session, "/best 2 Find a way")
        await session.subtasks.settled()
        await until(lambda: compared(session), "the comparison")
        assert compared(session)[0].count("1 file, +1 -0: Way") == 2
        assert await session.subtasks.take("best 1.2") == 1
        await said(session, "/best broken broken Find a way")
        await session.subtasks.settled()
        await until(lambda: len(compared(session)) == 2, "the second comparison")
        assert compared(session)[1].count("failed: broken ended with 3") == 2
        with pytest.raises(SessionError, match="cannot be taken"):
            await session.subtasks.take(session.state.subtasks.tasks[-1].id)


async def test_models_try_the_same_and_each_is_asked_by_its_name(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n"})
    answers = [
        reply(f"Way {number}.", fileChanges=[{"path": f"{number}.txt", "content": "new\n"}])
        for number in (1, 2)
    ]
    model = GoalModel({"Find a way": answers})
    async with working(root, model) as session:
        await said(session, "/best openai/gpt-one anthropic/claude-two Find a way")
        await session.subtasks.settled()
        await until(lambda: compared(session), "the comparison")
        lines = compared(session)[0].splitlines()
        assert [line.partition(" (")[0] for line in lines[:2]] == [
            "best 1.1 openai/gpt-one",
            "best 1.2 anthropic/claude-two",
        ]
        assert {request.model for request in model.requests} == {"openai/gpt-one", "anthropic/claude-two"}
        assert await said(session, "/take anthropic/claude-two") == "1 changed file in the review"
