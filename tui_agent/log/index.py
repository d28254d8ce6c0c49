"""Bringing the list of sessions up to date: what changed since it was last looked at, and nothing else."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tui_agent.errors import SessionError
from tui_agent.files.numbers import whole_number
from tui_agent.log import database, directory, records
from tui_agent.log.directory import LOG, SessionEntry
from tui_agent.store import events as e

#: The form of the tables; a file of any other is made again.
VERSION = 2
#: The table of the full-text index, where this Python's sqlite has one; it finds words from this length on.
FTS, SHORTEST = "found", 3
_TABLES = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, workspace TEXT, started_from TEXT, updated REAL,
        turns INTEGER, first_request TEXT, size INTEGER, note TEXT, rank REAL, looks TEXT,
        number INTEGER);
    CREATE TABLE lines (id INTEGER PRIMARY KEY, session TEXT, turn INTEGER, kind TEXT, text TEXT);
    CREATE INDEX lines_of ON lines (session, id);
"""
_INDEX = f"CREATE VIRTUAL TABLE {FTS} USING fts5 (text, content = 'lines', content_rowid = 'id', tokenize = 'trigram')"
_TYPES = ("TurnStarted", "ReplyRead", "ReplyLeftOff", "FileLoaded", "ChangeProposed")
#: The most of one message that is searched, in characters.
_LONGEST = 20_000


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables where there are none. Raises sqlite3.Error, also for those of another version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == VERSION:
        return
    if version:
        raise sqlite3.DatabaseError("the list of sessions is of another version")
    connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT")
    try:
        connection.execute(_INDEX)
    except sqlite3.OperationalError:
        pass  # a sqlite without it: lines are looked through one by one


def refresh(connection: sqlite3.Connection, data: Path) -> None:
    """Take in every session that looks other than when it was last taken in, and let go those that are gone."""
    folder = os.fspath(data / "sessions")
    known = {row[0]: row[1:] for row in connection.execute("SELECT id, looks, number FROM sessions")}
    looks = {
        name: _looks(f"{folder}/{name}/{LOG}") or _looks(f"{folder}/{name}/{directory.SNAPSHOT}")
        for name in directory.ids(data)
    }
    changed = [name for name, look in looks.items() if look and known.get(name, ("",))[0] != look]
    gone = [name for name in known if not looks.get(name)]
    if not changed and not gone:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for name in gone:
            _forget(connection, name)
        for name in changed:
            _take_in(connection, Path(folder, name), looks[name], known.get(name, ("", 0))[1])
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _take_in(connection: sqlite3.Connection, folder: Path, looks: str, number: int) -> None:
    try:
        with closing(database.connect_to_read(folder / LOG)) as log:
            entry = directory.entry_of(folder, database.read_meta(log))
            last = database.last_number(log)
            if last < number:
                _forget(connection, folder.name)
                number = 0
            for turn, kind, text in _said(log, number):
                _add_line(connection, folder.name, turn, kind, text)
    except (SessionError, sqlite3.Error, ValueError, OSError) as error:
        found = directory.broken_entry(folder, error)
        note = found.note if found else f"it cannot be read ({error})"
        asked = (note, looks, folder.name)
        if connection.execute("UPDATE sessions SET note = ?, looks = ? WHERE id = ?", asked).rowcount:
            return
        if found is None:
            return
        entry, last = found, 0
    values = [_value(getattr(entry, name)) for name in SessionEntry.__struct_fields__]
    row = (*values, looks if _is_settled(looks) else "", last)
    connection.execute(f"INSERT OR REPLACE INTO sessions VALUES ({', '.join('?' for _ in row)})", row)


def _value(value: object) -> object:
    return database.to_sql(value) if isinstance(value, str) else value


def _said(log: sqlite3.Connection, after: int) -> Iterator[tuple[int, str, str]]:
    """(turn, kind, text) of each line behind a record."""
    turn = 0
    for record in database.read_records(log, after, _TYPES):
        match records.lasting(record):
            case e.TurnStarted(turn, request):
                yield turn, "person", request
            case e.ReplyRead(turn, summary, message) | e.ReplyLeftOff(turn, summary, message):
                yield turn, "agent", f"{summary}\n{message}".strip()
            case e.FileLoaded(file):
                yield turn, "file", file.path
            case e.ChangeProposed(change):
                yield change.turn, "file", change.path


def _add_line(connection: sqlite3.Connection, session: str, turn: int, kind: str, text: str) -> None:
    text = text[:_LONGEST].encode(errors="replace").decode()
    known = "SELECT 1 FROM lines WHERE session = ? AND kind = 'file' AND text = ?"
    if not text or (kind == "file" and connection.execute(known, (session, text)).fetchone()):
        return
    values = (session, turn, kind, text)
    line = connection.execute(
        "INSERT INTO lines (session, turn, kind, text) VALUES (?, ?, ?, ?)", values
    ).lastrowid
    if _has_index(connection):
        connection.execute(f"INSERT INTO {FTS} (rowid, text) VALUES (?, ?)", (line, text))


def _forget(connection: sqlite3.Connection, session: str) -> None:
    if _has_index(connection):
        connection.execute(
            f"INSERT INTO {FTS} ({FTS}, rowid, text) SELECT 'delete', id, text FROM lines WHERE session = ?",
            (session,),
        )
    connection.execute("DELETE FROM lines WHERE session = ?", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def _has_index(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (FTS,)).fetchone())


def _is_settled(looks: str) -> bool:
    """Whether what is written from now on will change how a log looks."""
    return time.time_ns() - max(whole_number(changed) for changed in looks.split()[1::2]) > database.SOON


def _looks(log: str) -> str:
    """Size and time of a log and of what is not merged into it yet; empty where there is none."""
    found = []
    for path in (log, f"{log}-wal"):
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append(f"{status.st_size} {status.st_mtime_ns}")
    return " ".join(found)
