"""Whether a file may have changed, by the file system's word, so that it need not be read to find out.

The word is the whole of (modified, changed, size, inode), of which the second cannot be set by hand. It is not
believed of a file that changed shortly before it was read: the clock behind it ticks too slowly to tell two writes
apart. Where it is not believed the file is read, so that the content decides.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

#: A file that changed less than so many seconds before it was read is read again the next time.
SETTLED = 2.0

#: Modified and changed in nanoseconds, size in bytes, inode.
Stamp = tuple[int, int, int, int]


def stamp_of(path: Path | str) -> Stamp | None:
    """The stamp of what a path leads to; None where nothing does."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def inode_of(path: Path | str) -> int:
    """Which file a path is, not following links; 0 where there is none."""
    try:
        return os.lstat(path).st_ino
    except (OSError, ValueError):
        return 0


def is_settled(stamp: Stamp) -> bool:
    """Whether the last change lies so far back that a later one is sure to give another stamp."""
    return time.time() - stamp[1] / 1e9 > SETTLED
