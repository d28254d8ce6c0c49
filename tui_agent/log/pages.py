"""The transcript by pages: every message by number, so that scrolling up folds nothing. Rebuilt when needed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from tui_agent.store.state import ChatMessage

#: The file in a session's folder.
NAME = "pages.sqlite3"
_TABLE = "CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, body BLOB, checksum INTEGER)"


def put(folder: Path, messages: Iterable[ChatMessage]) -> None:
    """Keep messages; only a shortcut, so that a file that cannot be used is removed and nothing is said."""
    try:
        bodies = [(message.number, msgspec.msgpack.encode(message)) for message in messages]
        with closing(sqlite3.connect(folder / NAME)) as connection, connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(_TABLE)
            connection.executemany(
                "INSERT OR REPLACE INTO messages VALUES (?, ?, ?)",
                [(number, body, zlib.crc32(body)) for number, body in bodies],
            )
        (folder / NAME).chmod(0o600)
    except (sqlite3.Error, OSError, ValueError, OverflowError):
        forget(folder)


def before(folder: Path, number: int, count: int) -> tuple[ChatMessage, ...] | None:
    """The `count` messages before that number (or all there are), oldest first; None where one is missing."""
    wanted = list(range(max(1, number - count), number))
    if not (folder / NAME).exists():
        return None
    try:
        with closing(
            sqlite3.connect(f"{(folder / NAME).absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            rows = connection.execute(
                "SELECT * FROM messages WHERE number >= ? AND number < ? ORDER BY number",
                (number - count, number),
            ).fetchall()
        if [row[0] for row in rows] != wanted or any(zlib.crc32(body) != crc for _, body, crc in rows):
            return None
        return tuple(msgspec.msgpack.decode(body, type=ChatMessage) for _, body, _ in rows)
    except (sqlite3.Error, TypeError, msgspec.MsgspecError):
        return None


def forget(folder: Path) -> None:
    """Remove the pages; the next one that is asked for makes them again."""
    for suffix in ("", "-journal"):
        try:
            (folder / f"{NAME}{suffix}").unlink(missing_ok=True)
        except OSError:
            pass  # then they stay, and each page is checked as it is read
