"""A session whose log was removed and whose snapshot is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.errors import SessionError
from tui_agent.log import catalog, snapshot
from tui_agent.log.directory import LOG


async def test_a_removed_log_is_said_and_what_its_snapshot_has_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "AT_CLOSE", 1)
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await session.chat.submit("hello there")
        await session.chat.finished()
        folder, data = session.storage.folder, session.folders.data
    for path in folder.glob(f"{LOG}*"):
        path.unlink()
    (entry,) = [one for one in catalog.list_sessions(data) if one.id == folder.name]
    assert "damaged" in entry.note
    async with open_session(tmp_path, [], session=folder.name) as again:
        assert [it.summary or it.text for it in again.state.chat.messages] == ["hello there", "Hello."]
        assert "the log of the session" in " ".join(again.storage.lost)
        assert again.state.session.id != folder.name
    (folder / snapshot.NAME).unlink()
    with pytest.raises(SessionError, match="There is no session"):
        async with open_session(tmp_path, [], session=folder.name):
            pass
