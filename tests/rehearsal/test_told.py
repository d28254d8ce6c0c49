"""What the model would be told in the scenes: the marks of known files, and the memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.rehearsal_scenes import GOING_ON_REQUEST, SECOND_REQUEST, STALE_REQUEST

from tui_agent.rehearsal import copy_project, recording
from tui_agent.session.opening import Opening, open_session
from tui_agent.session.session import Session


@asynccontextmanager
async def rehearsing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Session, None]:
    """A session that has answered the second request, so that shop/retry.py is known."""
    monkeypatch.setenv("TUI_AGENT_REPLAY_SPEED", "0")
    session = await open_session(Opening(copy_project(folder), replay=recording(), rehearsal=True))
    try:
        await session.start_services()
        await session.files.ready()
        await told(session, SECOND_REQUEST)
        yield session
    finally:
        await session.close()


async def told(session: Session, words: str) -> str:
    """Have a request answered; what was sent with it, as JSON."""
    await session.chat.submit(words)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return "\n".join((await session.chat.sent())[-1].messages)


async def test_a_file_saved_by_hand_is_marked_and_read_again_and_the_change_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shop"
    async with rehearsing(folder, monkeypatch) as session:
        file = folder / "shop/retry.py"
        file.write_text("# mine\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        sent = await told(session, STALE_REQUEST)
        assert "Yes (on disk), read again below" in sent
        assert "1: # mine" in sent
        await session.review.apply()
        text = file.read_text(encoding="utf-8")
        assert text.startswith("# mine\n")
        assert "attempts, try again later" in text


async def test_a_file_that_nobody_changed_is_not_sent_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rehearsing(tmp_path / "shop", monkeypatch) as session:
        sent = await told(session, STALE_REQUEST)
        assert "read again below" not in sent
        assert "Trying again what may safely be tried again" not in sent
        assert [change.state for change in session.state.review.changes] == ["pending"]


async def test_continue_brings_the_memory_and_does_the_open_todo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rehearsing(tmp_path / "shop", monkeypatch) as session:
        await told(session, STALE_REQUEST)
        await session.review.apply()
        sent = await told(session, GOING_ON_REQUEST)
        assert "## AI Memory (Continuation Context)" in sent
        assert "go on with the first open todo, “Test what the error says”" in sent
        await session.review.apply()
        assert [todo.done for todo in session.state.todos] == [True, True]


async def test_continue_alone_fits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rehearsing(tmp_path / "shop", monkeypatch) as session:
        await told(session, GOING_ON_REQUEST)
        await session.review.apply()
        assert [change.state for change in session.state.review.changes] == ["applied"]
