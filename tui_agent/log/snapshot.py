"""The state of a log: its newest snapshot, which is disposable, the later records, and the transcript.

The transcript is cached in pages, so that scrolling up needs no fold.
"""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent import __version__
from tui_agent.errors import SessionError
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import read_start
from tui_agent.files.private import write_private
from tui_agent.log import database, records
from tui_agent.log.journal import Journal
from tui_agent.log.log import events_of, growing_of
from tui_agent.store import events as e
from tui_agent.store import state as slices
from tui_agent.store.events import Event, fold
from tui_agent.store.files import Buffer
from tui_agent.store.state import ChatMessage, State

_BATCH = 500
PAGES = "pages.sqlite3"
_TABLE = "CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, body BLOB, checksum INTEGER)"


def messages_before(
    path: Path, before: int, count: int, keep: bool = True, lost: list[str] | None = None
) -> tuple[ChatMessage, ...]:
    """Returns up to `count` messages with numbers below `before`, oldest first. With `keep`, caches newly
    computed pages. Adds a sentence about each unreadable record to `lost`.
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
        last = (message for message in state.chat.messages[-4:] if message.number > handed_on)
        waiting.update((message.number, message) for message in last)
        turn = state.chat.messages[-1].turn
        for number in [number for number, message in waiting.items() if message.turn < turn - 1]:
            handed_on = number
            yield waiting.pop(number)
    yield from waiting.values()


def put_pages(folder: Path, messages: Iterable[ChatMessage]) -> None:
    """Removes an unusable cache file without an error."""
    if database.other_file(folder / PAGES):
        forget_pages(folder)
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
    """Oldest first; None if one is not cached."""
    wanted = list(range(max(1, number - count), number))
    if not (folder / PAGES).exists() or database.other_file(folder / PAGES):
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
    for suffix in ("", "-journal"):
        try:
            (folder / f"{PAGES}{suffix}").unlink(missing_ok=True)
        except OSError:
            pass  # Harmless: pages are checked when read.


NAME = "snapshot"
_MAGIC = "tui-agent-snapshot"
#: Minimum number of new records for a snapshot: at the end of a turn, when closing.
EVERY, AT_CLOSE = 300, 40


class Snapshot(Struct, frozen=True):
    """The result of records 1 to `number`; `checksum` is that of the last."""

    number: int
    checksum: int
    state: State


def save(folder: Path, snapshot: Snapshot, *, sync: bool = True) -> None:
    """Ignores errors, because the log has everything. Without `sync` a power failure can lose it."""
    try:
        body = msgspec.msgpack.encode(lasting_part(snapshot.state))
        head = f"{_MAGIC} {fingerprint()} {snapshot.number} {snapshot.checksum} {zlib.crc32(body)}\n"
        write_private(folder / NAME, head.encode() + body, sync=sync)
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        pass


def load(folder: Path) -> Snapshot | None:
    """Returns None if it is missing, damaged or of another version."""
    try:
        head, _, body = read_start(folder / NAME).partition(b"\n")
        magic, made_by, *figures = head.decode("ascii").split(" ")
        record, sum_of_record, crc = (whole_number(figure, -1) for figure in figures)
        if (magic, made_by, crc) != (_MAGIC, fingerprint(), zlib.crc32(body)) or record < 0:
            return None
        return Snapshot(record, sum_of_record, msgspec.msgpack.decode(body, type=State))
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def lasting_part(state: State) -> State:
    """Keeps values from lasting events. Growing events are stored separately; passing values are measured
    again.
    """
    return replace(
        state,
        session=replace(state.session, trusted=False, not_kept="", waits_for=""),
        workspace=slices.WorkspaceSlice(),
        model=replace(state.model, status="idle"),
        reply=slices.ReplySlice(),
        input=replace(state.input, draft="", typed={}),
        commands=replace(
            state.commands, running=tuple(one for one in state.commands.running if not one.preparing)
        ),
        buffers=replace(state.buffers, open=tuple(Buffer(buffer.path) for buffer in state.buffers.open)),
        layout=slices.LayoutSlice(),
        others=(),
    )


def fingerprint() -> str:
    """Identifies the state's types and code. Snapshots with another fingerprint are ignored."""
    sources = sorted(Path(slices.__file__).parent.glob("*.py"))
    crc = 0
    for source in sources:
        crc = zlib.crc32(source.read_bytes(), crc)
    return f"{__version__}-{crc:08x}"


class ReadState(Struct, frozen=True):
    state: State
    number: int = 0
    folded: int = 0
    lost: tuple[str, ...] = ()


def read_state(path: Path) -> ReadState:
    """Includes growing events. Raises SessionError."""
    folder = path.parent
    with closing(database.connect_to_read(path)) as connection:
        last = database.last_number(connection)
        lost: list[str] = []
        kept = load(folder)
        if kept is None or database.checksum_of(connection, kept.number) not in (kept.checksum, None):
            forget_pages(folder)
            kept = Snapshot(0, 0, State())
        if kept.number > last:
            (sentence,) = records.gap(last, kept.number + 1)
            lost.append(f"{sentence} at the end of the log; what they said is here, from a snapshot")
        later = records.lasting_after(kept.number, database.read_records(connection, kept.number), lost)
        state = fold((event for _, event in later), kept.state)
        growing, lost_growing = growing_of(connection)
        state = fold(growing, state)
    number = max(last, kept.number)
    return ReadState(state, number, number - kept.number, (*lost, *lost_growing))


class SnapshotWriter:
    """Runs after each turn, in one thread at a time. Belongs to the session's loop."""

    def __init__(self, journal: Journal, path: Path, since: int) -> None:
        """`since` is the number of records after the last snapshot."""
        self._journal = journal
        self._path = path
        self._saved = journal.number - since
        self._paged = 0
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe = journal.store.subscribe(self._on_event)

    async def close(self) -> None:
        self._unsubscribe()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._is_due(AT_CLOSE):
            await self._write(AT_CLOSE)

    def _on_event(self, event: e.Event, state: State) -> None:
        if isinstance(event, e.TurnEnded) and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._write(EVERY))

    def _is_due(self, records: int) -> bool:
        state = self._journal.store.state
        return (
            self._journal.keeps
            and not state.turn.running
            and self._journal.number - self._saved >= max(records, 1)
        )

    async def _write(self, records: int) -> None:
        state, number, whole = self._journal.store.state, self._journal.number, self._journal.keeps
        messages = [message for message in state.chat.messages if message.number > self._paged]
        self._paged = state.chat.total
        await asyncio.to_thread(put_pages, self._path.parent, messages)
        if whole and self._is_due(records):
            self._saved = number
            await asyncio.to_thread(_save_at, self._path, state, number)


def _save_at(path: Path, state: State, number: int) -> None:
    try:
        with closing(database.connect_to_read(path)) as connection:
            checksum = database.checksum_of(connection, number)
    except (SessionError, sqlite3.Error):
        return
    if checksum is not None:
        save(path.parent, Snapshot(number, checksum, state), sync=False)
