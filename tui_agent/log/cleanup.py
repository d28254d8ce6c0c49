"""The store of earlier texts kept within its limit: the oldest go first, and nothing that is young or in use.

A text is as old as the last time that it was kept. What a session of the last days, or one that is open, has in its
log stays, however old it is; so does whatever was kept in the last day, by a session that has yet to write it down.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.private import write_private
from tui_agent.log import database, directory
from tui_agent.log.lock import SessionLock

#: Below a session's folder lie those of its sub-tasks' runs.
FOLDER = "subtasks"

DAY = 24 * 3600.0
#: Nothing younger than this goes without asking.
YOUNG = 30 * DAY
#: Its time is that of the last look.
LAST = "cleaned"
_KEY = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


class Cleaned(Struct, frozen=True):
    """What a clean-up did: bytes before and after, how many texts went, and the bytes that only asking would free."""

    before: int
    after: int
    removed: int = 0
    young: int = 0
    why_not: str = ""


class _Text(Struct, frozen=True):
    key: str
    path: str
    size: int
    kept_at: float


def clean(data: Path, limit: int, *, young: bool = False, now: float | None = None) -> Cleaned:
    """Remove the oldest texts until the store holds at most `limit` bytes, or nothing more may go.

    With `young` (the person was asked) texts of the last 30 days go too, but for those of the last day and of
    sessions that are open. Blocking. Where the log of a session that counts cannot be read nothing is removed.
    """
    now = time.time() if now is None else now
    texts = sorted(_texts(data / "blobs"), key=lambda text: text.kept_at)
    before = sum(text.size for text in texts)
    if before <= limit:
        return Cleaned(before, before)
    try:
        in_use = _keys(data, now, only_open=young)
    except (SessionError, sqlite3.Error) as error:
        return Cleaned(before, before, why_not=str(error))
    free = [text for text in texts if text.key not in in_use and now - text.kept_at > DAY]
    after, removed = before, 0
    for text in free:
        if after <= limit or (not young and now - text.kept_at < YOUNG):
            break
        if _remove(text.path):
            after, removed = after - text.size, removed + 1
    return Cleaned(before, after, removed, sum(text.size for text in free[removed:]) if after > limit else 0)


def keep_within(data: Path, limit: int) -> str:
    """Clean, once a day; a sentence where something went, or where only asking would make room."""
    last = data / LAST
    try:
        if last.exists() and time.time() - last.stat().st_mtime < DAY:
            return ""
        write_private(last, b"")
    except OSError:
        return ""  # where nothing can be written nothing grows
    done = clean(data, limit)
    if done.removed:
        freed = readable(done.before - done.after)
        return f"Of the texts kept for undo the {done.removed} oldest were removed ({freed})"
    if done.after > limit:
        room = f"{readable(done.after)} are kept for undo, {readable(limit)} is the limit"
        return f"{room}: `tui-agent sessions clean --young --yes` removes what is younger than 30 days too"
    return ""


def readable(size: int) -> str:
    """`1.4 GiB`."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def used(data: Path) -> int:
    """How many bytes the store holds."""
    return Blobs(data / "blobs").size()


def _texts(folder: Path) -> Iterator[_Text]:
    for shard, _, names in os.walk(folder):
        for name in names:
            key = os.path.basename(shard) + name
            path = os.path.join(shard, name)
            if not _KEY.fullmatch(key.encode(errors="replace")):
                continue
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            yield _Text(key, path, status.st_size, status.st_mtime)


def _keys(data: Path, now: float, *, only_open: bool) -> set[str]:
    """Every key that is in the log of a session that is open, or (unless `only_open`) was used recently, and in
    those of its sub-tasks."""
    keys: set[str] = set()
    for folder in directory.folders(data):
        path = folder / directory.LOG
        if not path.exists():
            continue
        recent = now - path.stat().st_mtime < YOUNG or any(
            now - newest.stat().st_mtime < YOUNG for newest in folder.glob(f"{directory.LOG}-wal")
        )
        if (recent and not only_open) or _is_open(folder):
            for log in (path, *folder.glob(f"{FOLDER}/**/{directory.LOG}")):
                keys.update(_keys_of(log))
    return keys


def _keys_of(path: Path) -> Iterator[str]:
    with closing(database.connect_to_read(path)) as connection:
        for record in database.read_records(connection):
            if isinstance(record.body, bytes):
                yield from (found.decode() for found in _KEY.findall(record.body))


def _is_open(folder: Path) -> bool:
    try:
        SessionLock.take(folder).release()
    except SessionError:
        return True
    return False


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
