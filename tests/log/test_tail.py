"""A session that is open elsewhere is looked at here, and follows what is done there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.sessions import open_session, reply
from support.subtasks import GoalModel, states, working
from support.trees import until

from tui_agent.errors import SessionError
from tui_agent.log import snapshot
from tui_agent.log.directory import LOCK
from tui_agent.log.tail import Tail
from tui_agent.session import follower
from tui_agent.session.session import Session
from tui_agent.store.files import Buffer
from tui_agent.store.graph import SubTask


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "EVERY", 0.01)


def buffer(session: Session) -> Buffer:
    return session.state.buffers.get("a.py") or Buffer("a.py")


async def test_what_is_done_there_is_shown_here(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    change = reply("Two.", todos=[{"text": "tell"}], fileChanges=[{"path": "b.py", "content": "b = 1\n"}])
    async with open_session(tmp_path, [reply("One."), change]) as there:
        await there.chat.submit("first")
        await there.chat.finished()
        async with open_session(tmp_path, session="last", read_only=True) as here:
            here.set_layout(replace(here.state.layout, focus="review"))
            there.set_layout(replace(there.state.layout, focus="plan"))
            there.chat.set_draft("half a thought")
            await there.chat.submit("second")
            await there.chat.finished()
            await there.files.open("a.py")
            there.files.edit("a.py", "a = 2\n", (0, 5), (0, 5))
            there.journal.flush()
            await until(lambda: buffer(here).text == "a = 2\n", "the text")
            for name in ("chat", "todos", "review", "plan", "conversation", "usage"):
                assert getattr(here.state, name) == getattr(there.state, name), name
            assert here.state.layout.focus == "review"
            assert not here.state.turn.running
            there.files.edit("a.py", "a = 1\n", (0, 5), (0, 5))
            await until(lambda: not buffer(here).unsaved, "the text given up")
            assert buffer(here).text == "a = 1\n"
            assert not here.state.notices.items


async def test_what_would_change_the_session_is_refused(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as there:
        await there.rename("theirs")
        async with open_session(tmp_path, session="last", read_only=True, services=False) as here:
            assert here.state.session.name == "theirs"
            for call in (here.chat.submit("x"), here.rename("x"), here.todos.add("x"), here.review.undo()):
                with pytest.raises(SessionError, match="read-only here"):
                    await call
        assert there.state.session.name == "theirs"


async def test_older_messages_are_paged_and_what_was_sent_is_shown(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One.")]) as there:
        await there.chat.submit("first")
        await there.chat.finished()
    snapshot.forget_pages(there.storage.folder)
    before = set(there.storage.folder.iterdir())
    async with open_session(tmp_path, session="last", read_only=True, services=False) as here:
        assert [message.text for message in await here.chat.earlier(2)] == ["first"]
        assert [exchange.turn for exchange in await here.chat.sent()] == [1]
    assert set(there.storage.folder.iterdir()) == before, "nothing is written there"


async def test_a_turn_runs_here_as_long_as_its_process_does(tmp_path: Path) -> None:
    async with open_session(tmp_path, [reply("One.")], services=False) as there:
        await there.chat.submit("first")  # waits for the list of files, which nobody makes
        async with open_session(tmp_path, session="last", read_only=True) as here:
            assert here.state.turn.running
            (there.storage.folder / LOCK).write_text("99999999\n")
            await until(lambda: not here.state.turn.running, "the rest")


async def test_nothing_is_read_while_nothing_changes(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as there:
        assert there.storage.log is not None
        await asyncio.to_thread(there.storage.log.count)
        tail = Tail(there.storage.log.path, 0)
        first = tail.news()
        assert first is not None and first.events
        await until(lambda: tail.news() is None, "the quiet")
        await there.rename("x")
        second = tail.news()
        assert second is not None and [type(event).__name__ for event in second.events] == ["SessionRenamed"]


async def test_a_session_that_is_deleted_meanwhile_stays_on_the_screen(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as there:
        await there.rename("x")
        folder = there.storage.folder
    async with open_session(tmp_path, session="last", read_only=True) as here:
        for path in folder.iterdir():
            path.unlink()
        await until(lambda: here.state.notices.items, "the notice")
        assert "no longer shown" in here.state.notices.items[0].text
        assert here.state.session.name == "x"


async def test_sub_tasks_run_there_and_never_here_too(tmp_path: Path) -> None:
    model = GoalModel({"Do part a": [reply("Done.")]})
    async with (
        working(tmp_path, model, [SubTask("a", "Do part a")]) as there,
        open_session(tmp_path, session="last", read_only=True) as here,
    ):
        await there.subtasks.run("a")
        await there.subtasks.settled()
        await until(lambda: states(here) == {"a": "completed"}, "the end of it")
        assert here.subtasks._made is None and len(model.requests) == 1
