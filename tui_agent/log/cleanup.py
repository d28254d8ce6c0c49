"""Size limit of the store of earlier texts.

Age counts from the last time a text was stored. Texts of open or recently used sessions are kept, and
those of the last day, whose records may be unwritten.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.private import write_private
from tui_agent.log import database, directory
from tui_agent.log.directory import SessionLock

FOLDER = "subtasks"

DAY = 24 * 3600.0
#: Removing texts younger than this needs the user's consent.
YOUNG = 30 * DAY
#: Marker file; its modification time is that of the last clean-up.
LAST = "cleaned"
_KEY = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


class CleanupResult(Struct, frozen=True):
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


def clean(data: Path, limit: int, *, young: bool = False, now: float | None = None) -> CleanupResult:
    """Removes the oldest texts until at most `limit` bytes are left. Blocking.

    With `young` (the user agreed), also texts of the last 30 days, except those of the last day and of
    open sessions. Removes nothing if the log of a relevant session is unreadable.
    """
    now = time.time() if now is None else now
    texts = sorted(_texts(data / "blobs"), key=lambda text: text.kept_at)
    before = sum(text.size for text in texts)
    if before <= limit:
        return CleanupResult(before, before)
    try:
        in_use = _keys(data, now, only_open=young)
    except (SessionError, sqlite3.Error) as error:
        return CleanupResult(before, before, why_not=str(error))
    free = [text for text in texts if text.key not in in_use and now - text.kept_at > DAY]
    after, removed = before, 0
    for text in free:
        if after <= limit or (not young and now - text.kept_at < YOUNG):
            break
        with suppress(OSError):
            os.unlink(text.path)
            after, removed = after - text.size, removed + 1
    return CleanupResult(
        before, after, removed, sum(text.size for text in free[removed:]) if after > limit else 0
    )


def keep_within(data: Path, limit: int) -> str:
    """Cleans once a day. Returns a sentence if texts were removed or the user's consent is needed."""
    last = data / LAST
    try:
        if last.exists() and 0 <= time.time() - last.stat().st_mtime < DAY:
            return ""
        write_private(last, b"")
    except OSError:
        return ""
    done = clean(data, limit)
    if done.removed:
        freed = readable(done.before - done.after)
        return f"The {done.removed} oldest undo texts were deleted ({freed})"
    if done.after > limit:
        room = f"{readable(done.after)} of undo data, {readable(limit)} is the limit"
        return f"{room}: `tui-agent sessions clean --young --yes` also deletes data of the last 30 days"
    return ""


def readable(size: int) -> str:
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def used(data: Path) -> int:
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
    """Returns the keys in the logs of open sessions and their sub-tasks; unless `only_open`, also of
    recently used sessions.
    """
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
                with closing(database.connect_to_read(log)) as connection:
                    for record in database.read_records(connection):
                        if isinstance(record.body, bytes):
                            keys.update(found.decode() for found in _KEY.findall(record.body))
    return keys


def _is_open(folder: Path) -> bool:
    try:
        SessionLock.take(folder).release()
    except SessionError:
        return True
    return False


def cleanup_summary(done: CleanupResult, limit: int) -> str:
    said = [f"{readable(done.after)} of {readable(limit)} of undo data"]
    if done.removed:
        said.append(f"{done.removed} texts deleted ({readable(done.before - done.after)})")
    if done.why_not:
        said.append(f"nothing was removed: {done.why_not}")
    elif done.young:
        said.append(f"{readable(done.young)} are from the last 30 days: --young includes them")
    elif done.after > limit and not done.removed:
        said.append("--yes deletes the oldest")
    return "; ".join(said)
