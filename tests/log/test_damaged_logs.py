"""A session whose log was cut or overwritten anywhere: the program starts, and says what was lost."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.log import catalog, directory, snapshot
from tui_agent.store import events as e

#: How many places are tried here; the benchmark tries two hundred.
PLACES = 12


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a session of some turns, closed in order."""
    base = tmp_path_factory.mktemp("sample")
    asyncio.run(_make(base))
    return base


async def _make(base: Path) -> None:
    (base / "work").mkdir()
    (base / "work" / "a.py").write_text("a = 1\n" * 50)
    monkey = pytest.MonkeyPatch()
    monkey.setenv("TUI_AGENT_HOME", str(base / "home"))
    try:
        replies = [reply(f"Answer {number}.", message="word " * 200) for number in range(12)]
        async with open_session(base / "work", replies) as session:
            for number in range(12):
                await session.chat.submit(f"question {number} about a.py")
                await session.chat.finished()
            session.chat.set_draft("half typed")
    finally:
        monkey.undo()


def copy_of(sample: Path, home: Path) -> Path:
    """The log of a fresh copy of the sample in this test's home."""
    shutil.rmtree(home / "data", ignore_errors=True)
    shutil.copytree(sample / "home" / "data", home / "data")
    (entry,) = catalog.list_sessions(home / "data")
    return home / "data" / "sessions" / entry.id / directory.LOG


def spoil(path: Path, chance: random.Random) -> str:
    """Cut the log, or overwrite a part of it; what was done, in words."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    if chance.random() < 0.3:
        path.write_bytes(data[:at])
        return f"cut at {at}"
    length = min(chance.choice([1, 16, 300, 5000]), len(data) - at)
    data[at : at + length] = chance.randbytes(length)
    path.write_bytes(data)
    return f"{length} bytes overwritten at {at}"


@pytest.mark.parametrize("number", range(PLACES))
@pytest.mark.parametrize("with_snapshot", [True, False], ids=["snapshot", "log alone"])
async def test_spoiled_anywhere_it_starts(sample: Path, home: Path, number: int, with_snapshot: bool) -> None:
    path = copy_of(sample, home)
    if not with_snapshot:
        (path.parent / snapshot.NAME).unlink()
    done = spoil(path, random.Random(number))
    async with open_session(sample / "work", services=False, session=path.parent.name) as session:
        total = session.state.chat.total
        said = session.storage.lost
        assert total == 24 or said, f"{done}: {24 - total} messages are gone and nobody says so"
        await session.journal.record(e.NoticeGiven("info", "it goes on"))
        assert session.journal.keeps, done
    async with open_session(sample / "work", services=False, session=path.parent.name) as session:
        assert session.state.notices.items[-1].text == "it goes on", done
        assert session.state.chat.total == total, done
        assert not session.storage.lost, f"{done}: said twice"


async def test_what_is_no_database_is_put_aside_whole_and_a_new_one_begins(sample: Path, home: Path) -> None:
    path = copy_of(sample, home)
    content = b"not a database at all" * 400
    path.write_bytes(content)
    (path.parent / snapshot.NAME).unlink()
    async with open_session(sample / "work", services=False, session=path.parent.name) as session:
        (sentence,) = session.storage.lost
        assert "moved to" in sentence
        assert session.state.session.id == path.parent.name
    asides = [found for found in path.parent.iterdir() if "damaged" in found.name]
    assert [aside.read_bytes() for aside in asides] == [content]


async def test_a_newer_log_is_left_alone(sample: Path, home: Path) -> None:
    import sqlite3

    path = copy_of(sample, home)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    async with open_session(sample / "work", services=False, session="last") as session:
        assert "newer" in session.storage.lost[0]
        assert session.state.session.id != path.parent.name
    assert path.read_bytes() == before


async def test_a_full_disk_while_it_runs(tmp_path: Path) -> None:
    """Nothing crashes, the screen is told, and what waited is written when there is room again."""
    async with open_session(tmp_path, services=False) as session:
        log = session.storage.log
        assert log is not None
        connection = log._writer.connection
        await asyncio.to_thread(log.count)
        connection.execute("PRAGMA max_page_count = 1")
        big = "x" * 100_000
        await session.journal.record(e.NoticeGiven("info", big + "1"))
        await session.journal.record(e.NoticeGiven("info", big + "2"))
        session.chat.set_draft(big)
        session.journal.flush()
        await asyncio.to_thread(log.count)
        await asyncio.sleep(0)
        assert "disk is full" in session.state.session.not_kept
        assert [n.text[-1] for n in session.state.notices.items] == ["1", "2"]
        connection.execute("PRAGMA max_page_count = 100000")
        await session.journal.record(e.NoticeGiven("info", "3"))
        assert not session.state.session.not_kept
    async with open_session(tmp_path, services=False, session="last") as session:
        assert [n.text[-1] for n in session.state.notices.items] == ["1", "2", "3"]
        assert session.state.input.draft == big


async def test_a_disk_that_stays_full_is_tried_once_more_at_the_end(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        log = session.storage.log
        assert log is not None
        connection = log._writer.connection
        await asyncio.to_thread(log.count)
        connection.execute("PRAGMA max_page_count = 1")
        await session.journal.record(e.NoticeGiven("info", "x" * 100_000))
        assert not session.journal.keeps
        connection.execute("PRAGMA max_page_count = 100000")
    async with open_session(tmp_path, services=False, session="last") as session:
        assert len(session.state.notices.items[-1].text) == 100_000


async def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are in the order in which they were written, whatever time it was said to be."""
    times = iter([2e9, 1e9, 1.5e9, 0.0, 3e9])
    monkeypatch.setattr("tui_agent.log.database.time.time", lambda: next(times, 1.7e9))
    async with open_session(tmp_path, services=False) as session:
        for number in range(6):
            await session.journal.record(e.NoticeGiven("info", str(number)))
    async with open_session(tmp_path, services=False, session="last") as session:
        assert [n.text for n in session.state.notices.items] == list("012345")
        assert not session.storage.lost
