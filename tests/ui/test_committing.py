"""git from the screen: a file against its versions, and a commit that the person has the last word on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.bursts import CTRL_G, ENTER, ESC, LEADER, Typist
from support.repositories import git, repository
from support.screens import PATIENCE, on_screen
from support.sessions import model_of, reply

from tui_agent.ui.dialogs import dialog
from tui_agent.ui.dialogs.dialog import TextDialog
from tui_agent.ui.editor.writing_area import WritingArea
from tui_agent.ui.panes.files import FilesPane
from tui_agent.ui.widgets.prompt import Prompt

EDIT = reply("Edits.", fileChanges=[{"path": "a.txt", "edits": [{"search": "one\n", "replace": "two\n"}]}])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "work", {"a.txt": "one\nsame\n"})
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    return folder


async def test_a_file_is_compared_and_committed_by_key(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialog, "AT_MOST", PATIENCE)
    async with on_screen(workspace, [EDIT, "Say two"]) as driven:
        session = driven.session
        await driven.press("f3")
        await driven.until(lambda: driven.one(FilesPane).has_focus_within, "the files")
        await driven.press("d")
        await driven.shows("a.txt compared with the last commit")
        await driven.shows("There are no differences.")
        assert "1 of 1" not in driven.text and "another version" not in driven.text
        await driven.press("escape", "f7")
        # without a change the dialog closes by itself, and the keys are for the chat
        await Typist(driven, workspace).types(LEADER + "i" + "Change a.txt" + ENTER)
        await driven.until(lambda: session.state.review.open, "a change")
        await session.chat.finished()
        await driven.press("f5", "A")
        await driven.until(lambda: any(p.commit for p in session.state.review.checkpoints), "a commit kept")
        await driven.press("g")
        await driven.shows("a.txt compared with the last commit (1 of 2)")
        await driven.shows("+ two")
        await driven.press("left")
        await driven.shows("apply 1 of turn 1")
        await driven.shows("There are no differences.")
        await driven.press("escape")
        await driven.press("ctrl+o", "i")
        await driven.shows("Commit 1 file to main")
        await driven.shows("Say two")
        await driven.press("end", *" now", "ctrl+g")
        await driven.until(
            lambda: git(workspace, "log", "-1", "--format=%s").strip() == "Say two now", "the commit"
        )
        await driven.shows("Committed")


@pytest.mark.parametrize("size", [(160, 48), (80, 24)])
async def test_what_was_applied_is_ticked_and_hooks_run_only_when_asked(
    workspace: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialog, "AT_MOST", PATIENCE)
    hook, ran = workspace / ".git/hooks/pre-commit", workspace / ".git/ran"
    hook.write_text(f'#!/bin/sh\ntouch "{ran}"\necho not so >&2\nexit 1\n')
    hook.chmod(0o755)
    (workspace / "mine.txt").write_text("mine\n")
    git(workspace, "add", "mine.txt")
    (workspace / "b.txt").write_text("other\n")
    async with on_screen(workspace, [EDIT, "Say two"], size=size) as driven:
        session = driven.session
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        await driven.press("ctrl+o", "i")
        for words in ("[x] a.txt", "[ ] mine.txt", "new · staged", "[ ] b.txt", "+ two", "[ ] run hooks"):
            await driven.shows(words)
        await driven.shows("Say two")
        await driven.press("tab", "down", "space")
        await driven.shows("Commit 2 files to main")
        await driven.shows("+ mine" if "[x] mine.txt" in driven.text else "+ other")
        await driven.press("space", "h", "ctrl+g")
        await driven.shows("not so")
        assert ran.exists() and git(workspace, "log", "--format=%s").split() == ["First"]
        assert "Say two" in driven.text
        await driven.press("h")
        await Typist(driven, workspace).types(CTRL_G + ESC + "more")
        assert git(workspace, "log", "-1", "--format=%s").strip() == "Say two"
        assert session.state.notices.items[-1].text.startswith("Committed")
        assert driven.screen.query_one(Prompt).text == "more", "the keys behind it are for what is there then"
    assert git(workspace, "show", "--name-only", "--format=").split() == ["a.txt"]
    assert git(workspace, "status", "--porcelain") == "A  mine.txt\n?? b.txt\n"


async def test_leaving_the_dialog_commits_nothing_and_without_a_model_one_writes_it_oneself(
    workspace: Path,
) -> None:
    from tui_agent.errors import Unreachable

    head = git(workspace, "rev-parse", "HEAD")
    async with on_screen(workspace, [EDIT, Unreachable("x cannot be reached", "check it")]) as driven:
        await driven.session.chat.submit("Change a.txt")
        await driven.session.chat.finished()
        await driven.session.review.apply()
        await driven.press("ctrl+o", "i")
        await driven.shows("x cannot be reached; write the message yourself")
        assert model_of(driven.session).requests[-1].purpose == "draft"
        await driven.press(*"mine", "escape")
        await driven.shows("Esc again discards your text")
        await driven.press("escape")
        await driven.until(lambda: driven.app.screen is driven.screen, "the dialog left")
        assert git(workspace, "rev-parse", "HEAD") == head


async def test_a_commit_goes_on_where_its_dialog_is_left_and_says_what_came_of_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, go = workspace / ".git/hooks/pre-commit", workspace / ".git/go"
    hook.write_text(f'#!/bin/sh\nwhile [ ! -e "{go}" ]; do sleep 0.02; done\necho not so >&2\nexit 1\n')
    hook.chmod(0o755)
    async with on_screen(workspace, [EDIT, "Say two"]) as driven:
        session = driven.session
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        await driven.press("ctrl+o", "i")
        await driven.shows("Say two")
        monkeypatch.setattr(dialog, "AT_MOST", 0.01)
        await driven.press("tab", "h", "ctrl+g")
        await driven.shows("Committing…")
        await driven.press("escape")
        await driven.until(lambda: driven.app.screen is driven.screen, "the dialog left")
        go.touch()
        await driven.until(lambda: session.state.notices.items, "what git said")
        assert "not so" in session.state.notices.items[-1].text


@pytest.mark.parametrize("leave", ["escape", "program"])
async def test_a_text_that_arrives_after_its_dialog_was_left_ends_nothing(
    workspace: Path, leave: str
) -> None:
    async def text() -> str:
        while not writing.is_mounted or writing.query(WritingArea):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
        return "a message"

    async with on_screen(workspace, []) as driven:
        writing = TextDialog("Summary", text())
        await driven.app.push_screen(writing)
        await driven.pilot.pause()
        if leave == "escape":
            writing.dismiss(None)
            await driven.pilot.pause()
