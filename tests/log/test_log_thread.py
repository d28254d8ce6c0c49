"""The log's thread outlives any record, and nobody ever waits for it when it is gone."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from support.logs import load
from support.sessions import model_of, open_session, reply
from support.trees import until

from tui_agent.errors import RecordRefused, SessionError
from tui_agent.log import directory, records
from tui_agent.log import log as log_module
from tui_agent.log.log import Log
from tui_agent.model.client import EndChunk, TextChunk, UsageChunk
from tui_agent.store import events as e
from tui_agent.store.conversation import Usage

HALF = "half \udc80 of a pair"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions" / "one" / "log.sqlite3"


def told(call: Callable[[Callable, Callable], None]) -> int | SessionError:
    """What a call is told, within seconds: nobody waits forever."""
    answered, answers = threading.Event(), []

    def tell(answer: int | SessionError) -> None:
        answers.append(answer)
        answered.set()

    call(tell, tell)
    assert answered.wait(20), "nobody answered"
    return answers[0]


def appended(log: Log, *events: e.Lasting) -> int | SessionError:
    return told(lambda done, failed: log.append(events, done, failed))


@pytest.mark.parametrize(
    "odd",
    [
        e.NoticeGiven("info", HALF),
        e.BufferOpened(f"folder-{HALF}/a.py"),
        e.UsageCounted(Usage(2**80, -(2**70), 0, 0.5)),
    ],
    ids=["half a character", "an odd path", "more than 64 bits"],
)
def test_odd_values_are_kept_and_come_back(path: Path, odd: e.Lasting) -> None:
    log = Log.create(path)
    assert appended(log, odd) == 1
    log.keep(e.BufferEdited(f"{HALF}.py", HALF, ""))
    log.set_meta(workspace=f"/w/{HALF}")
    loaded = load(log)
    assert loaded.events == [odd] and loaded.lost == []
    assert [event.key for event in loaded.growing] == [f"buffer:{HALF}.py"]
    log.drop([f"buffer:{HALF}.py"])
    assert load(log).growing == []
    log.close()
    entry = directory.read_entry(path.parent)
    assert entry is not None and entry.workspace == f"/w/{HALF}"


@pytest.mark.parametrize("fault", ["not a number", "too large", "no JSON"])
def test_a_record_that_cannot_come_back_is_refused_and_the_others_are_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    bad = e.TurnEnded(1, True, seconds=float("nan"))
    if fault == "too large":
        monkeypatch.setattr(records, "LARGEST", 1000)
        bad = e.NoticeGiven("info", "x" * 2000)
    if fault == "no JSON":
        bad = e.NoticeGiven("info", cast("str", object()))
    log = Log.create(path)
    refused = appended(log, e.NoticeGiven("info", "beside the bad one"), bad)
    assert isinstance(refused, RecordRefused) and "cannot be saved" in refused.what
    assert appended(log, e.NoticeGiven("info", "good")) == 1
    assert load(log).events == [e.NoticeGiven("info", "good")], "a call is written whole or not at all"
    log.close()


def test_what_grows_is_made_ready_by_the_logs_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keyboard waits while an open file of megabytes becomes JSON."""
    threads: list[str] = []
    ready = log_module.body_of
    monkeypatch.setattr(
        log_module, "body_of", lambda event: threads.append(threading.current_thread().name) or ready(event)
    )
    refused: list[SessionError] = []
    log = Log.create(path, refused.append)
    log.keep(e.BufferEdited("a.py", cast("str", object()), ""))
    log.keep(e.BufferEdited("b.py", "x" * 1000, ""))
    assert [event.key for event in load(log).growing] == ["buffer:b.py"]
    assert {*threads} == {"session log"}
    assert len(refused) == 1 and isinstance(refused[0], RecordRefused) and "BufferEdited" in refused[0].what
    log.close()


def test_what_only_sqlite_refuses_costs_nobody_else_their_record(path: Path) -> None:
    """Jobs that wait together share a transaction; the one at fault is told, the others are written."""
    log = Log.create(path)
    log.count()
    log._writer.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5000)
    held, going = threading.Event(), threading.Event()
    log._enqueue(lambda writer: going.wait(20) and writer.number, lambda _: held.set())
    answers: list[int | SessionError] = []
    for text in ("one", "x" * 9000, "two"):
        log.append([e.NoticeGiven("info", text)], answers.append, answers.append)
    going.set()
    log.count()
    assert answers[0] == 1 and isinstance(answers[1], RecordRefused) and answers[2] == 2
    assert load(log).events == [e.NoticeGiven("info", "one"), e.NoticeGiven("info", "two")]
    log.close()


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("odd"), MemoryError(), RecursionError()])
def test_any_error_while_writing_is_told_and_the_thread_goes_on(path: Path, error: Exception) -> None:
    def broken(_: object) -> int:
        raise error

    def faulty(_: int) -> None:
        raise error

    log = Log.create(path)
    assert isinstance(told(lambda done, failed: log._enqueue(broken, done, failed)), SessionError)
    log.append([e.NoticeGiven("info", "x")], faulty)
    assert appended(log, e.NoticeGiven("info", "y")) == 2
    log.close()


def test_a_thread_that_ends_is_told_to_everybody_who_waits_and_who_calls_later(path: Path) -> None:
    def ends(_: object) -> int:
        raise SystemExit

    log = Log.create(path)
    log.count()
    going = threading.Event()
    log._enqueue(lambda writer: going.wait(20) and writer.number)
    answers: list[int | SessionError] = []
    log._enqueue(ends, answers.append, answers.append)
    log.append([e.NoticeGiven("info", "waits")], answers.append, answers.append)
    going.set()
    log._thread.join(20)
    assert len(answers) == 2 and all(isinstance(answer, SessionError) for answer in answers)
    later = appended(log, e.NoticeGiven("info", "later"))
    assert isinstance(later, SessionError) and "--continue" in later.remedy
    load(log)
    log.close()


async def test_a_turn_with_odd_figures_and_text_ends_and_the_session_closes(tmp_path: Path) -> None:
    answer = [
        TextChunk('{"summary": "Done \\udc80."}'),
        UsageChunk(2**70, 5, 0, float("nan")),
        EndChunk("stop"),
    ]
    folder = tmp_path / "odd \udcff folder"
    folder.mkdir()
    async with open_session(folder, [answer]) as session:
        await session.chat.submit(f"look at {HALF}")
        session.chat.set_draft(HALF)
        await session.chat.finished()
        assert session.state.turn.ok, session.state.turn.error
        name = session.state.session.id
    async with open_session(folder, [reply()], session="last", services=False) as session:
        assert session.state.session.id == name
        assert session.state.chat.messages[0].text == f"look at {HALF}"
        assert session.state.input.draft == HALF
        assert model_of(session).requests == []


async def test_a_message_that_cannot_be_kept_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_session(tmp_path, [reply()]) as session:
        monkeypatch.setattr(records, "LARGEST", 10_000)
        with pytest.raises(RecordRefused, match="MiB"):
            await session.chat.submit("x" * 20_000)
        session.chat.set_draft("y" * 20_000)
        session.journal.flush()
        await until(lambda: session.state.notices.total > 0)
        assert "cannot be saved" in session.state.notices.items[-1].text
        assert not session.state.turn.running and not session.state.session.not_kept
        await session.chat.submit("short")
        await session.chat.finished()
        assert session.state.turn.number == 1


def test_what_sqlite_says_of_a_full_disk_is_not_the_record_s_fault(path: Path) -> None:
    log = Log.create(path)
    log.count()
    log._writer.connection.execute("PRAGMA max_page_count = 1")
    refused = appended(log, e.NoticeGiven("info", "x" * 100_000))
    assert isinstance(refused, SessionError) and not isinstance(refused, RecordRefused)
    log.close()
