"""The session catalog: one SQLite file, refreshed on read. Sorting, search, renaming and deletion of
sessions."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct

from tui_agent.errors import SessionError
from tui_agent.files.numbers import whole_number
from tui_agent.log import database, directory, log, records
from tui_agent.log.database import from_sql, to_sql
from tui_agent.log.directory import LOG, SessionEntry, SessionLock
from tui_agent.store import events as e

Sort = Literal["newest", "turns", "size", "name"]
SORTS: tuple[Sort, ...] = ("newest", "turns", "size", "name")
NAME = "catalog.sqlite3"
MOST = 500
_PATIENCE = 2.0
_ENTRY = ", ".join(SessionEntry.__struct_fields__)
_LINE = "l.session, l.turn, l.kind, l.text"
#: A file of any other version is rebuilt.
_VERSION = 2
#: Name of the full-text table, and the shortest word it finds. Some builds of sqlite lack full-text search.
_FTS, _SHORTEST = "found", 3
_TABLES = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, workspace TEXT, started_from TEXT, updated REAL,
        turns INTEGER, first_request TEXT, size INTEGER, note TEXT, rank REAL, looks TEXT,
        number INTEGER);
    CREATE TABLE lines (id INTEGER PRIMARY KEY, session TEXT, turn INTEGER, kind TEXT, text TEXT);
    CREATE INDEX lines_of ON lines (session, id);
"""
_INDEX = f"CREATE VIRTUAL TABLE {_FTS} USING fts5 (text, content = 'lines', content_rowid = 'id', tokenize = 'trigram')"
_SEARCHED = ("TurnStarted", "ReplyRead", "ReplyLeftOff", "FileLoaded", "ChangeProposed")
_LONGEST = 20_000
T = TypeVar("T")


def list_sessions(data: Path, workspace: Path | None = None, words: str = "") -> list[SessionEntry]:
    """Returns the sessions of a workspace or of all, newest first. With `words`, only sessions that contain
    all of them in one line or in their name.

    A damaged or too new session has a note. Omits unreadable ones.
    """
    where, values = _of(workspace)
    query = f"SELECT {_ENTRY} FROM sessions s WHERE {where} ORDER BY rank DESC, id DESC"

    def read(connection: sqlite3.Connection) -> list[SessionEntry]:
        rows = connection.execute(query, values).fetchall()
        if wanted := words.split():
            condition, asked = _condition(connection, wanted)
            found = connection.execute(f"SELECT DISTINCT l.session FROM lines l WHERE {condition}", asked)
            likes = " AND ".join("name LIKE ? ESCAPE '\\'" for _ in wanted)
            named = connection.execute(f"SELECT id FROM sessions WHERE {likes}", _likes(wanted))
            names = {row[0] for row in (*found, *named)}
            rows = [row for row in rows if row[0] in names]
        return [SessionEntry(*map(from_sql, row)) for row in rows]

    return _use(data, read) or []


def sorted_by(entries: Sequence[SessionEntry], sort: Sort) -> list[SessionEntry]:
    """`entries` are newest first."""
    match sort:
        case "turns":
            return sorted(entries, key=lambda entry: -entry.turns)
        case "size":
            return sorted(entries, key=lambda entry: -entry.size)
        case "name":
            return sorted(entries, key=lambda entry: entry.title.lower())
    return list(entries)


def newest(data: Path, workspace: Path | None = None) -> SessionEntry | None:
    return next(iter(list_sessions(data, workspace)), None)


class FoundLine(Struct, frozen=True):
    """`kind` is `person`, `agent` or `file` (a path that the message concerned)."""

    session: str
    turn: int
    kind: str
    text: str


def search(data: Path, words: str, workspace: Path | None = None, limit: int = MOST) -> list[FoundLine]:
    """Lines with all the words, ignoring case, newest session first."""
    where, values = _of(workspace)

    def find(connection: sqlite3.Connection) -> list[FoundLine]:
        condition, wanted = _condition(connection, words.split())
        query = (
            f"SELECT {_LINE} FROM lines l JOIN sessions s ON s.id = l.session WHERE {where} AND {condition} "
            "ORDER BY s.rank DESC, s.id, l.id LIMIT ?"
        )
        return [FoundLine(*row) for row in connection.execute(query, (*values, *wanted, limit))]

    return _use(data, find) or [] if words.split() else []


def preview(data: Path, session: str, count: int = 8) -> list[FoundLine]:
    """Oldest first, without files."""
    query = f"SELECT {_LINE} FROM lines l WHERE session = ? AND kind != 'file' ORDER BY id DESC LIMIT ?"
    found = _use(data, lambda connection: connection.execute(query, (session, count)).fetchall(), fresh=False)
    return [FoundLine(*row) for row in reversed(found or [])]


def requests(data: Path, session: str) -> list[FoundLine]:
    query = f"SELECT {_LINE} FROM lines l WHERE session = ? AND kind = 'person' ORDER BY id DESC"
    return [FoundLine(*row) for row in _use(data, lambda c: c.execute(query, (session,)).fetchall()) or []]


def _use(data: Path, read: Callable[[sqlite3.Connection], T], fresh: bool = True) -> T | None:
    """Runs a query on the refreshed catalog. Rebuilds a damaged file, or replaces it by a database in
    memory.
    """
    if not (data / "sessions").is_dir():
        return None
    path = data / NAME
    for attempt in ("file", "remade", "memory"):
        try:
            if attempt == "remade":
                for suffix in ("", "-journal", "-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
            if attempt == "file" and database.other_file(path):
                continue
            place = ":memory:" if attempt == "memory" else path
            with closing(sqlite3.connect(place, timeout=_PATIENCE, isolation_level=None)) as connection:
                if attempt != "memory":
                    path.chmod(0o600)
                connection.execute("PRAGMA synchronous = OFF")
                _make_tables(connection)
                if fresh or attempt != "file":
                    try:
                        _refresh(connection, data)
                    except sqlite3.OperationalError as error:
                        if "locked" not in str(error):
                            raise
                return read(connection)
        except (sqlite3.Error, OSError):
            continue
    return None


def _of(workspace: Path | None) -> tuple[str, tuple[str | bytes, ...]]:
    if workspace is None:
        return "1", ()
    # A damaged session's workspace can be unknown.
    return "(s.workspace = ? OR (s.workspace = '' AND s.note != ''))", (to_sql(str(workspace)),)


def _condition(connection: sqlite3.Connection, words: list[str]) -> tuple[str, list[str]]:
    has_index = _has_index(connection)
    indexed = [word for word in words if has_index and len(word) >= _SHORTEST]
    others = [word for word in words if word not in indexed]
    parts, values = [], []
    if indexed:
        parts.append(f"l.id IN (SELECT rowid FROM {_FTS} WHERE {_FTS} MATCH ?)")
        printable = (word.encode(errors="replace").decode() for word in indexed)
        values.append(" AND ".join(f'"{word.replace(chr(34), chr(34) * 2)}"' for word in printable))
    parts += ["l.text LIKE ? ESCAPE '\\'" for _ in others]
    return " AND ".join(parts), [*values, *_likes(others)]


def _likes(words: list[str]) -> list[str]:
    printable = (word.encode(errors="replace").decode() for word in words)
    return ["%" + re.sub(r"([\\%_])", r"\\\1", word) + "%" for word in printable]


def _make_tables(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.Error, also for tables of another version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == _VERSION:
        return
    if version:
        raise sqlite3.DatabaseError("the list of sessions is of another version")
    connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT")
    try:
        connection.execute(_INDEX)
    except sqlite3.OperationalError:
        pass


def _refresh(connection: sqlite3.Connection, data: Path) -> None:
    folder = os.fspath(data / "sessions")
    known = {row[0]: row[1:] for row in connection.execute("SELECT id, looks, number FROM sessions")}
    looks = {
        name: _size_and_time(f"{folder}/{name}/{LOG}")
        or _size_and_time(f"{folder}/{name}/{directory.SNAPSHOT}")
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
            _index_session(connection, Path(folder, name), looks[name], known.get(name, ("", 0))[1])
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _index_session(connection: sqlite3.Connection, folder: Path, looks: str, number: int) -> None:
    try:
        with closing(database.connect_to_read(folder / LOG)) as kept:
            entry = directory.entry_of(folder, database.read_meta(kept))
            last = database.last_number(kept)
            if last < number:
                _forget(connection, folder.name)
                number = 0
            _add_lines(connection, folder.name, kept, number)
    except (SessionError, sqlite3.Error, ValueError, OSError) as error:
        found = directory.broken_entry(folder, error)
        note = found.note if found else f"it cannot be read ({error})"
        asked = (note, looks, folder.name)
        if connection.execute("UPDATE sessions SET note = ?, looks = ? WHERE id = ?", asked).rowcount:
            return
        if found is None:
            return
        entry, last = found, 0
    values = (getattr(entry, name) for name in SessionEntry.__struct_fields__)
    columns = (to_sql(value) if isinstance(value, str) else value for value in values)
    changed = max(whole_number(moment) for moment in looks.split()[1::2])
    settled = time.time_ns() - changed > database.SOON
    row = (*columns, looks if settled else "", last)
    connection.execute(f"INSERT OR REPLACE INTO sessions VALUES ({', '.join('?' for _ in row)})", row)


def _add_lines(connection: sqlite3.Connection, session: str, kept: sqlite3.Connection, after: int) -> None:
    known = "SELECT 1 FROM lines WHERE session = ? AND kind = 'file' AND text = ?"
    has_index, now = _has_index(connection), 0
    for record in database.read_records(kept, after, _SEARCHED):
        match records.lasting(record):
            case e.TurnStarted(now, text):
                turn, kind = now, "person"
            case e.ReplyRead(now, summary, message) | e.ReplyLeftOff(now, summary, message):
                turn, kind, text = now, "agent", f"{summary}\n{message}".strip()
            case e.FileLoaded(file):
                turn, kind, text = now, "file", file.path
            case e.ChangeProposed(change):
                turn, kind, text = change.turn, "file", change.path
            case _:
                continue
        text = text[:_LONGEST].encode(errors="replace").decode()
        if not text or (kind == "file" and connection.execute(known, (session, text)).fetchone()):
            continue
        values = (session, turn, kind, text)
        line = connection.execute(
            "INSERT INTO lines (session, turn, kind, text) VALUES (?, ?, ?, ?)", values
        ).lastrowid
        if has_index:
            connection.execute(f"INSERT INTO {_FTS} (rowid, text) VALUES (?, ?)", (line, text))


def _forget(connection: sqlite3.Connection, session: str) -> None:
    if _has_index(connection):
        connection.execute(
            f"INSERT INTO {_FTS} ({_FTS}, rowid, text) SELECT 'delete', id, text FROM lines WHERE session = ?",
            (session,),
        )
    connection.execute("DELETE FROM lines WHERE session = ?", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def _has_index(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (_FTS,)).fetchone())


def _size_and_time(path: str) -> str:
    found = []
    for place in (path, f"{path}-wal"):
        try:
            status = os.stat(place)
        except OSError:
            continue
        found.append(f"{status.st_size} {status.st_mtime_ns}")
    return " ".join(found)


def rename(data: Path, session: str, name: str) -> None:
    """Raises SessionError, also if another process has it open."""
    folder = directory.existing(data, session)
    failures: list[SessionError] = []
    with SessionLock.take(folder):
        kept = log.Log.open(folder / LOG)
        kept.append([e.SessionRenamed(name)], lambda _: None, failures.append)
        kept.set_meta(name=name)
        kept.close()
    if failures:
        raise failures[0]


async def delete(data: Path, session: str) -> None:
    """Also deletes its private commits in the workspace's repository.

    Raises SessionError, also if another process has it open, and ChildFailed; the session is then kept.
    """
    folder = directory.existing(data, session)
    with await asyncio.to_thread(SessionLock.take, folder):
        entry = await asyncio.to_thread(directory.read_entry, folder)
        if entry is not None and entry.workspace:
            await _forget_checkpoints(Path(entry.workspace), session)
        try:
            await asyncio.to_thread(shutil.rmtree, folder)
        except OSError as error:
            raise SessionError(
                f"{session} cannot be deleted ({error.strerror})", f"look at {folder}"
            ) from error


async def _forget_checkpoints(workspace: Path, session: str) -> None:
    places = [above / ".git" for above in (workspace, *workspace.parents)]
    if not await asyncio.to_thread(lambda: workspace.is_dir() and any(map(os.path.lexists, places))):
        return
    from tui_agent.git.client import GitClient
    from tui_agent.workspace.early_start import workspace_child

    child = workspace_child()
    try:
        await GitClient(child, workspace).forget_checkpoints(session)
    finally:
        await child.close()
