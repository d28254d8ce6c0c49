"""A session whose log lost its first page: shown as damaged, and what can be read goes on in a new session."""

# ruff: noqa: ASYNC240 small files of a test are read at once
from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from support.command_line import run_here
from support.sessions import open_session, reply

from tui_agent.errors import SessionError
from tui_agent.log import catalog, directory, snapshot
from tui_agent.log.database import read_raw
from tui_agent.log.log import Log

TURNS = 6


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a session of some turns with long answers, closed in order and never listed."""
    base = tmp_path_factory.mktemp("sample")
    (base / "work").mkdir()

    async def make() -> None:
        (base / "work" / "a.py").write_text("a = 1\n")
        changes = [{"path": "a.py", "content": "a = 2\n"}]
        replies = [reply(f"Answer {n}.", message="word " * 3000, fileChanges=changes) for n in range(TURNS)]
        async with open_session(base / "work", replies) as session:
            for number in range(TURNS):
                await session.chat.submit(f"question {number} about a.py")
                await session.chat.finished()
            await session.review.apply()
            session.chat.set_draft("half typed")

    with pytest.MonkeyPatch.context() as monkey:
        monkey.setenv("TUI_AGENT_HOME", str(base / "home"))
        asyncio.run(make())
    return base


@pytest.fixture
def log(sample: Path, home: Path) -> Path:
    """The log of a fresh copy of the sample in this test's home."""
    shutil.copytree(sample / "home" / "data", home / "data", dirs_exist_ok=True)
    (home / "data" / catalog.NAME).unlink(missing_ok=True)
    (name,) = directory.ids(home / "data")
    return home / "data" / "sessions" / name / directory.LOG


def spoil(log: Path, how: str) -> bytes:
    """Damage the first page; the file as it is then."""
    data = bytearray(log.read_bytes())
    page = {"noise": random.Random(1).randbytes(4096), "zeros": bytes(4096)}
    data[: 4096 if how in page else 100] = page.get(how, b"\xff" * 100)
    log.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("how", ["noise", "zeros", "header"])
@pytest.mark.parametrize("with_snapshot", [True, False], ids=["snapshot", "pages alone"])
async def test_it_is_listed_and_goes_on_in_a_new_session(
    sample: Path, home: Path, log: Path, how: str, with_snapshot: bool
) -> None:
    if not with_snapshot:
        (log.parent / snapshot.NAME).unlink(missing_ok=True)
    old, spoilt = log.parent.name, spoil(log, how)
    (entry,) = catalog.list_sessions(home / "data", sample / "work")
    assert entry.id == old and "damaged" in entry.note and entry.turns == TURNS
    async with open_session(sample / "work", services=False, session="last") as session:
        new = session.state.session.id
        assert new == session.storage.folder.name != old
        assert session.state.chat.total == 2 * TURNS
        assert session.state.input.draft == "half typed"
        assert session.state.review.checkpoints
        (sentence,) = session.storage.lost
        assert old in sentence and new in sentence and "stays as it is" in sentence
        await session.review.undo()
        await session.review.redo()
        await session.notice("it goes on")
    assert log.read_bytes() == spoilt, "the original is never touched"
    for which in (old, "last"):
        async with open_session(sample / "work", services=False, session=which) as session:
            assert session.state.session.id == new
            assert session.state.notices.items[-1].text == "it goes on"
            assert session.storage.lost == (), "said once"
    entries = {entry.id: entry.note for entry in catalog.list_sessions(home / "data", sample / "work")}
    assert entries == {old: entry.note, new: ""}


def test_it_is_shown_and_exported_without_a_screen(
    sample: Path, log: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt = spoil(log, "noise")
    monkeypatch.chdir(sample / "work")
    listed = run_here(capfd, ["sessions", "list"])
    assert log.parent.name in listed.out and "damaged" in listed.out
    shown = run_here(capfd, ["sessions", "show", log.parent.name])
    assert f"question {TURNS - 1}" in shown.out and "damaged" in shown.err
    exported = run_here(capfd, ["sessions", "export", log.parent.name, "--format", "json"])
    assert f"Answer {TURNS - 1}." in exported.out
    assert log.read_bytes() == spoilt


async def test_what_is_in_the_write_ahead_file_is_read_too(sample: Path, home: Path, log: Path) -> None:
    """A session that was killed: its newest pages are not in the log's own file yet."""
    aside = home / "aside"
    aside.mkdir()
    opened = Log.open(log)
    opened.set_meta(name="named last")
    opened.count()
    for part in (log, Path(f"{log}-wal")):
        shutil.copy(part, aside)
    opened.close()
    spoil(aside / log.name, "noise")
    found = await asyncio.to_thread(read_raw, aside / log.name)
    assert found.meta["name"] == "named last"
    assert len(found.records) > TURNS * 5 and "draft" in found.growing


@pytest.mark.parametrize("listed", [True, False], ids=["listed before", "never listed"])
async def test_a_newer_version_is_said_in_the_list_and_on_opening(
    sample: Path, home: Path, log: Path, listed: bool
) -> None:
    if listed:
        catalog.list_sessions(home / "data")
    connection = sqlite3.connect(log)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = log.read_bytes()
    (entry,) = catalog.list_sessions(home / "data", sample / "work")
    assert entry.id == log.parent.name and "newer" in entry.note
    with pytest.raises(SessionError, match="newer tui-agent"):
        async with open_session(sample / "work", services=False, session=entry.id):
            pass
    async with open_session(sample / "work", services=False, session="last") as session:
        assert "newer" in session.storage.lost[0]
    assert log.read_bytes() == before
