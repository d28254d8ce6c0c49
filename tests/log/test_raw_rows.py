"""The pages of a log, read without SQLite, hold the rows that SQLite reads."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tui_agent.log import database
from tui_agent.log.database import RawRows, read_growing, read_meta, read_raw, read_records
from tui_agent.log.records import as_json, checksum

#: SQLite stores each in another number of bytes.
WHOLE = (0, 1, -1, 127, 128, 40_000, 2**23, 2**31, 2**40, 2**50, -(2**50))
TIMES = (0.0, 1.0, 300.0, 1.5, 1_764_000_000.25)
NUMBERS = (*range(1, 150), 2**14, 2**21 + 3, 2**35, 2**49, 2**56, 2**62)


def row(chance: random.Random, number: int, most: int) -> tuple[object, ...]:
    values = (number, chance.choice(TIMES), "Notice", chance.choice(WHOLE), chance.randbytes(most))
    return (*values, checksum(*values))


def filled(path: Path, page_size: int) -> None:
    """A log whose rows fill no page, a part of one, all of one to the byte, or several."""
    chance = random.Random(page_size)
    sizes = (0, 1, 100, *range(page_size - 90, page_size + 10), 3 * page_size, 9 * page_size)
    database.make(path, sync=False)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute("VACUUM")
        connection.execute("BEGIN")
        for place, number in enumerate(NUMBERS):
            values = row(chance, number, sizes[place % len(sizes)])
            connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", values)
        for key in ("draft", database.to_sql("buffer:\udcff.py"), "scroll:a.py"):
            values = (key, *row(chance, 7, 3 * page_size))
            connection.execute("INSERT INTO growing VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        for name, value in (("turns", 3), ("name", "é"), ("updated", 1.5)):
            connection.execute("INSERT INTO meta VALUES (?, ?)", (name, as_json(value)))
        connection.execute("COMMIT")


def by_sqlite(path: Path) -> RawRows:
    with closing(sqlite3.connect(path)) as connection:
        found = {record.number: record for record in read_records(connection)}
        return RawRows(found, dict(read_growing(connection)), read_meta(connection))


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 32768])
def test_pages_of_every_size_hold_what_sqlite_reads(tmp_path: Path, page_size: int) -> None:
    path = tmp_path / "log.sqlite3"
    filled(path, page_size)
    found = read_raw(path)
    assert found == by_sqlite(path)
    assert len(found.records) == len(NUMBERS) and len(found.growing) == 3


def test_pages_of_the_write_ahead_file_are_newer_unless_a_checkpoint_has_moved_them(tmp_path: Path) -> None:
    path, chance = tmp_path / "log.sqlite3", random.Random(1)
    filled(path, 4096)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")

        def change(numbers: range) -> None:
            for number in numbers:
                values = row(chance, number, 50)
                connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", values)

        change(range(1, 40))
        connection.execute("PRAGMA wal_checkpoint(FULL)")
        change(range(5, 9))  # the frames of the others stay in the file, behind those of these
        (tmp_path / "copy").mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", tmp_path / "copy")
        wanted = by_sqlite(path)
    found = read_raw(tmp_path / "copy" / path.name)
    assert found == wanted
    (tmp_path / "copy" / "log.sqlite3-wal").unlink()
    assert read_raw(tmp_path / "copy" / path.name) != wanted


def test_of_two_rows_with_one_key_the_newer_counts(tmp_path: Path) -> None:
    """A row that SQLite has replaced can be left in a page that it has freed."""
    path, chance = tmp_path / "log.sqlite3", random.Random(1)
    database.make(path, sync=False)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE other AS SELECT * FROM growing")
        for number in (4, 9, 8):
            for table in ("growing", "other"):
                values = ("draft", *row(chance, number if table == "other" else 6, 10))
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    assert read_raw(path).growing["draft"].number == 9


@pytest.mark.parametrize("place", [0, 5000], ids=["its own page", "an overflow page"])
def test_damage_costs_the_row_that_it_hits(tmp_path: Path, place: int) -> None:
    path = tmp_path / "log.sqlite3"
    filled(path, 1024)
    records, data = by_sqlite(path).records, bytearray(path.read_bytes())
    number = max(number for number, record in records.items() if len(record.body) > 8000)
    at = data.index(records[number].body[place : place + 20])
    data[at : at + 20] = bytes(20)
    path.write_bytes(data)
    del records[number]
    assert read_raw(path).records == records


def test_logs_that_threads_make_at_once_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both begin before there is an empty log to copy; a third is made of that."""
    both, make_tables = threading.Barrier(2, timeout=20), database._make_tables

    def together(path: Path) -> None:
        both.wait()
        make_tables(path)
        both.wait()

    monkeypatch.setattr(database, "_empty", [])
    monkeypatch.setattr(database, "_make_tables", together)
    paths = [tmp_path / name / "log" for name in ("first", "second", "third")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda path: database.make(path, sync=False), paths[:2]))
    database.make(paths[2], sync=False)
    assert len({path.stat().st_size for path in paths}) == 1
    for path in paths:
        with closing(database.connect(path)) as connection:
            assert database.last_number(connection) == 0
