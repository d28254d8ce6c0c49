"""A folder by its descriptor, and everything below it by relative paths, of which no part is followed if it is a link.

Python's own library alone, since it is also used by the program that reads layers. `openat2` (Linux 5.6) refuses links
in one call; where it is missing or filtered, each component is opened from the one before.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from contextlib import suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: A folder on the way, which one may pass through and not always list.
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 2, 4, 8


class Beneath:
    """What is below a folder. The last folder that was asked about is kept open; `close` when done.

    own: it is a layer of ours, in which a command may have taken our right to look; it is then given back.
    """

    def __init__(self, root: str | int, *, own: bool = False) -> None:
        """Raises OSError where the root is not a folder, or is a link."""
        self._root = os.dup(root) if isinstance(root, int) else os.open(root, _FOLDER)
        self._own = own
        self._kept: tuple[str, int] | None = None
        self._openat2 = _openat2_here(self._root)

    def close(self) -> None:
        self._forget()
        os.close(self._root)

    def __enter__(self) -> Beneath:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def status(self, path: str) -> os.stat_result | None:
        """Of what is there, a link itself; None where nothing is, or the way to it leads through a link or a file."""
        try:
            folder, name = self._parent(path)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Names in a folder, in order; none where it is not one. "" is the root."""
        with suppress(OSError):
            return self.listing(path)
        return []

    def listing(self, path: str) -> list[str]:
        """The same. Raises OSError."""
        descriptor = self._listed(path)
        try:
            return sorted(os.listdir(descriptor))
        finally:
            os.close(descriptor)

    def attribute(self, path: str, name: str) -> bytes:
        """An extended attribute of a folder; empty where it has none."""
        with suppress(OSError, AttributeError):  # macOS has no such function
            descriptor = self._listed(path)
            try:
                return os.getxattr(descriptor, name)
            finally:
                os.close(descriptor)
        return b""

    def target(self, path: str) -> str | None:
        """Where a link leads, in its own words; None where it is none."""
        try:
            folder, name = self._parent(path)
            return os.readlink(name, dir_fd=folder)
        except OSError:
            return None

    def open(self, path: str) -> int:
        """A descriptor of a regular file, for reading. Raises OSError."""
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
        """The folder that a path is in, open until another is asked about, and its name there. Raises OSError."""
        folder, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "it is not a name", path)
        if not folder:
            return self._root, name
        if self._kept is None or self._kept[0] != folder:
            self._forget()
            self._kept = folder, self._passed(folder)
        return self._kept[1], name

    def _passed(self, folder: str) -> int:
        if self._openat2:
            return _openat2(self._root, folder)
        here = os.dup(self._root)
        try:
            for part in folder.split("/"):
                if part in ("", ".", ".."):
                    raise OSError(errno.EINVAL, "it is not a name", folder)
                inner = os.open(part, _PASSED, dir_fd=here)
                os.close(here)
                here = inner
        except BaseException:
            os.close(here)
            raise
        return here

    def _forget(self) -> None:
        if self._kept is not None:
            os.close(self._kept[1])
            self._kept = None


def _give_back(folder: int, name: str, mode: int) -> None:
    """Take the right to a file or folder of our own; never to what a link leads to."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISLNK(os.fstat(held).st_mode):
            os.chmod(f"/proc/self/fd/{held}", mode)
    finally:
        os.close(held)


def _openat2_here(root: int) -> bool:
    """Whether this kernel has the call, and lets us use it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(root, "."))
    except (OSError, ImportError):
        return False
    return True


def _openat2(root: int, folder: str) -> int:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    how = struct.pack("QQQ", _PASSED, 0, _NO_MAGIC_LINKS | _NO_LINKS | _BENEATH)
    number, size = ctypes.c_long(_OPENAT2), ctypes.c_size_t(len(how))
    found = libc.syscall(number, root, os.fsencode(folder), how, size)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    return found
