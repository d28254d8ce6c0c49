"""The store of earlier texts stays within its limit, and what a session needs stays in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.sessions import open_session, reply

from tui_agent.files.blobs import Blobs
from tui_agent.log import cleanup
from tui_agent.log.cleanup import DAY, YOUNG, clean, keep_within, used

KIB = b"x" * 1024


@pytest.fixture
def data(home: Path) -> Path:
    return home / "data"


def kept(data: Path, letter: str, days: float) -> str:
    """A text of one KiB that was kept so many days ago."""
    blobs = Blobs(data / "blobs")
    key = blobs.put(letter.encode() * 1024)
    path = blobs.folder / key[:2] / key[2:]
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return key


def test_the_oldest_go_first_and_only_as_many_as_must(data: Path) -> None:
    old, older, young = kept(data, "a", 40), kept(data, "b", 50), kept(data, "c", 3)
    assert clean(data, 3 * 1024) == cleanup.CleanupResult(3072, 3072)
    done = clean(data, 2 * 1024)
    assert (done.removed, done.after, done.young) == (1, 2048, 0)
    blobs = Blobs(data / "blobs")
    assert blobs.has(old) and blobs.has(young) and not blobs.has(older)


def test_nothing_young_goes_without_asking_and_nothing_of_today_at_all(data: Path) -> None:
    week, today = kept(data, "a", 7), kept(data, "b", 0.1)
    done = clean(data, 0)
    assert (done.removed, done.young) == (0, 1024)
    done = clean(data, 0, young=True)
    blobs = Blobs(data / "blobs")
    assert done.removed == 1 and not blobs.has(week) and blobs.has(today)


def test_a_text_that_is_kept_again_is_young_again(data: Path) -> None:
    key = kept(data, "a", 50)
    Blobs(data / "blobs").put(b"a" * 1024)
    assert clean(data, 0).removed == 0
    assert Blobs(data / "blobs").has(key)


async def test_what_a_session_needs_to_undo_stays(tmp_path: Path, data: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    edit = reply("Edits.", fileChanges=[{"path": "a.txt", "edits": [{"search": "one", "replace": "two"}]}])
    async with open_session(tmp_path / "work", [edit]) as session:
        await session.chat.submit("Change a.txt")
        await session.chat.finished()
        await session.review.apply()
        name = session.state.session.id
        assert clean(data, 0, young=True, now=time.time() + 2 * YOUNG).removed == 0
    assert clean(data, 0).removed == 0
    assert used(data) > 0
    async with open_session(tmp_path / "work", session=name) as session:
        await session.review.undo()
    assert (tmp_path / "work/a.txt").read_text() == "one\n"
    assert clean(data, 0, now=time.time() + 2 * YOUNG).after == 0


def test_the_program_looks_once_a_day_and_says_what_went_or_only_asking_would_free(data: Path) -> None:
    kept(data, "a", 50), kept(data, "b", 50), kept(data, "c", 3)
    assert "2.0 KiB" in keep_within(data, 1024)
    assert keep_within(data, 0) == ""
    for moment in (0, time.time() + 9 * DAY):  # long ago, and before the clock was set back
        os.utime(data / cleanup.LAST, (moment, moment))
        assert "sessions clean" in keep_within(data, 0)


def test_a_log_that_cannot_be_read_keeps_everything(data: Path) -> None:
    kept(data, "a", 50)
    broken = data / "sessions" / "20260101-000000-ab12"
    broken.mkdir(parents=True)
    (broken / "log.sqlite3").write_bytes(b"no database at all" * 100)
    done = clean(data, 0)
    assert done.removed == 0 and done.why_not


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1_023, "1023 bytes"),
        (1_024, "1.0 KiB"),
        (1_536, "1.5 KiB"),
        (5 * 1_024**2, "5.0 MiB"),
        (3 * 1_024**3, "3.0 GiB"),
        (2_000 * 1_024**3, "2000.0 GiB"),
    ],
)
def test_sizes_in_words(size: int, words: str) -> None:
    assert cleanup.readable(size) == words


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (cleanup.CleanupResult(1_024, 1_024), "1.0 KiB of 2.0 KiB of undo data"),
        (cleanup.CleanupResult(4_096, 4_096), "4.0 KiB of 2.0 KiB of undo data; --yes deletes the oldest"),
        (
            cleanup.CleanupResult(4_096, 1_024, removed=3),
            "1.0 KiB of 2.0 KiB of undo data; 3 texts deleted (3.0 KiB)",
        ),
        (
            cleanup.CleanupResult(4_096, 4_096, young=1_024),
            "4.0 KiB of 2.0 KiB of undo data; 1.0 KiB are from the last 30 days: --young includes them",
        ),
        (
            cleanup.CleanupResult(4_096, 4_096, why_not="a log is damaged"),
            "4.0 KiB of 2.0 KiB of undo data; nothing was removed: a log is damaged",
        ),
    ],
)
def test_a_cleanup_in_words(done: cleanup.CleanupResult, words: str) -> None:
    assert cleanup.cleanup_summary(done, 2_048) == words
