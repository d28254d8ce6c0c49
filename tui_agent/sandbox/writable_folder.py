"""Writes below a folder to which programs in a view also write, without following their links."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress

from tui_agent.sandbox.folder_access import FolderAccess

#: Prefix of unfinished files.
UNFINISHED = ".tui-agent-write-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WritableFolder(FolderAccess):
    """By descriptor, such as `View.merged`. Blocking; all methods raise OSError."""

    def read(self, path: str, most: int) -> bytes | None:
        """A regular file's content; None if nothing is there. Raises OSError for a larger file, a link or a
        folder."""
        there = self.status(path)
        if there is None:
            return None
        if there.st_size > most:
            raise OSError(errno.EFBIG, "it is too large", path)
        descriptor = self.open(path)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise OSError(errno.EFBIG, "it is too large", path)
        return data

    def replace(self, path: str, data: bytes, mode: int) -> None:
        """In one step; creates missing folders."""
        parent = self._made(path.rpartition("/")[0])
        name, unfinished = path.rpartition("/")[2], UNFINISHED + secrets.token_hex(8)
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(unfinished, flags, 0o600, dir_fd=parent), "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), mode)
            try:
                os.rename(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(unfinished, dir_fd=parent)
                raise
        finally:
            os.close(parent)

    def set_mode(self, path: str, mode: int) -> None:
        descriptor = self.open(path)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def remove(self, path: str) -> None:
        """Removes a file or link, and then empty folders above, as git does."""
        folder, _, name = path.rpartition("/")
        if self.status(path) is None:
            return
        parent = self._opened(folder)
        try:
            os.unlink(name, dir_fd=parent)
        finally:
            os.close(parent)
        while folder:
            folder, _, name = folder.rpartition("/")
            above = self._opened(folder)
            try:
                os.rmdir(name, dir_fd=above)
            except OSError:
                return
            finally:
                os.close(above)
                self._forget()

    def _opened(self, folder: str) -> int:
        here = os.dup(self._root)
        for part in folder.split("/") if folder else ():
            here = self._step(here, part)
        return here

    def _made(self, folder: str) -> int:
        here = os.dup(self._root)
        for part in folder.split("/") if folder else ():
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=here)
            here = self._step(here, part)
        return here

    def _step(self, here: int, part: str) -> int:
        try:
            if part in ("", ".", ".."):
                raise OSError("it is not a name")
            return os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)


def mode_of(status: os.stat_result | None) -> int:
    """0o644 if there is no regular file."""
    return stat.S_IMODE(status.st_mode) if status is not None and stat.S_ISREG(status.st_mode) else 0o644
