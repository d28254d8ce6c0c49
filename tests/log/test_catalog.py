"""The list of sessions: newest first, one workspace's or all, broken ones left out."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

from tui_agent.errors import SessionError
from tui_agent.log import catalog, database, directory
from tui_agent.log.log import Log
from tui_agent.log.transfer import write
from tui_agent.store import events as e


def make(data: Path, session: str, **meta: object) -> Path:
    path = directory.folder_of(data, session) / directory.LOG
    log = Log.create(path)
    log.set_meta(**meta)
    log.close()
    return path


def test_newest_first_and_by_workspace(tmp_path: Path) -> None:
    make(tmp_path, "a", workspace="/w", updated=10.0, turns=3, first_request="do [this]", name="named")
    make(tmp_path, "b", workspace="/w", updated=30.0, started_from="/w/src")
    make(tmp_path, "c", workspace="/other", updated=20.0)
    assert [entry.id for entry in catalog.list_sessions(tmp_path)] == ["b", "c", "a"]
    b, a = catalog.list_sessions(tmp_path, Path("/w"))
    assert (a.name, a.turns, a.first_request, a.updated) == ("named", 3, "do [this]", 10.0)
    assert b.started_from == "/w/src" and b.size > 4096
    newest = catalog.newest(tmp_path, Path("/other"))
    assert newest is not None and newest.id == "c"
    assert catalog.newest(tmp_path, Path("/nowhere")) is None


def test_an_append_makes_a_session_the_newest(tmp_path: Path) -> None:
    make(tmp_path, "a", workspace="/w", updated=10.0)
    make(tmp_path, "b", workspace="/w", updated=20.0)
    log = Log.open(directory.folder_of(tmp_path, "a") / directory.LOG)
    done = threading.Event()
    log.append([e.NoticeGiven("info", "x")], lambda _: done.set())
    assert done.wait(30)
    newest = catalog.newest(tmp_path, Path("/w"))
    assert newest is not None and newest.id == "a", "also while it is open"
    log.close()


@pytest.mark.parametrize("spoilt", [None, b"", b"no number", b"nan", b"1e300"])
def test_a_clock_set_back_makes_no_older_session_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: bytes | None
) -> None:
    """Where what was counted so far is damaged the clock is believed, and everything goes on."""
    make(tmp_path, "old", workspace="/w", updated=1.5e9)
    now = iter([2e9, 1e9, 1.1e9])
    monkeypatch.setattr("tui_agent.log.database.time.time", lambda: next(now))
    write(tmp_path, "first", [e.NoticeGiven("info", "x")])
    if spoilt is None:
        write(tmp_path, "second", [e.NoticeGiven("info", "x")])
        assert [entry.id for entry in catalog.list_sessions(tmp_path)] == ["second", "first", "old"]
        assert [entry.updated for entry in catalog.list_sessions(tmp_path)] == [1e9, 2e9, 1.5e9]
    else:
        (tmp_path / "sessions" / database.RANK).write_bytes(spoilt)
        log = Log.open(directory.folder_of(tmp_path, "first") / directory.LOG)
        log.append([e.NoticeGiven("info", "x")], lambda _: None)
        log.close()
        assert [entry.id for entry in catalog.list_sessions(tmp_path)] == ["old", "first"]


def test_one_that_was_just_written_is_looked_at_again(tmp_path: Path) -> None:
    """What is written in the same moment may leave the files the same time and size."""
    path = make(tmp_path, "a", name="first")
    size, moment = path.stat().st_size, time.time_ns() + 10**10
    os.utime(path, ns=(moment, moment))
    assert catalog.list_sessions(tmp_path)[0].name == "first"
    log = Log.open(path)
    log.set_meta(name="other")
    log.close()
    os.utime(path, ns=(moment, moment))
    assert path.stat().st_size == size
    assert catalog.list_sessions(tmp_path)[0].name == "other"


def test_ranks_grow_though_nothing_can_be_counted(tmp_path: Path) -> None:
    ranks = database.Ranks(tmp_path / "missing")
    assert ranks.next(5.0) < ranks.next(3.0) < ranks.next(6.0) == 6.0


def test_without_notes_it_is_listed_by_the_age_of_its_file(tmp_path: Path) -> None:
    path = make(tmp_path, "a")
    (entry,) = catalog.list_sessions(tmp_path)
    assert entry.updated == path.stat().st_mtime


def test_broken_ones_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, "good", workspace="/w", updated=1.0)
    make(tmp_path, "odd", workspace=["no", "text"], updated="never")
    for name, content in (("empty", b""), ("torn", b"SQLite format 3\0garbage"), ("text", b"hello")):
        (tmp_path / "sessions" / name).mkdir()
        (tmp_path / "sessions" / name / directory.LOG).write_bytes(content)
    (tmp_path / "sessions" / "no-log").mkdir()
    (tmp_path / "sessions" / "file").write_bytes(b"")
    (tmp_path / "sessions" / ".hidden").mkdir()
    assert [entry.id for entry in catalog.list_sessions(tmp_path)] == ["good"]


def test_no_sessions_yet(tmp_path: Path) -> None:
    assert catalog.list_sessions(tmp_path / "missing") == []


def test_reading_the_list_leaves_nothing_behind(tmp_path: Path) -> None:
    path = make(tmp_path, "a")
    before = {p.name: p.stat().st_mtime_ns for p in path.parent.iterdir()}
    catalog.list_sessions(tmp_path)
    assert (
        {p.name: p.stat().st_mtime_ns for p in path.parent.iterdir()}
        == before
        == {directory.LOG: before[directory.LOG]}
    )


def test_ids_sort_by_time_and_are_folder_names(tmp_path: Path) -> None:
    ids = [directory.new_id(tmp_path) for _ in range(3)]
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", one) for one in ids)
    assert [one[:15] for one in ids] == sorted(one[:15] for one in ids)
    assert directory.folder_of(tmp_path, ids[0]) == tmp_path / "sessions" / ids[0]


@pytest.mark.parametrize("session", ["", "..", ".", "../x", "a/b", "a\0", "\x1b[31m", "a" * 101, "-x"])
def test_what_is_no_id(tmp_path: Path, session: str) -> None:
    with pytest.raises(SessionError, match="not a session id"):
        directory.folder_of(tmp_path, session)
