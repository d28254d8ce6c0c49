"""A home that cannot be written: the session is in memory alone, says why, and everything works."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.faults import tree
from support.privileges import unprivileged
from support.screens import on_screen
from support.sessions import open_session, reply

from tui_agent.log import catalog
from tui_agent.store import events as e

CHANGE = reply("Two.", fileChanges=[{"path": "a.py", "edits": [{"search": "a = 1", "replace": "a = 2"}]}])


@pytest.mark.parametrize("listed", [True, False], ids=["listed before", "never listed"])
async def test_a_session_is_read_and_goes_on_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    for which in ("", "last"):  # what is imported on the way may lie where nobody may read
        async with open_session(tmp_path, services=False, session=which) as session:
            await session.rename("imported")
    with unprivileged() as public:
        monkeypatch.setenv("TUI_AGENT_HOME", str(public / "home"))
        work, data = public / "work", public / "home" / "data"
        work.mkdir()
        async with open_session(work, services=False) as session:
            await session.rename("kept")
        if listed:
            assert len(catalog.list_sessions(data)) == 1
        before = tree(data)
        for path in (*data.rglob("*"), data):
            path.chmod(0o500 if path.is_dir() else 0o400)
        for which in ("last", ""):
            async with open_session(work, services=False, session=which) as session:
                assert session.state.session.name == ("kept" if which else "")
                assert "cannot be written (permission denied)" in session.state.session.not_kept
                await session.journal.record(e.NoticeGiven("info", "on"))
                session.chat.set_draft("half typed")
                assert (session.state.notices.items[-1].text, session.state.input.draft) == (
                    "on",
                    "half typed",
                )
        assert tree(data) == before


async def test_a_turn_and_an_apply_work_and_the_screen_says_that_nothing_is_kept(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "the home cannot be written (read-only file system)"
    monkeypatch.setattr("tui_agent.session.opening.why_not_writable", lambda _: why)
    (tmp_path / "a.py").write_text("a = 1\n")
    async with on_screen(tmp_path, [CHANGE]) as it:
        await it.shows("nothing is saved · the home cannot be written")
        it.session.workspace.start()
        await it.session.chat.submit("set a.py to two")
        await it.session.chat.finished()
        await it.session.review.apply()
        assert (tmp_path / "a.py").read_text() == "a = 2\n"
        await it.session.review.undo()
        assert (tmp_path / "a.py").read_text() == "a = 1\n"
        assert await it.session.chat.sent() == []
    assert not (home / "data").exists() or not catalog.list_sessions(home / "data")
