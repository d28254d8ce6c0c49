"""Contents kept under their hash, so that what was seen, sent or overwritten can be had again, byte for byte."""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path

from tui_agent.errors import FileError
from tui_agent.files.failures import file_error
from tui_agent.files.text import md5

_KEY = re.compile(r"[0-9a-f]{32}")
_A_DAY = 24 * 3600.0


class Blobs:
    """A folder of contents (private to the user), sharded by the first two digits. Safe for any number of threads.

    The folder is made with the first content. What is not in it is looked for in the folder `behind` it, which is
    never written.
    """

    def __init__(self, folder: Path, behind: Path | None = None) -> None:
        self.folder = folder
        self._behind = Blobs(behind) if behind else None

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
        return key

    def get(self, key: str) -> bytes:
        """The content under a key. Raises FileError where it is missing or damaged."""
        try:
            data = self._read(key)
        except OSError as error:
            raise file_error(error, self._path(key), "read") from error
        if data is None:
            raise FileError(f"content {key or '(no key)'} is not in the store", "read the file again")
        if md5(data) != key:
            raise FileError(f"content {key} is damaged in the store", "read the file again")
        return data

    def has(self, key: str) -> bool:
        here = bool(_KEY.fullmatch(key)) and self._path(key).exists()
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
        except FileNotFoundError:
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
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_durably(path, data)


def write_durably(path: Path, data: bytes) -> None:
    """Put a file of our own in its place in one step, private to the user, on disk on return. Raises OSError.

    For our own data folder only: a path in a workspace goes through the gate.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def sync_path(folder: Path) -> None:
    """Make names in a folder of our own durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
