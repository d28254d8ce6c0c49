"""Reads and writes small configuration files without following links out of a workspace."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

#: Maximum size of a configuration file, in bytes.
MAX_BYTES = 1_048_576
#: Folder of a workspace's own settings, prompts, keys and themes.
WORKSPACE_FOLDER = ".tui-agent"


def read_small(path: Path) -> bytes:
    """Reads a regular file of at most `MAX_BYTES`. Raises OSError, FileNotFoundError if it is missing."""
    return _read(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path)


def read_beneath(folder: Path, *parts: str) -> bytes:
    """Like `read_small` for a file below `folder`, but rejects symbolic links at every level. Raises
    OSError."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            os.close(opened)
            opened = below
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        return _read(os.open(parts[-1], flags, dir_fd=opened), folder.joinpath(*parts))
    finally:
        os.close(opened)


def read_own(folder: Path, *parts: str) -> bytes:
    """Reads a configuration file below `folder`. Rejects symbolic links inside a workspace's own folder.

    Raises OSError.
    """
    if folder.name == WORKSPACE_FOLDER:
        return read_beneath(folder.parent, folder.name, *parts)
    return read_small(folder.joinpath(*parts))


def reason_of(error: OSError) -> str:
    """The reason of an I/O error in a few words, without the path."""
    return (error.strerror or str(error)).lower()


def _read(descriptor: int, path: Path) -> bytes:
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if found.st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"larger than {MAX_BYTES} bytes", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES)
    finally:
        os.close(descriptor)
