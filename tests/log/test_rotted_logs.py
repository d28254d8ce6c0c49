"""A log that was closed in order and has rotted since, size and time the same: what is lost is said when it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.command_line import run_here
from support.sessions import open_session, reply

from tui_agent.log import snapshot
from tui_agent.log.transfer import fork

TURNS, PAGE = 4, 4096


@pytest.fixture
async def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of a session with a snapshot of all of it, whose third answer has rotted."""
    monkeypatch.setattr(snapshot, "AT_CLOSE", 1)
    async with open_session(
        tmp_path, [reply(f"Answer {n}.", message="word " * 900) for n in range(TURNS)]
    ) as session:
        for number in range(TURNS):
            await session.chat.submit(f"question {number}")
            await session.chat.finished()
        assert session.storage.log is not None
        path = session.storage.log.path
    rot(path, b"Answer 2.", b"Answer 3.")
    return path


def rot_page(path: Path, words: bytes) -> None:
    """Spoil the last page of the file that holds these words."""
    data = path.read_bytes()
    start = data.rindex(words) // PAGE * PAGE
    rot(path, data[start : start + PAGE], b"\xff" * PAGE)


def rot(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes behind the back of everybody: size and time stay."""
    status, data = path.stat(), path.read_bytes()
    assert old in data and len(old) == len(new)
    path.write_bytes(data.replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


async def test_a_record_behind_the_snapshot_is_missed_when_it_is_read(tmp_path: Path, path: Path) -> None:
    snapshot.forget_pages(path.parent)
    async with open_session(tmp_path, session="last", services=False) as session:
        assert session.state.chat.messages[5].summary == "Answer 2.", "the snapshot has it"
        assert not session.storage.lost
        assert len(await session.chat.earlier(2 * TURNS + 1)) == 2 * TURNS - 1
        assert [notice.level for notice in session.state.notices.items] == ["warning"]
        assert "(ReplyRead) is damaged and was left out" in session.state.notices.items[0].text
        await session.chat.sent()
        assert len(session.state.notices.items) == 1, "said twice"


async def test_a_record_behind_no_snapshot_is_missed_at_once(tmp_path: Path, path: Path) -> None:
    (path.parent / snapshot.NAME).unlink()
    async with open_session(tmp_path, session="last", services=False) as session:
        assert "(ReplyRead) is damaged" in session.storage.lost[0]
        assert session.state.chat.total == 2 * TURNS - 1


async def test_a_copy_and_a_command_say_what_they_lack(
    path: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    forked = fork(home / "data", path.parent.name)
    done = run_here(capfd, ["sessions", "show", path.parent.name])
    for told in (forked.sentence, done.err):
        assert "(ReplyRead) is damaged and was left out" in told


async def test_a_page_that_rotted_costs_what_lay_on_it_and_no_more(tmp_path: Path, path: Path) -> None:
    (path.parent / snapshot.NAME).unlink()
    rot_page(path, b"question 3")
    async with open_session(tmp_path, session=path.parent.name, services=False) as session:
        assert [message.text for message in session.state.chat.messages][::2][:2] == [
            "question 0",
            "question 1",
        ]
        assert "is damaged" in session.storage.lost[0] and "records were recovered" in session.storage.lost[0]
