"""A disk that is slow or locked below SQLite: how often a log waits for it, and what it says when it may not write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import power

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler to make the disk with"
)
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
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = power.built(tmp_path_factory.mktemp("power"))
    assert made is not None, "the disk could not be compiled"
    return made


def written(folder: Path, library: Path, records: int, **disk: str) -> tuple[list[str], list[list[str]]]:
    """What each of so many records came to, and the names of what was synced before each was told."""
    syncs = folder / "syncs"
    words = [sys.executable, "-c", WRITES, str(folder), str(records), str(syncs)]
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
    wal = "log.sqlite3-wal"
    assert sorted(synced[0]) == ["log.sqlite3", wal, "one", "one", "sessions"]
    assert synced[1:] == [[wal], [wal]]


def test_a_lock_that_another_program_holds_is_named_and_the_next_record_is_kept(
    tmp_path: Path, library: Path
) -> None:
    told, _ = written(tmp_path, library, 40, POWER_DELAY="0", POWER_LOCKED_AFTER="4", POWER_LOCKED_FOR="300")
    assert told[-1] == "kept"
    assert any("is being written by another program" in line for line in told)
