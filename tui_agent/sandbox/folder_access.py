"""Access to a folder by descriptor and relative paths, without following links in any component.

Standard library only, for the layer reader. `openat2` (Linux 5.6) refuses links in one call; otherwise
components are opened one by one.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Self

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: An intermediate folder may be searchable but not readable.
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 2, 4, 8


UNFINISHED = ".tui-agent-write-"


class FolderAccess:
    """Keeps the last used folder open until `close`. `own`: a layer of ours, in which it restores access
    rights that a command removed.
    """

    def __init__(self, root: str | int, *, own: bool = False) -> None:
        """Raises OSError if the root is a link or no folder."""
        self._root = os.dup(root) if isinstance(root, int) else os.open(root, _FOLDER)
        self._own = own
        self._kept: tuple[str, int] | None = None
        self._openat2 = _openat2_works()

    def close(self) -> None:
        self._forget()
        os.close(self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self, path: str) -> os.stat_result | None:
        """Does not follow links. Returns None if missing, or if its parent path contains a link or a file."""
        try:
            folder, name = self._parent(path)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Returns sorted names; none if it is not a folder. "" is the root."""
        with suppress(OSError):
            return self.listing(path)
        return []

    def listing(self, path: str) -> list[str]:
        """Like `names`, but raises OSError."""
        descriptor = self._listed(path)
        try:
            return sorted(os.listdir(descriptor))
        finally:
            os.close(descriptor)

    def is_opaque(self, path: str) -> bool:
        """Whether a folder of a layer replaces the lower one."""
        with suppress(OSError, AttributeError):
            descriptor = self._listed(path)
            try:
                return os.getxattr(descriptor, "user.overlay.opaque") == b"y"
            finally:
                os.close(descriptor)
        return False

    def target(self, path: str) -> str | None:
        """Returns the unresolved target of a link; None for others."""
        try:
            folder, name = self._parent(path)
            return os.readlink(name, dir_fd=folder)
        except OSError:
            return None

    def open(self, path: str) -> int:
        """Returns a read-only descriptor of a regular file. Raises OSError."""
        folder, name = self._parent(path)
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except PermissionError:
            if not self._own:
                raise
            _give_back(folder, name, 0o600)
            descriptor = os.open(name, _FILE, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return descriptor

    def _listed(self, path: str) -> int:
        if not path:
            return os.open(".", _FOLDER, dir_fd=self._root)
        folder, name = self._parent(path)
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except PermissionError:
            if not self._own:
                raise
            _give_back(folder, name, 0o700)
            return os.open(name, _FOLDER, dir_fd=folder)

    def _parent(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "it is not a name", path)
        if not folder:
            return self._root, name
        if self._kept is None or self._kept[0] != folder:
            self._forget()
            self._kept = folder, self._opened(folder)
        return self._kept[1], name

    def _opened(self, folder: str, *, made: bool = False) -> int:
        """With `made` creates missing folders."""
        if self._openat2 and folder and not made:
            return _openat2(self._root, folder)
        here = os.dup(self._root)
        for part in folder.split("/") if folder else ():
            above = here
            try:
                if part in ("", ".", ".."):
                    raise OSError(errno.EINVAL, "it is not a name", folder)
                if made:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=above)
                here = os.open(part, _PASSED, dir_fd=above)
            finally:
                os.close(above)
        return here

    def _forget(self) -> None:
        if self._kept is not None:
            os.close(self._kept[1])
            self._kept = None


def _give_back(folder: int, name: str, mode: int) -> None:
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISLNK(os.fstat(held).st_mode):
            os.chmod(f"/proc/self/fd/{held}", mode)
    finally:
        os.close(held)


@cache
def _openat2_works() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    root = os.open("/", _PASSED)
    try:
        os.close(_openat2(root, "."))
    except (OSError, ImportError):
        return False
    finally:
        os.close(root)
    return True


@cache
def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _openat2(root: int, folder: str) -> int:
    import ctypes

    how = struct.pack("QQQ", _PASSED, 0, _NO_MAGIC_LINKS | _NO_LINKS | _BENEATH)
    number, size = ctypes.c_long(_OPENAT2), ctypes.c_size_t(len(how))
    found = _libc().syscall(number, root, os.fsencode(folder), how, size)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    return found


class WritableFolder(FolderAccess):
    """A folder to which programs in a view also write, such as `View.merged`. Blocking; all methods raise
    OSError.
    """

    def read(self, path: str, most: int) -> bytes | None:
        """Returns None if nothing is there. Raises OSError for a larger file, a link or a folder."""
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
        """Atomically; creates missing folders."""
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            self._replaced(path) as (unfinished, parent),
            os.fdopen(os.open(unfinished, flags, 0o600, dir_fd=parent), "wb") as file,
        ):
            file.write(data)
            os.fchmod(file.fileno(), mode)

    def link(self, path: str, target: str) -> None:
        with self._replaced(path) as (unfinished, parent):
            os.symlink(target, unfinished, dir_fd=parent)

    @contextmanager
    def _replaced(self, path: str) -> Generator[tuple[str, int]]:
        parent = self._opened(path.rpartition("/")[0], made=True)
        name, unfinished = path.rpartition("/")[2], UNFINISHED + os.urandom(8).hex()
        try:
            yield unfinished, parent
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
        """Removes a file or link, and empty folders above, as git does."""
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


def mode_of(status: os.stat_result | None) -> int:
    """Returns the permissions of a regular file, otherwise 0o644."""
    return stat.S_IMODE(status.st_mode) if status is not None and stat.S_ISREG(status.st_mode) else 0o644
