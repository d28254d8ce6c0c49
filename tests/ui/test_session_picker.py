"""Choosing a session on the screen: listed, searched, previewed, renamed, deleted; one that is open elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.repositories import git, repository
from support.screens import Driven
from support.sessions import ScriptedModel, open_session, reply

from tui_agent.log.catalog import list_sessions
from tui_agent.log.directory import SessionEntry, SessionLock
from tui_agent.session import opening
from tui_agent.session.opening import Opening
from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.ui.app import WorkspaceApp
from tui_agent.ui.dialogs.context import SentView
from tui_agent.ui.dialogs.sessions import SessionPicker, _row
from tui_agent.ui.host import Choice


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = (tmp_path / "work").resolve()
    folder.mkdir()
    (folder / "a.py").write_text("a = 1\n")
    return folder


async def make(workspace: Path, request: str, answer: str) -> str:
    async with open_session(workspace, [reply(answer)]) as session:
        await session.chat.submit(request)
        await session.chat.finished()
        return session.state.session.id


@asynccontextmanager
async def program(workspace: Path, session: str = "", pick: bool = False) -> AsyncGenerator[Driven]:
    """The application as the command line starts it."""

    async def open_(choice: Choice) -> Session:
        found = await opening.open_session(Opening(workspace, choice.session, overrides=("model=scripted",)))
        found.models.model = ScriptedModel([])
        return found

    app = WorkspaceApp(
        lambda: open_(Choice(session)),
        reopen=open_,
        pick_from=(user_folders().data, workspace) if pick else None,
    )
    async with app.run_test(size=(140, 40)) as pilot:
        driven = Driven(app, app.session, pilot)  # ty: ignore[invalid-argument-type]
        try:
            yield driven
        finally:
            if app.session:
                await app.session.close()


async def test_one_is_picked_before_any_is_open(workspace: Path) -> None:
    first = await make(workspace, "paint it green", "Painted.")
    await make(workspace, "count the beans", "Seven.")
    async with program(workspace, pick=True) as driven:
        await driven.shows("2 sessions of this workspace")
        await driven.shows("Seven.")
        await driven.press(*"green")
        await driven.shows("1 session")
        await driven.shows("Painted.")
        await driven.press("enter")
        await driven.until(lambda: driven.app.session and driven.screen.ready, "the session open")
        assert driven.app.session is not None
        assert driven.app.session.state.session.id == first


async def test_choosing_none_ends_the_program(workspace: Path) -> None:
    await make(workspace, "x", "y")
    async with program(workspace, pick=True) as driven:
        await driven.shows("1 session")
        await driven.press("escape")
        await driven.until(lambda: driven.app.return_code == 0, "the end")
        assert driven.app.session is None


async def test_another_is_opened_from_the_middle_of_one(workspace: Path) -> None:
    first = await make(workspace, "first", "One.")
    second = await make(workspace, "second", "Two.")
    async with program(workspace, second) as driven:
        await driven.until(lambda: driven.screen.ready, "the panes")
        await driven.press("ctrl+o", "g")
        await driven.shows("2 sessions")
        await driven.press("enter")
        await driven.until(lambda: driven.app.next is not None, "the choice")
        assert driven.app.next == Choice(first)


async def test_renamed_sorted_and_deleted_with_a_question(workspace: Path) -> None:
    name = await make(workspace, "first", "One.")
    repository(workspace, {})
    git(workspace, "update-ref", f"refs/tui-agent/{name}/k1", "HEAD")
    async with program(workspace, pick=True) as driven:
        await driven.shows("1 session of this workspace, by newest")
        await driven.press("tab")
        await driven.shows("Sort by turns")
        await driven.press("down", "down", "down", "enter")
        await driven.shows("by turns")
        await driven.press("tab", *["down"] * 4, "enter")
        await driven.shows("everywhere, by turns")
        await driven.press("tab", "enter")
        await driven.shows("Name of this session")
        await driven.press(*"beans", "enter")
        await driven.shows("beans")
        await driven.until(lambda: isinstance(driven.app.screen, SessionPicker), "the list")
        await driven.shows("turns")
        await driven.press("tab", "down", "down", "enter")
        await driven.shows("Delete “beans”?")
        await driven.press("enter")
        await driven.until(lambda: isinstance(driven.app.screen, SessionPicker), "the list")
        assert [entry.name for entry in list_sessions(user_folders().data)] == ["beans"]
        await driven.press("tab", "down", "down", "enter")
        await driven.shows("Delete “beans”?")
        await driven.press("down", "enter")
        await driven.until(lambda: not list_sessions(user_folders().data), "the end of it")
        assert git(workspace, "for-each-ref", "refs/tui-agent") == ""


async def test_one_that_a_process_without_a_screen_has_is_not_opened(workspace: Path) -> None:
    first = await make(workspace, "first", "One.")
    second = await make(workspace, "second", "Two.")
    with SessionLock.take(user_folders().data / "sessions" / first):
        async with program(workspace, second) as driven:
            await driven.until(lambda: driven.screen.ready, "the panes")
            await driven.press("ctrl+o", "g")
            await driven.shows("2 sessions")
            await driven.press("enter")
            session = driven.app.session
            assert session is not None
            said = "is open in process"
            await driven.until(lambda: any(said in it.text for it in session.state.notices.items), said)
            assert driven.app.next is None
        async with program(workspace, first) as driven:
            await driven.until(lambda: driven.app.return_code == 1, "the end")
            assert f"tui-agent sessions fork {first}" in str(driven.app.error)


@pytest.mark.parametrize("here", [True, False], ids=["the open one", "from the list"])
async def test_a_fork_begins_after_the_turn_that_is_chosen(workspace: Path, here: bool) -> None:
    change = reply("Two.", fileChanges=[{"path": "a.py", "edits": [{"search": "a = 1", "replace": "a = 2"}]}])
    async with open_session(workspace, [reply("One."), change]) as session:
        for request in ("first", "set a.py to two"):
            await session.chat.submit(request)
            await session.chat.finished()
        await session.review.apply()
        name = session.state.session.id
    async with program(workspace, name) as driven:
        await driven.until(lambda: driven.screen.ready, "the panes")
        await driven.press("ctrl+o", *(["b"] if here else ["g", "tab", "down", "enter"]))
        await driven.shows("The complete session")
        await driven.shows("set a.py to two")
        await driven.press(*"first")
        await driven.until(lambda: "The whole" not in driven.text, "the words to narrow it")
        await driven.press("enter")
        await driven.until(lambda: driven.app.next is not None, "the copy")
        choice = driven.app.next
    assert choice is not None and choice.session != name
    async with open_session(workspace, session=choice.session, services=False) as session:
        assert session.state.turn.number == 1
        assert "These files changed after that turn" in session.state.chat.messages[-1].text
        await session.review.undo()
        assert (workspace / "a.py").read_text() == "a = 1\n"


async def test_what_was_sent_is_shown_by_key(workspace: Path) -> None:
    name = await make(workspace, "please explain", "Explained.")
    async with program(workspace, name) as driven:
        await driven.until(lambda: driven.screen.ready, "the panes")
        await driven.press("ctrl+o", "v")
        await driven.until(lambda: isinstance(driven.app.screen, SentView), "the view")
        await driven.shows("turn 1 · main")
        await driven.shows("[system]")


@pytest.mark.parametrize("room", [39, 51, 90, 130])
@pytest.mark.parametrize("note", ["", "damaged"])
def test_a_session_is_one_row(room: int, note: str) -> None:
    entry = SessionEntry("1", "title of many words " * 9, "/home/a-long-name", note=note)
    row = _row(entry, not note, "1", room)
    assert row.cell_length == room and "title" in row.plain and (note or "  a-long") in row.plain
    assert ("0 turns" in row.plain) == (room > 90 or (room == 90 and bool(note)))
