"""Reading and writing the small files of a configuration, without following a link out of a workspace."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

#: Nobody writes a configuration larger than this by hand.
MAX_BYTES = 1_048_576
#: The folder in which a workspace brings settings, prompts, keys and themes of its own.
WORKSPACE_FOLDER = ".tui-agent"


def read_small(path: Path) -> bytes:
    """The bytes of a regular file of at most `MAX_BYTES`. Raises OSError, FileNotFoundError where it is missing."""
    return _read(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path)


def read_beneath(folder: Path, *parts: str) -> bytes:
    """Like `read_small` for a file below a folder, refusing a link at every step below it. Raises OSError."""
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
    """A file of a configuration below `folder`: in the folder that a workspace brings no link is followed.

    Raises OSError.
    """
    if folder.name == WORKSPACE_FOLDER:
        return read_beneath(folder.parent, folder.name, *parts)
    return read_small(folder.joinpath(*parts))


def reason_of(error: OSError) -> str:
    """Why a file could not be used, in a few words without its path."""
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
