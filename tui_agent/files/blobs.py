"""Contents kept under their hash, so that what was seen, sent or overwritten can be had again, byte for byte."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from tui_agent.errors import FileError
from tui_agent.files.private import write_private
from tui_agent.files.systems import file_error
from tui_agent.files.text import md5

_KEY = re.compile(r"[0-9a-f]{32}")
_A_DAY = 24 * 3600.0
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

    def put(self, data: bytes) -> str:
        """Keep `data`, durably, and return its key. Raises FileError where it cannot be kept.

        A stored file that was damaged is put right; another content with the same hash is refused.
        """
        key = md5(data)
        try:
            there = self._read(key)
            if there is None or md5(there) != key:
                self._write(key, data)
            elif there != data:
                raise FileError(f"two contents share the hash {key}", "change a byte of either")
            else:
                self._kept_again(key)
        except OSError as error:
            raise file_error(error, self.folder, "written") from error
        self._held.pop(key, None)
        return key

    def hold(self, data: bytes) -> str:
        """Keep `data` and return its key; in memory where the disk does not take it. Raises FileError where memory
        has no room for it either."""
        try:
            key = self.put(data)
        except FileError as error:
            key = md5(data)
            others = sum(map(len, list(self._held.values())))
            if others + len(data) > MOST_HELD or self._held.get(key, data) != data:
                raise
            first = not self._held
            self._held[key] = data
            if first and self.on_held is not None:
                self.on_held(error)
            return key
        self.flush()
        return key

    def hold_text(self, text: str) -> str:
        """The same with text, as `put_text` keeps it."""
        return self.hold(text.encode("utf-8", "surrogatepass"))

    def flush(self) -> None:
        """Write what is held, as far as the disk takes it."""
        for data in list(self._held.values()):
            try:
                self.put(data)
            except FileError:
                return

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

    def _kept_again(self, key: str) -> None:
        """A text is as old as the last time that it was kept: what cleans the store goes by that."""
        path = self._path(key)
        try:
            if time.time() - path.stat().st_mtime > _A_DAY / 2:
                os.utime(path)
        except OSError:
            pass  # it lies in the folder behind, or may only be read: its age is of no account then

    def _write(self, key: str, data: bytes) -> None:
        path = self._path(key)
        write_private(path, data)
