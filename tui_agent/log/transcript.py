"""The transcript of a log, in full or in part. Cached in pages, so that scrolling up needs no fold."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from tui_agent.log.log import events_of
from tui_agent.store.events import Event
from tui_agent.store.state import ChatMessage, State

#: Messages per batch.
_BATCH = 500
#: File in a session's folder.
PAGES = "pages.sqlite3"
_TABLE = "CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, body BLOB, checksum INTEGER)"


def messages_before(
    path: Path, before: int, count: int, keep: bool = True, lost: list[str] | None = None
) -> tuple[ChatMessage, ...]:
    """Up to `count` messages of the log at `path` with numbers below `before`, oldest first.

    With `keep`, newly computed pages are cached. Adds a sentence about each unreadable record to `lost`.
    """
    folder = path.parent
    found = pages_before(folder, before, count)
    if found is not None:
        return found
    if not keep:
        there = (message for message in in_order(events_of(path, lost)) if message.number < before)
        return tuple(message for message in there if message.number >= before - count)
    forget_pages(folder)
    wanted: list[ChatMessage] = []
    batch: list[ChatMessage] = []
    for message in in_order(events_of(path, lost)):
        batch.append(message)
        if before - count <= message.number < before:
            wanted.append(message)
        if len(batch) == _BATCH:
            put_pages(folder, batch)
            batch = []
    put_pages(folder, batch)
    return tuple(wanted)


def messages_of(events: Iterable[Event]) -> list[ChatMessage]:
    """Every message of a session, with its changes."""
    return list(in_order(events))


def in_order(events: Iterable[Event]) -> Iterator[ChatMessage]:
    """Yields each message once it is final, at the end of its turn."""
    state = State()
    waiting: dict[int, ChatMessage] = {}
    handed_on = 0
    for event in events:
        before = state.chat.messages
        state = event.apply(state)
        if state.chat.messages is before:
            continue
        # An event adds a message, or adds a change to one of the last few.
        last = (message for message in state.chat.messages[-4:] if message.number > handed_on)
        waiting.update((message.number, message) for message in last)
        turn = state.chat.messages[-1].turn
        for number in [number for number, message in waiting.items() if message.turn < turn - 1]:
            handed_on = number
            yield waiting.pop(number)
    yield from waiting.values()


def put_pages(folder: Path, messages: Iterable[ChatMessage]) -> None:
    """Cache messages. An unusable cache file is removed without an error."""
    try:
        bodies = [(message.number, msgspec.msgpack.encode(message)) for message in messages]
        with closing(sqlite3.connect(folder / PAGES)) as connection, connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(_TABLE)
            connection.executemany(
                "INSERT OR REPLACE INTO messages VALUES (?, ?, ?)",
                [(number, body, zlib.crc32(body)) for number, body in bodies],
            )
        (folder / PAGES).chmod(0o600)
    except (sqlite3.Error, OSError, ValueError, OverflowError):
        forget_pages(folder)


def pages_before(folder: Path, number: int, count: int) -> tuple[ChatMessage, ...] | None:
    """The `count` messages before that number, or all of them, oldest first; None if one is missing from the
    cache."""
    wanted = list(range(max(1, number - count), number))
    if not (folder / PAGES).exists():
        return None
    try:
        with closing(
            sqlite3.connect(f"{(folder / PAGES).absolute().as_uri()}?mode=ro", uri=True)
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


def forget_pages(folder: Path) -> None:
    """Delete the cached pages; they are rebuilt on demand."""
    for suffix in ("", "-journal"):
        try:
            (folder / f"{PAGES}{suffix}").unlink(missing_ok=True)
        except OSError:
            pass  # Harmless: each page is checked when it is read.
