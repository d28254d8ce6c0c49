"""The SQLite file of a session's log: creation, connections, transactions, and reading of damaged files.

`read_raw` salvages rows from the pages of a log that sqlite cannot open, read-only, by
https://www.sqlite.org/fileformat2.html: the first byte identifies table leaf pages, column types identify
rows, and checksums validate records. It includes newer pages of the write-ahead file.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from tui_agent.errors import Damaged, NotKept, SessionError, TooNew
from tui_agent.files import operating_system
from tui_agent.files.names import display_path
from tui_agent.files.numbers import real_number
from tui_agent.files.operating_system import read_start, sentence
from tui_agent.files.private import make_private, open_private, sync_new
from tui_agent.log.records import VERSION, EventBody, Record, as_json, checksum, from_json

_PAGE_SIZE = 4096
_TABLE_LEAF = 0x0D
_WAL_HEADER, _FRAME_HEADER = 32, 24
#: Column sizes in bytes by serial type. Higher types are computed: even for blobs, odd for text.
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}


class RawRows(Struct, frozen=True):
    records: dict[int, Record]
    growing: dict[str, Record]
    meta: dict[str, Any]


def read_raw(path: Path) -> RawRows:
    found = RawRows({}, {}, {})
    for row_id, values in _rows(path):
        match values:
            case [_, float() | int() as at, str(), int(), bytes(), int()]:
                record = Record(row_id, float(at), *values[2:])
                if record.is_whole:
                    found.records[row_id] = record
            case [str() | bytes(), int(), float() | int() as at, str(), int(), bytes(), int()]:
                record = Record(values[1], float(at), *values[3:])
                key = from_sql(values[0])
                older = found.growing.get(key)
                if record.is_whole and (
                    older is None or (older.number, older.at) <= (record.number, record.at)
                ):
                    found.growing[key] = record
            case [str(name), bytes(value)] if name.isidentifier():
                try:
                    found.meta[name] = from_json(value)
                except ValueError:
                    continue
    return found


def _rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    data = read_start(path)
    size = int.from_bytes(data[16:18], "big")
    if not 512 <= size <= 32768 or size & (size - 1):
        size = _PAGE_SIZE
    pages = {at // size + 1: data[at : at + size] for at in range(0, len(data) - size + 1, size)}
    try:
        log = read_start(f"{path}-wal")
    except OSError:
        log = b""
    salt = log[16:24]
    step = _FRAME_HEADER + size
    for at in range(_WAL_HEADER, len(log) - step + 1, step):
        if log[at + 8 : at + 16] == salt:  # others are from before the last checkpoint
            (number,) = struct.unpack(">I", log[at : at + 4])
            pages[number] = log[at + _FRAME_HEADER : at + step]
    for number, page in sorted(pages.items()):
        start = 100 if number == 1 else 0
        if page[start] != _TABLE_LEAF:
            continue
        (count,) = struct.unpack(">H", page[start + 3 : start + 5])
        for place in range(start + 8, min(start + 8 + 2 * count, len(page) - 1), 2):
            (at,) = struct.unpack(">H", page[place : place + 2])
            try:
                length, at = _varint(page, at)
                row_id, at = _varint(page, at)
                yield row_id, _values(_payload(page, at, length, pages))
            except (IndexError, ValueError, struct.error, KeyError, UnicodeDecodeError):
                continue  # Other rows of a damaged page can be intact.


def _payload(page: bytes, at: int, length: int, pages: dict[int, bytes]) -> bytes:
    usable = len(page)
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    if length <= most:
        return page[at : at + length]
    here = least + (length - least) % (usable - 4)
    here = least if here > most else here
    parts, left = [page[at : at + here]], length - here
    (following,) = struct.unpack(">I", page[at + here : at + here + 4])
    while left > 0:
        more = pages[following]
        (following,) = struct.unpack(">I", more[:4])
        parts.append(more[4 : 4 + left])
        left -= usable - 4
    return b"".join(parts)


def _values(payload: bytes) -> list[Any]:
    header, at = _varint(payload, 0)
    kinds = []
    while at < header:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        size = _FIXED[kind] if kind in _FIXED else (kind - 12) // 2
        part = payload[at : at + size]
        if kind < 0 or len(part) != size or kind in (10, 11):
            raise ValueError("not a row")
        at += size
        match kind:
            case 0:
                values.append(None)
            case 7:
                values.append(struct.unpack(">d", part)[0])
            case 8 | 9:
                values.append(kind - 8)
            case _ if kind < 7:
                values.append(int.from_bytes(part, "big", signed=True))
            case _:
                values.append(part if kind % 2 == 0 else part.decode())
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            return value, at + count + 1
    return value << 8 | data[at + 8], at + 9


#: Files of a higher version stay unchanged.
SCHEMA = 1
_LAST_SCHEMA = 10_000
_PATIENCE = 5.0
#: Page cache of a writer in KB. SQLite's default of 2,000 fills with pages that are not read again.
_CACHE = 256
_TABLES = """
    CREATE TABLE records (number INTEGER PRIMARY KEY, at REAL NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL,
        body BLOB NOT NULL, checksum INTEGER NOT NULL);
    CREATE TABLE growing (key TEXT PRIMARY KEY, number INTEGER NOT NULL, at REAL NOT NULL, type TEXT NOT NULL,
        version INTEGER NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL);
    CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
#: File time resolution in nanoseconds: two writes within it can leave the same size and time.
SOON = 100_000_000
COLUMNS = {"records": 6, "growing": 7, "meta": 2}
_SIGNS_OF_DAMAGE = (
    "malformed",
    "not a database",
    "unsupported file format",
    "no such",
    "encrypted",
    "Could not decode",
)
RECOVER = "resume it: the readable part continues in a new session, and the old one is not changed"
_COLUMNS = "number, at, type, version, body, checksum"
RANK = "rank"
#: Minimum difference of consecutive ranks, and maximum plausible rank, in seconds.
RANK_STEP, GREATEST_RANK = 0.001, 1e11


#: The content of an empty log, once one was made: each of many sub-tasks has its own.
_empty: list[bytes] = []


def make(path: Path, *, sync: bool = True) -> None:
    """Creates an empty private log, durable with `sync`. Raises SessionError.

    SQLite itself would sync five times.
    """
    try:
        make_private(path.parent)
        content = b"".join(_empty)  # another thread may make the first one now
        with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(content)
        if not content:
            _make_tables(path)
            _empty[:] = [path.read_bytes()]
        if sync:
            sync_new(path)
    except FileExistsError as error:
        raise SessionError(f"the session {path.parent.name} already exists", "open it instead") from error
    except OSError as error:
        raise not_made(path.parent, error) from error
    except sqlite3.Error as error:
        raise not_made(path.parent, error) from error


def _make_tables(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;"
            f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT"
        )


def connect(path: Path) -> sqlite3.Connection:
    """Opens a log for one writing thread at a time. Raises SessionError."""
    _refuse_other_files(path)
    try:
        connection = sqlite3.connect(_address(path, "rw"), _PATIENCE, 0, None, False, uri=True)
    except sqlite3.Error as error:
        raise refusal(path, error) from error
    try:
        _check(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # A plain fsync leaves data in the drive's cache.
        connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    except sqlite3.Error as error:
        connection.close()
        raise refusal(path, error) from error
    except SessionError:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Works on a read-only disk. Raises SessionError.

    A cleanly closed log is opened as immutable, which creates no files next to it.
    """
    _refuse_other_files(path)
    error: sqlite3.Error | None = None
    for mode in ("ro", "ro&immutable=1") if os.path.exists(f"{path}-wal") else ("ro&immutable=1",):
        try:
            connection = sqlite3.connect(_address(path, mode), _PATIENCE, 0, None, uri=True)
        except sqlite3.Error as failed:
            error = failed
            continue
        try:
            _check(connection, path)
        except sqlite3.Error as failed:
            connection.close()
            error = failed
        except SessionError:
            connection.close()
            raise
        else:
            return connection
    raise refusal(path, error)


class LogWriter:
    def __init__(self, connection: sqlite3.Connection, ranks: Ranks, at_least: int = 0) -> None:
        self.connection = connection
        self._ranks = ranks
        self.number = max(last_number(connection), at_least)
        self._before = self.number

    def prepare(self) -> None:
        """Writes the header of the write-ahead file, which would cost the first transaction one more sync.
        That transaction reports errors.
        """
        with suppress(sqlite3.Error):
            self.connection.execute("PRAGMA synchronous = OFF")
            self.set_meta({"begun": True})
        self.connection.execute("PRAGMA synchronous = FULL")

    def sync_at_end(self) -> None:
        with suppress(sqlite3.Error):
            self.connection.execute("PRAGMA synchronous = NORMAL")

    def end(self) -> None:
        with suppress(sqlite3.Error, OSError):
            busy, written, moved = self.connection.execute("PRAGMA wal_checkpoint").fetchone()
            if busy or written != moved:  # A reader is active: data stays in the write-ahead file.
                # Opening and closing the file is safe: SQLite holds no locks in it.
                path = self.connection.execute("PRAGMA database_list").fetchone()[2]
                with open(f"{path}-wal", "rb") as ahead:
                    operating_system.sync(ahead.fileno())
        with suppress(sqlite3.Error):
            self.connection.close()

    def begin(self) -> None:
        self._before = self.number
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        self.number = self._before
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def append(self, bodies: Sequence[EventBody]) -> int:
        at = time.time()
        for body in bodies:
            self.number += 1
            row = (self.number, at, body.type, VERSION, body.data)
            self.connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))
        self.set_meta({"updated": at, "rank": self._ranks.next(at)})
        return self.number

    def keep(self, key: str, body: EventBody) -> int:
        row = (self.number, time.time(), body.type, VERSION, body.data)
        self.connection.execute(
            "INSERT OR REPLACE INTO growing VALUES (?, ?, ?, ?, ?, ?, ?)", (to_sql(key), *row, checksum(*row))
        )
        return self.number

    def drop(self, keys: Sequence[str]) -> int:
        self.connection.executemany("DELETE FROM growing WHERE key = ?", [(to_sql(key),) for key in keys])
        return self.number

    def set_meta(self, values: dict[str, Any]) -> int:
        rows = [(name, as_json(value)) for name, value in values.items()]
        self.connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        return self.number


def read_records(
    connection: sqlite3.Connection, after: int = 0, types: Sequence[str] = ()
) -> Iterator[Record]:
    of_types = f" AND type IN ({', '.join('?' for _ in types)})" if types else ""
    query = f"SELECT {_COLUMNS} FROM records WHERE number > ?{of_types} ORDER BY number"
    number = after
    try:
        for row in connection.execute(query, (after, *types)):
            number = row[0]
            yield Record(*row)
        return
    except sqlite3.DatabaseError:
        last = number = number + 1
    one = f"SELECT {_COLUMNS} FROM records WHERE number = ?"
    while number <= last * 2 + 1000:  # records after a damaged page can be intact
        with suppress(sqlite3.DatabaseError):
            if (row := connection.execute(one, (number,)).fetchone()) is not None:
                last = number
                if not types or row[2] in types:
                    yield Record(*row)
        number += 1


def last_number(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT max(number) FROM records").fetchone()[0] or 0


def checksum_of(connection: sqlite3.Connection, number: int) -> int | None:
    """None if the record is missing. Raises sqlite3.Error."""
    row = connection.execute("SELECT checksum FROM records WHERE number = ?", (number,)).fetchone()
    return row[0] if row else None


def read_growing(connection: sqlite3.Connection) -> list[tuple[str, Record]]:
    """Oldest first. Raises sqlite3.Error."""
    rows = connection.execute(f"SELECT key, {_COLUMNS} FROM growing ORDER BY number, at, key").fetchall()
    return [(from_sql(row[0]), Record(*row[1:])) for row in rows]


def read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    return {name: from_json(value) for name, value in connection.execute("SELECT * FROM meta")}


def to_sql(text: str) -> str | bytes:
    """Encodes text with lone surrogates, from odd file names."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_sql(value: Any) -> Any:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def refusal(path: Path, error: sqlite3.Error | None) -> SessionError:
    words = str(error)
    name = f"the session {path.parent.name}"
    match words:
        case "database or disk is full":
            return NotKept(
                f"{name} cannot be saved, the disk is full", "free some space; the session stays open"
            )
        case "disk I/O error":
            return not_kept(path, _fault_of(path.parent))
        case "attempt to write a readonly database":
            return NotKept(
                f"{name} cannot be saved, {display_path(str(path))} is read-only", "give write permission"
            )
        case "unable to open database file":
            return SessionError(
                f"{name} cannot be opened at {display_path(str(path))}", "check that it exists and is yours"
            )
        case "database is locked":
            return SessionError(f"{name} is being written by another program", "close it there")
        case _ if any(sign in words for sign in _SIGNS_OF_DAMAGE):
            return Damaged(f"{name} is damaged", RECOVER)
    return SessionError(f"{name} cannot be used ({words})", f"look at {display_path(str(path))}")


def _fault_of(folder: Path) -> OSError:
    """Returns the system's reason, which SQLite hides, by writing a temporary file."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return OSError(errno.EIO, os.strerror(errno.EIO))


def not_kept(path: Path, error: OSError) -> SessionError:
    why, remedy = sentence(error)
    return NotKept(f"the session {path.parent.name} cannot be saved, {why}", remedy)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises TooNew, or Damaged if the file is not a valid log. SQLite's own message can be undecodable."""
    damaged = Damaged(f"the session {path.parent.name} is damaged", RECOVER)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        schema = connection.execute(
            "SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
    except UnicodeDecodeError as error:
        raise damaged from error
    if SCHEMA < version <= _LAST_SCHEMA:
        raise TooNew(
            f"the session {path.parent.name} was written by a newer tui-agent", "update tui-agent to open it"
        )
    shapes = {_plain((sql or b"").decode(errors="replace")) for (sql,) in schema}
    if version != SCHEMA or not _SHAPES.issubset(shapes):
        raise damaged


def other_file(path: Path) -> str:
    """Returns the name of a pipe, socket, device or folder in place of a database file, or "". SQLite would
    wait for a pipe without an end.
    """
    places = (Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal"))
    return next((place.name for place in places if place.exists() and not place.is_file()), "")


def _refuse_other_files(path: Path) -> None:
    if name := other_file(path):
        raise SessionError(
            f"the session {path.parent.name} cannot be opened, {display_path(str(path.with_name(name)))} is not a "
            "regular file",
            "move it away, then open the session again",
        )


def _plain(sql: str) -> str:
    return " ".join(sql.split()).rstrip(";")


#: Stored SQL of each table. With any difference, rows are unreadable or misread.
_SHAPES = {_plain(sql) for sql in _TABLES.split(";") if sql.strip()}


def _address(path: Path, mode: str) -> str:
    return f"file:{quote(os.fspath(path.absolute()))}?mode={mode}"


def not_made(folder: Path, error: OSError | sqlite3.Error) -> SessionError:
    why = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return NotKept(
        f"no session can be saved in {display_path(str(folder))} ({why})",
        "give write permission and free some space, or point TUI_AGENT_HOME to another folder",
    )


class Ranks:
    """Without a usable file, ranks increase only while the session is open."""

    def __init__(self, sessions: Path) -> None:
        self._path = sessions / RANK
        self._last = 0.0

    def next(self, now: float) -> float:
        """`now` is a Unix time."""
        try:
            descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError:
            return self._over(now, 0.0)
        try:
            given = real_number(os.pread(descriptor, 40, 0))
            rank = self._over(now, given if given < GREATEST_RANK else 0.0)
            os.pwrite(descriptor, b"%-20.3f\n" % rank, 0)
            return rank
        except OSError:
            return self._over(now, 0.0)
        finally:
            os.close(descriptor)

    def _over(self, now: float, given: float) -> float:
        self._last = max(now, self._last + RANK_STEP, given + RANK_STEP)
        return self._last
