"""A disk that is slow or locked below SQLite: how often a log waits for it, and what it says when it may not write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import power

from tui_agent.log import log

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler to make the disk with"
)
WAL = "log.sqlite3-wal"
#: Makes a log and writes records, one after the other; a line when each is kept, or why it is not.
WRITES = """
import sys
from pathlib import Path
from tui_agent.log import log
from tui_agent.store import events as e

log.database._PATIENCE = 0.05
made = log.Log.create(Path(sys.argv[1]) / "sessions" / "one" / "log.sqlite3")
for number in range(int(sys.argv[2])):
    told = []
    made.append([e.NoticeGiven("info", "x")], told.append, told.append)
    made.count()
    print("kept" if isinstance(told[0], int) else told[0], flush=True)
    with open(sys.argv[3], "a") as syncs:
        syncs.write("--\\n")
if sys.argv[4:] == ["read"]:
    import sqlite3
    reader = sqlite3.connect(made.path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM records").fetchone()
    sqlite3.connect(made.path).execute("PRAGMA wal_checkpoint")  # all that may be put into the file itself
    with open(sys.argv[3], "a") as syncs:
        syncs.write("--\\n")
if sys.argv[4:]:
    made.sync_at_end()
    for number in range(3):
        made.append([e.NoticeGiven("info", "x")], lambda _: None)
        made.count()
made.close()
with open(sys.argv[3], "a") as syncs:
    syncs.write("--\\n")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = power.built(tmp_path_factory.mktemp("power"))
    assert made is not None, "the disk could not be compiled"
    return made


def written(
    folder: Path, library: Path, records: int, *more: str, **disk: str
) -> tuple[list[str], list[list[str]]]:
    """What each of so many records came to, and the names of what was synced before each was told, and at the end.

    With anything `more`, three records are written at the end; with `read`, another program reads the log meanwhile.
    """
    syncs = folder / "syncs"
    words = [sys.executable, "-c", WRITES, str(folder), str(records), str(syncs), *more]
    environment = {**os.environ, **disk, "LD_PRELOAD": str(library), "POWER_SYNCS": str(syncs)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    parts = syncs.read_text().split("--\n")[:-1]
    return done.stdout.splitlines(), [
        [os.path.basename(line.partition(" ")[2]) for line in part.splitlines()] for part in parts
    ]


def test_a_new_log_waits_twice_for_the_disk_and_each_record_after_that_once(
    tmp_path: Path, library: Path
) -> None:
    """The file itself and its names are synced while the first record is."""
    told, synced = written(tmp_path, library, 3, POWER_DELAY="1", POWER_DELAYED=str(tmp_path))
    assert told == ["kept"] * 3
    assert sorted(synced[0]) == ["log.sqlite3", WAL, "one", "one", "sessions"]
    assert synced[1:] == [[WAL], [WAL], [WAL, "log.sqlite3"]]


def test_records_that_a_session_leaves_at_its_end_wait_for_the_disk_together(
    tmp_path: Path, library: Path
) -> None:
    _, synced = written(tmp_path, library, 1, "at the end", POWER_DELAY="1", POWER_DELAYED=str(tmp_path))
    assert synced[1] == [WAL, "log.sqlite3"]
    assert len(list(log.events_of(tmp_path / "sessions/one/log.sqlite3"))) == 4


def test_they_are_durable_too_where_another_program_reads_the_log(tmp_path: Path, library: Path) -> None:
    _, synced = written(tmp_path, library, 1, "read", POWER_DELAY="1", POWER_DELAYED=str(tmp_path))
    assert synced[2] == [WAL]


def test_a_lock_that_another_program_holds_is_named_and_the_next_record_is_kept(
    tmp_path: Path, library: Path
) -> None:
    told, _ = written(tmp_path, library, 40, POWER_DELAY="0", POWER_LOCKED_AFTER="4", POWER_LOCKED_FOR="300")
    assert told[-1] == "kept"
    assert any("is being written by another program" in line for line in told)
