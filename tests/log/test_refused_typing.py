"""What is typed while the log refuses to be written: every version waits until the log has just that one."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.logs import load
from support.sessions import model_of, open_session, reply
from support.trees import until

from tui_agent.log import database
from tui_agent.log.journal import REFUSED, SLOW
from tui_agent.session.session import Session
from tui_agent.store import events as e


class Refusals:
    """How often the log said that it cannot be written."""

    count = 0


@pytest.fixture(autouse=True)
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    """The log gives up at once where another program has it, and tries again at once."""
    counted, refusal = Refusals(), database.refusal

    def count(path: Path, error: sqlite3.Error | None) -> Exception:
        counted.count += 1
        return refusal(path, error)

    monkeypatch.setattr(database, "_PATIENCE", 0.02)
    monkeypatch.setattr(database, "refusal", count)
    monkeypatch.setattr("tui_agent.log.journal.AGAIN_AFTER", 0.02)
    return counted


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Another program holds the write lock of the log."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def log_of(session: Session) -> Path:
    assert session.log_path is not None
    return session.log_path


def kept(log: Path) -> dict[str, str]:
    growing = load(log).growing
    return {event.key: event.text for event in growing if isinstance(event, e.BufferEdited | e.DraftChanged)}


async def type_twice(session: Session, refusals: Refusals) -> None:
    """In the editor, and in the chat when that was refused."""
    session.files.edit("a.txt", "one, typed\n", (0, 0), (0, 0))
    await until(lambda: refusals.count)
    session.chat.set_draft("typed later")
    before = refusals.count
    await until(lambda: refusals.count > before + 2)


async def open_file(session: Session, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    await session.files.open("a.txt")


BOTH = {"buffer:a.txt": "one, typed\n", "draft": "typed later"}


async def test_both_are_written_when_the_lock_is_gone(tmp_path: Path, refusals: Refusals) -> None:
    async with open_session(tmp_path, []) as session:
        await open_file(session, tmp_path)
        with locked(log_of(session)):
            await type_twice(session, refusals)
            assert session.state.session.not_kept
        await until(lambda: kept(log_of(session)) == BOTH)
        await until(lambda: not session.state.session.not_kept)


async def test_a_text_that_waits_for_the_lock_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.log.journal.SAY_AFTER", 0.05)
    monkeypatch.setattr(database, "_PATIENCE", 60)
    async with open_session(tmp_path, []) as session:
        await session.rename("begun")
        log = log_of(session)
        with locked(log):
            session.chat.set_draft("typed")
            await until(lambda: session.state.session.waits_for == SLOW)
            assert not session.state.session.not_kept and "typed" not in kept(log).values()
        await until(lambda: not session.state.session.waits_for)
        assert kept(log) == {"draft": "typed"}


async def test_two_programs_that_hold_the_lock_in_turn_cost_neither_words_nor_their_order(
    tmp_path: Path, refusals: Refusals
) -> None:
    """The log may be free for no more than the moment between the two."""
    async with open_session(tmp_path, []) as session:
        await open_file(session, tmp_path)
        log, names = log_of(session), [f"named {turn}" for turn in range(4)]
        for name in names:
            with locked(log):
                before = refusals.count
                session.files.edit("a.txt", f"one, {name}\n", (0, 0), (0, 0))
                await session.rename(name)
                session.chat.set_draft(name)
                await until(lambda before=before: refusals.count > before)
        await until(lambda: kept(log) == {"buffer:a.txt": f"one, {names[-1]}\n", "draft": names[-1]})
        assert [it.name for it in load(log).events if isinstance(it, e.SessionRenamed)] == names
        await until(lambda: not session.state.session.not_kept)


async def test_a_session_that_ends_while_the_log_is_held_leaves_everything_behind_for_the_next(
    tmp_path: Path, refusals: Refusals
) -> None:
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        await open_file(session, tmp_path)
        log = log_of(session)
        with locked(log):
            await session.chat.submit("said while nothing was kept")
            await session.chat.finished()
            await type_twice(session, refusals)
            await session.close()
        assert kept(log) == {}
        name = session.state.session.id
    async with open_session(tmp_path, [], session=name) as again:
        assert again.state.input.draft == "typed later"
        assert [buffer.text for buffer in again.state.buffers.open] == ["one, typed\n"]
        assert "said while nothing was kept" in [it.text for it in again.state.chat.messages]
        assert not (log.parent / REFUSED).exists()
        assert kept(log) == BOTH


async def test_a_session_that_may_be_ended_at_once_does_not_wait_for_the_log_with_what_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal gives it two seconds; the log waits five for a program that has its lock."""
    monkeypatch.setattr(database, "_PATIENCE", 60.0)
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        log = log_of(session)
        await session.chat.submit("said before")
        await session.chat.finished()
        with locked(log):
            said = asyncio.create_task(session.chat.submit("on its way"))
            await until(lambda: session.journal._on_its_way)
            session.chat.set_draft("typed later")
            ended = asyncio.create_task(session.close(within=0.05))
            await until(lambda: (log.parent / REFUSED).exists())
            left = (log.parent / REFUSED).read_bytes()
            assert b"on its way" in left
            assert b"typed later" in left
            assert not session.state.session.not_kept
        await asyncio.wait([said, ended])
        name = session.state.session.id
    async with open_session(tmp_path, [], session=name) as again:  # the log has it, too: it is there once
        assert [it.text for it in again.state.chat.messages if it.kind == "person"] == [
            "said before",
            "on its way",
        ]
        assert again.state.input.draft == "typed later"
        assert not (log.parent / REFUSED).exists()


async def test_a_message_that_was_refused_is_written_when_the_lock_is_gone_without_another_word(
    tmp_path: Path, refusals: Refusals
) -> None:
    async with open_session(tmp_path, [reply("Hello.")]) as session:
        log = log_of(session)
        with locked(log):
            await session.chat.submit("said while nothing was kept")
            await session.chat.finished()
            assert session.state.session.not_kept
        await until(lambda: not session.state.session.not_kept)
        assert any(isinstance(it, e.TurnStarted) for it in load(log).events)
        assert len(model_of(session).requests) == 1
