"""One writer at a time in a folder: between threads, and between processes that go through here."""

from __future__ import annotations

import errno
import fcntl
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from tui_agent.errors import FileError

#: How long to wait for another writer, in seconds; a write takes milliseconds.
PATIENCE = 10.0
_PAUSE = 0.005
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_here = threading.RLock()


@contextmanager
def writing(*folders: int) -> Generator[None]:
    """Hold the folders behind these descriptors. Raises FileError when another program does not let go.

    The lock is on the open folder itself, so that no lock file ever lies in a workspace. Where the file system
    has no such locks (some network mounts), threads of this process still exclude each other.
    """
    for folder in folders:
        _lock(folder)
    try:
        with _here:
            yield
    finally:
        for folder in folders:
            _unlock(folder)


def _lock(folder: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _BUSY:
                return None
        if time.monotonic() > deadline:
            raise FileError("another program holds the folder locked", "end it, then try again")
        time.sleep(_PAUSE)


def _unlock(folder: int) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_UN)
    except OSError:
        pass  # it never was locked, or is gone
