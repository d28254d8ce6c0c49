"""Contents kept under their hash, so that what was seen, sent or overwritten can be had again, byte for byte."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tui_agent.errors import FileError
from tui_agent.files.private import sync_new, write_private
from tui_agent.files.systems import file_error
from tui_agent.files.text import md5

_KEY = re.compile(r"[0-9a-f]{32}")
_A_DAY = 24 * 3600.0
#: So long after it was written, in seconds, a content may not be durable: another session syncs it later.
_JUST_NOW = 60.0
#: The most that is held in memory, in bytes.
MOST_HELD = 256 * 2**20


class Blobs:
    """A folder of contents (private to the user), sharded by the first two digits. Safe for any number of threads.

    The folder is made with the first content. What is not in it is looked for in the folder `behind` it, which is
    never written. What may be `held` is in memory while the disk does not take it, and written with whatever is
    written next; `on_held` is told why, on the caller's thread, when that begins.
    """

    def __init__(self, folder: Path, behind: Path | None = None) -> None:
        self.folder = folder
        self.on_held: Callable[[FileError], None] | None = None
        self._behind = Blobs(behind) if behind else None
        self._held: dict[str, bytes] = {}
        #: What is written and not synced, and whether what is held may wait for that.
        self._unsynced: dict[str, bytes] = {}
        self._later = False
        self._settling = threading.Lock()

    def put(self, data: bytes) -> str:
        """Keep `data`, durably, and return its key. Raises FileError where it cannot be kept.

        A stored file that was damaged is put right; another content with the same hash is refused.
        """
        key = md5(data)
        there = bool(_KEY.fullmatch(key)) and self._path(key).exists()
        self.put_soon(data)
        try:
            if key in self._unsynced:
                self._sync([key])
        except OSError as error:
            self._unsynced.pop(key, None)
            if not there:
                self._path(key).unlink(missing_ok=True)
            raise file_error(error, self.folder, "written") from error
        return key

    def put_soon(self, data: bytes) -> str:
        """The same, but it is durable only when `settle` was called: before anything durable speaks of it."""
        key = md5(data)
        try:
            there = self._read(key)
            if there is None or md5(there) != key:
                self._write(key, data)
                self._unsynced[key] = data
            elif there != data:
                raise FileError(f"two contents share the hash {key}", "change a byte of either")
            else:
                self._kept_again(key, data)
        except OSError as error:
            raise file_error(error, self.folder, "written") from error
        self._held.pop(key, None)
        return key

    def settle(self) -> None:
        """Make durable what is not yet; all of it at once, since each waits for the disk. What the disk does not take
        is held in memory."""
        with self._settling:
            waiting = list(self._unsynced)
            try:
                if waiting:
                    self._sync(waiting)
            except OSError as error:
                for key in waiting:  # which of them is on disk nobody can say now
                    if (data := self._unsynced.pop(key, None)) is not None:
                        self._hold(key, data, file_error(error, self.folder, "written"))

    def sync(self) -> None:
        """The same; raises FileError where the disk does not take it."""
        with self._settling:
            try:
                if waiting := list(self._unsynced):
                    self._sync(waiting)
            except OSError as error:
                raise file_error(error, self.folder, "written") from error

    def sync_later(self) -> Callable[[], None]:
        """Let what may be held be durable later; what comes back is to be called before anything speaks of it."""
        self._later = True
        return self.settle

    def hold(self, data: bytes) -> str:
        """Keep `data` and return its key; in memory where the disk does not take it. Raises FileError where memory
        has no room for it either."""
        try:
            key = self.put_soon(data) if self._later else self.put(data)
        except FileError as error:
            key = md5(data)
            others = sum(map(len, list(self._held.values())))
            if others + len(data) > MOST_HELD or self._held.get(key, data) != data:
                raise
            self._hold(key, data, error)
            return key
        self.flush()
        return key

    def _hold(self, key: str, data: bytes, error: FileError) -> None:
        first = not self._held
        self._held[key] = data
        if first and self.on_held is not None:
            self.on_held(error)

    def hold_text(self, text: str) -> str:
        """The same with text, as `put_text` keeps it."""
        return self.hold(text.encode("utf-8", "surrogatepass"))

    def flush(self) -> None:
        """Write what is held, as far as the disk takes it."""
        for key, data in list(self._held.items()):
            try:
                self._write(key, data)
                self._unsynced[key] = data
            except OSError:
                return
            self._held.pop(key, None)

    def get(self, key: str) -> bytes:
        """The content under a key. Raises FileError where it is missing or damaged."""
        try:
            data = self._held.get(key) or self._read(key)
        except OSError as error:
            raise file_error(error, self._path(key), "read") from error
        if data is None:
            raise FileError(f"content {key or '(no key)'} is not in the store", "read the file again")
        if md5(data) != key:
            raise FileError(f"content {key} is damaged in the store", "read the file again")
        return data

    def has(self, key: str) -> bool:
        here = key in self._held or (bool(_KEY.fullmatch(key)) and self._path(key).exists())
        return here or (self._behind is not None and self._behind.has(key))

    def put_text(self, text: str) -> str:
        """Keep text as UTF-8; what has no encoding (half characters of odd file names) is kept all the same."""
        return self.put(text.encode("utf-8", "surrogatepass"))

    def get_text(self, key: str) -> str:
        return self.get(key).decode("utf-8", "surrogatepass")

    def size(self) -> int:
        """How many bytes lie in the store."""
        total = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                try:
                    total += os.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    pass  # removed while we counted
        return total

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def _read(self, key: str) -> bytes | None:
        if not _KEY.fullmatch(key):
            return None
        try:
            return self._path(key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return self._behind._read(key) if self._behind else None

    def _kept_again(self, key: str, data: bytes) -> None:
        """A text is as old as the last time that it was kept: what cleans the store goes by that.

        One that was written just now, by another session maybe, need not be durable yet.
        """
        path = self._path(key)
        try:
            age = time.time() - path.stat().st_mtime
            if abs(age) < _JUST_NOW:
                self._unsynced[key] = data
            elif age > _A_DAY / 2:
                os.utime(path)
        except OSError:
            pass  # it lies in the folder behind, or may only be read: its age is of no account then

    def _write(self, key: str, data: bytes) -> None:
        write_private(self._path(key), data, sync=False)

    def _sync(self, keys: Sequence[str]) -> None:
        """Raises OSError."""
        paths = [self._path(key) for key in keys]
        sync_new(*paths, *dict.fromkeys(path.parent for path in paths))
        for key in keys:
            self._unsynced.pop(key, None)
