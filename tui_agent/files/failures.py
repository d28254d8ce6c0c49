"""What the operating system refused, as a sentence for the person."""

from __future__ import annotations

import errno
import os

from tui_agent.errors import FileError
from tui_agent.files.names import shown

_SENTENCES = {
    errno.ENOSPC: ("the disk is full", "make room, then try again"),
    errno.EDQUOT: ("your quota on the disk is used up", "make room, then try again"),
    errno.EROFS: ("the file system is read-only", "mount it writable, or work on a copy"),
    errno.EACCES: ("permission was denied", "change its permissions or its owner"),
    errno.EPERM: ("the operation is not permitted", "change its permissions or its owner"),
    errno.ENOENT: ("it does not exist", "check the name"),
    errno.EISDIR: ("it is a folder", "name a file"),
    errno.ENOTDIR: ("a part of its path is not a folder", "check the path"),
    errno.ENAMETOOLONG: ("its name is too long", "choose a shorter one"),
    errno.EMFILE: ("too many files are open", "close some, or raise the limit with `ulimit -n`"),
    errno.EIO: ("the disk reported an error", "check the disk"),
}


def sentence(error: OSError) -> tuple[str, str]:
    """Why a system call failed, and what to do about it."""
    code = error.errno or 0
    return _SENTENCES.get(code, (os.strerror(code) if code else str(error), "try again, or look at the file"))


def file_error(error: OSError, path: str | os.PathLike[str], doing: str) -> FileError:
    """The error for a path on which `doing` (written, read, removed, …) failed."""
    why, remedy = sentence(error)
    return FileError(f"{shown(os.fspath(path))} could not be {doing}, {why}", remedy)
