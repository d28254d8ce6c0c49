"""A session in a repository: every apply is a private commit, files are compared with it, commits only on request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.sessions import model_of, open_session, reply

from tui_agent.errors import FileError, SessionError
from tui_agent.session.session import Session

EDIT = reply(
    "Edits.",
    fileChanges=[
        {"path": "a.txt", "edits": [{"search": "one\n", "replace": "two\n"}]},
        {"path": "new.txt", "content": "new\n"},
    ],
)


def sample(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "work", {"a.txt": "one\n", "b.txt": "b\n"})
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    return folder


async def applied(session: Session) -> None:
    await session.chat.submit("Change a.txt")
    await session.chat.finished()
    await session.review.apply()
    kept = asyncio.Event()
    leave = session.subscribe(
        lambda event, state: kept.set() if state.review.checkpoints[-1].commit else None
    )
    if not session.state.review.checkpoints[-1].commit:
        await asyncio.wait_for(kept.wait(), 20)
    leave()


async def test_an_apply_is_a_private_commit_that_files_are_compared_with(tmp_path: Path) -> None:
    folder = sample(tmp_path)
    before = git(folder, "rev-parse", "HEAD"), git(folder, "ls-files", "--stage")
    async with open_session(folder, [EDIT]) as session:
        await applied(session)
        point = session.state.review.checkpoints[0]
        assert git(folder, "show", f"{point.commit}:new.txt") == "new\n"
        assert (git(folder, "rev-parse", "HEAD"), git(folder, "ls-files", "--stage")) == before
        assert [version.name for version in session.review.versions()] == ["HEAD", "k1"]
        diff = await session.review.version_diff("a.txt", "HEAD")
        assert [(hunk.removed, hunk.added) for hunk in diff.hunks] == [(("one\n",), ("two\n",))]
        assert (await session.review.version_diff("a.txt", "k1")).hunks == ()
        await session.files.open("a.txt")
        session.files.edit("a.txt", "typed\n", (0, 0), (0, 0))
        assert (await session.review.version_diff("a.txt", "k1")).hunks[0].added == ("typed\n",)
        assert (await session.review.version_diff("new.txt", "HEAD")).hunks[0].removed == ()
        with pytest.raises(SessionError, match="no apply k9"):
            await session.review.version_diff("a.txt", "k9")
        assert (await session.review.version_diff("b.txt", "k1")).hunks == ()
        git(folder, "update-ref", "-d", f"refs/tui-agent/{session.state.session.id}/k1")
        git(folder, "prune", "--expire=now")
        with pytest.raises(FileError, match="was deleted"):
            await session.review.version_diff("a.txt", "k1")
        await session.review.version_diff("a.txt", "HEAD")


async def test_a_commit_is_drafted_outside_the_conversation_and_made_only_on_request(tmp_path: Path) -> None:
    folder = sample(tmp_path)
    head = git(folder, "rev-parse", "HEAD")
    async with open_session(folder, [EDIT, "```\nSay two instead of one\n```"]) as session:
        with pytest.raises(SessionError, match="nothing to commit"):
            await session.review.commit_plan()
        await applied(session)
        sent = session.state.conversation.messages
        plan = await session.review.commit_plan()
        assert [(file.path, file.applied) for file in plan.files] == [("a.txt", True), ("new.txt", True)]
        plan = plan.of(["a.txt", "new.txt"])
        message = await session.review.draft_commit(plan)
        assert message == "Say two instead of one"
        asked = model_of(session).requests[-1].messages
        assert "-one" in asked[-1]["content"] and len(asked) == 2
        assert session.state.conversation.messages == sent
        assert git(folder, "rev-parse", "HEAD") == head
        with pytest.raises(FileError, match="needs a message"):
            await session.review.commit("  \n", plan)
        await session.review.commit(message, plan)
        assert git(folder, "log", "-1", "--format=%s").strip() == message
        assert git(folder, "status", "--porcelain") == ""
        (folder / "a.txt").write_text("mine\n")
        assert [file.applied for file in (await session.review.commit_plan()).files] == [False]


async def test_a_secret_is_not_shown_to_the_model_for_a_message(tmp_path: Path) -> None:
    folder = sample(tmp_path)
    (folder / ".env").write_text("KEY=hidden\n")
    (folder / "b.txt").write_text("shown\n")
    git(folder, "add", ".env", "b.txt")
    async with open_session(folder, ["Message"]) as session:
        plan = await session.review.commit_plan()
        assert {file.path for file in plan.files if not file.applied} == {".env", "b.txt"}
        await session.review.draft_commit(plan)
        asked = str(model_of(session).requests[-1].messages)
        assert "shown" in asked and "hidden" not in asked


async def test_without_a_repository_there_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    async with open_session(tmp_path / "work", [EDIT]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        with pytest.raises(SessionError, match="no git repository"):
            await session.review.commit_plan()
        with pytest.raises(SessionError, match="no git repository"):
            await session.review.version_diff("a.txt", "HEAD")
