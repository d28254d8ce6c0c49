"""git from the screen: a file against its versions, and a commit that the person has the last word on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.screens import on_screen
from support.sessions import reply

from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.widgets.text_area import WritingArea

EDIT = reply("Edits.", fileChanges=[{"path": "a.txt", "edits": [{"search": "one\n", "replace": "two\n"}]}])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "work", {"a.txt": "one\nsame\n"})
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    return folder


async def test_a_file_is_compared_and_committed_by_key(workspace: Path) -> None:
    async with on_screen(workspace, [EDIT, "Say two"]) as driven:
        session = driven.session
        await driven.press(*"Change a.txt", "enter")
        await driven.until(lambda: session.state.review.open, "a change")
        await session.chat.finished()
        await driven.press("f5", "A")
        await driven.until(lambda: any(p.commit for p in session.state.review.checkpoints), "a commit kept")
        await driven.press("g")
        await driven.shows("a.txt against the last commit (1 of 2)")
        await driven.shows("+ two")
        await driven.press("left")
        await driven.shows("after apply k1")
        await driven.shows("No line differs.")
        await driven.press("escape")
        await driven.press("ctrl+o", "i")
        await driven.shows("Commit what was applied to main: a.txt")
        await driven.press("end", *" now", "f2")
        await driven.until(
            lambda: git(workspace, "log", "-1", "--format=%s").strip() == "Say two now", "the commit"
        )
        await driven.shows("Committed")


async def test_leaving_the_dialog_commits_nothing_and_without_a_model_one_writes_it_oneself(
    workspace: Path,
) -> None:
    from tui_agent.errors import Unreachable

    git(workspace, "mv", "a.txt", "b.txt")
    head = git(workspace, "rev-parse", "HEAD")
    async with on_screen(workspace, [Unreachable("x cannot be reached", "check it")]) as driven:
        await driven.press("ctrl+o", "i")
        await driven.shows("Commit what is staged")
        await driven.until(
            lambda: any(
                "write the message yourself" in notice.text for notice in driven.session.state.notices.items
            ),
            "the notice",
        )
        await driven.press("escape")
        await driven.pilot.pause()
        assert git(workspace, "rev-parse", "HEAD") == head


@pytest.mark.parametrize("leave", ["escape", "program"])
async def test_a_text_that_arrives_after_its_dialog_was_left_ends_nothing(
    workspace: Path, leave: str
) -> None:
    async def text() -> str:
        while not dialog.is_mounted or dialog.query(WritingArea):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)
        return "a message"

    async with on_screen(workspace, []) as driven:
        dialog = TextDialog("Commit", text(), holds_up=False)
        await driven.app.push_screen(dialog)
        await driven.pilot.pause()
        if leave == "escape":
            dialog.dismiss(None)
            await driven.pilot.pause()
