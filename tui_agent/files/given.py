"""Files that a person names on the command line: read whole, but never waited for and never endless."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

#: Larger than any export of a session or recording that could be held in memory with ease.
MOST_BYTES = 512 * 1024 * 1024
#: Of JSON that Python's own reader gives up on, which it does below a thousand levels.
TOO_DEEP = "it is nested too deeply"
#: Of JSON with the escape of half a surrogate pair, which no text can hold.
HALF_A_LETTER = "it holds half of a letter (a lone surrogate)"


def read_given(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file. Raises OSError, also for a pipe or a device, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data
