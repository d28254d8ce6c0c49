"""Content-addressed store of seen, sent and overwritten contents."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.errors import FileError
from tui_agent.files.operating_system import as_file_error, file_error, read_start
from tui_agent.files.private import sync_new, write_private
from tui_agent.files.text import md5

_KEY = re.compile(r"[0-9a-f]{32}")
_A_DAY = 24 * 3600.0
#: A younger content of another session may not be durable yet.
_JUST_NOW = 60.0
MOST_HELD = 256 * 2**20


class Blobs:
    """A private folder of contents, sharded by the first two digits of the key. Thread-safe.

    Reads missing contents from the read-only folder `behind`. While the disk fails, contents passed to
    `hold` stay in memory until the next successful write; `on_held` receives the reason.
    """

    def __init__(self, folder: Path, behind: Path | None = None) -> None:
        self.folder = folder
        self.on_held: Callable[[FileError], None] | None = None
        self._behind = Blobs(behind) if behind else None
        self._held: dict[str, bytes] = {}
        self._unsynced: dict[str, bytes] = {}
        self._later = False
        self._settling = threading.Lock()

    def put(self, data: bytes) -> str:
        """Stores `data` durably and returns its key. Raises FileError. Repairs a damaged file; refuses a
        hash collision.
        """
        key = md5(data)
        there = bool(_KEY.fullmatch(key)) and self._path(key).exists()
        self.put_unsynced(data)
        try:
            if key in self._unsynced:
                self._sync([key])
        except OSError as error:
            self._unsynced.pop(key, None)
            if not there:
                self._path(key).unlink(missing_ok=True)
            raise file_error(error, self.folder, "written") from error
        return key

    def put_unsynced(self, data: bytes) -> str:
        """Like `put`, but durable only after `sync`, which must precede durable references."""
        key = md5(data)
        path = self._path(key)
        with as_file_error(self.folder, "written"):
            there = self._read(key)
            if there is None or md5(there) != key:
                self._write(key, data)
                self._unsynced[key] = data
            elif there != data:
                raise FileError(f"two contents share the hash {key}", "change a byte of either")
            else:
                with suppress(OSError):  # behind or read-only: its age is irrelevant
                    age = time.time() - path.stat().st_mtime
                    if abs(age) < _JUST_NOW:
                        self._unsynced[key] = data
                    elif age > _A_DAY / 2:
                        os.utime(path)  # the age for the clean-up
        self._held.pop(key, None)
        return key

    def sync_pending(self) -> None:
        """Makes pending contents durable, or holds them in memory if that fails."""
        with self._settling:
            waiting = list(self._unsynced)
            try:
                if waiting:
                    self._sync(waiting)
            except OSError as error:
                for key in waiting:
                    if (data := self._unsynced.pop(key, None)) is not None:
                        self._hold(key, data, file_error(error, self.folder, "written"))

    def sync(self) -> None:
        """Like `sync_pending`, but raises FileError."""
        with self._settling, as_file_error(self.folder, "written"):
            if waiting := list(self._unsynced):
                self._sync(waiting)

    def sync_later(self) -> Callable[[], None]:
        """Defers the sync of held contents. Call the returned function before storing references to them."""
        self._later = True
        return self.sync_pending

    def hold(self, data: bytes) -> str:
        """Keeps `data` in memory if the disk fails. Returns its key. Raises FileError if memory is also
        full.
        """
        try:
            key = self.put_unsynced(data) if self._later else self.put(data)
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
        return self.hold(text.encode("utf-8", "surrogatepass"))

    def flush(self) -> None:
        for key, data in list(self._held.items()):
            try:
                self._write(key, data)
                self._unsynced[key] = data
            except OSError:
                return
            self._held.pop(key, None)

    def get(self, key: str) -> bytes:
        """Raises FileError if missing or damaged."""
        with as_file_error(self._path(key), "read"):
            data = self._held.get(key) or self._read(key)
        if data is None:
            raise FileError(f"content {key or '(no key)'} is not in the store", "read the file again")
        if md5(data) != key:
            raise FileError(f"content {key} is damaged in the store", "read the file again")
        return data

    def has(self, key: str) -> bool:
        here = key in self._held or (bool(_KEY.fullmatch(key)) and self._path(key).exists())
        return here or (self._behind is not None and self._behind.has(key))

    def put_text(self, text: str) -> str:
        """Keeps lone surrogates of odd file names."""
        return self.put(text.encode("utf-8", "surrogatepass"))

    def get_text(self, key: str) -> str:
        return self.get(key).decode("utf-8", "surrogatepass")

    def size(self) -> int:
        total = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                try:
                    total += os.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    pass
        return total

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def _read(self, key: str) -> bytes | None:
        if not _KEY.fullmatch(key):
            return None
        try:
            return read_start(self._path(key))
        except (FileNotFoundError, NotADirectoryError):
            return self._behind._read(key) if self._behind else None

    def _write(self, key: str, data: bytes) -> None:
        write_private(self._path(key), data, sync=False)

    def _sync(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        sync_new(*paths, *dict.fromkeys(path.parent for path in paths))
        for key in keys:
            self._unsynced.pop(key, None)
