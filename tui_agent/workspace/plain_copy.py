"""A plain copy of the files of a folder, for where git has none: shared blocks where the file system can."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.errors import FileError, Interrupted
from tui_agent.files.private import make_private
from tui_agent.files.systems import remove_folder, sentence

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: Linux's request to let a file have the blocks of another, until one of them is written.
_FICLONE = 0x40049409


def copy_paths(root: Path, folder: Path, paths: Sequence[str], stop: threading.Event) -> None:
    """Copy the files and links at these paths below `root` (resolved) into a new folder. Blocking.

    A link is kept where it points inside; links that lead out, and what is neither, are left out, as is what went
    meanwhile. Raises FileError where it fails and Interrupted where `stop` is set, with nothing left.
    """
    try:
        make_private(folder.parent)
        os.mkdir(folder, mode=0o700)
        copying = _Copying(str(root), str(folder))
        for path in paths:
            if stop.is_set():
                raise Interrupted("The copy of the folder was stopped", "make it again")
            copying.take(path)
    except FileExistsError as error:
        raise FileError(f"The work copy {folder} is there already", "remove it first") from error
    except (OSError, Interrupted) as error:
        with suppress(OSError):  # what went wrong first is what is told
            remove_folder(str(folder))
        if isinstance(error, Interrupted):
            raise
        why, remedy = sentence(error)
        raise FileError(f"The work copy {folder} could not be made, {why}", remedy) from error


class _Copying:
    """One copy on its way; it knows which folders were made, and which are not to be gone into."""

    def __init__(self, root: str, target: str) -> None:
        self._root = root
        self._target = target
        self._folders: dict[str, bool] = {"": True}

    def take(self, path: str) -> None:
        if not self._stands(os.path.dirname(path)):
            return
        source, target = os.path.join(self._root, path), os.path.join(self._target, path)
        try:
            status = os.lstat(source)
            if stat.S_ISLNK(status.st_mode):
                self._link(source, target)
            elif stat.S_ISREG(status.st_mode):
                _copy(source, target)
        except FileNotFoundError:
            return  # it went while we copied

    def _stands(self, folder: str) -> bool:
        """Make a folder like the one that it copies, if that is a folder of the root's own and no link."""
        if folder in self._folders:
            return self._folders[folder]
        own = self._stands(os.path.dirname(folder))
        if own:
            try:
                own = stat.S_ISDIR(os.lstat(os.path.join(self._root, folder)).st_mode)
            except OSError:
                own = False
        if own:
            os.mkdir(os.path.join(self._target, folder))
        self._folders[folder] = own
        return own

    def _link(self, source: str, target: str) -> None:
        """The same link in the copy, if it leads to what the copy may hold too."""
        end = os.path.realpath(source)
        if os.path.commonpath([end, self._root]) != self._root:
            return
        there = os.readlink(source)
        if os.path.isabs(there):
            there = os.path.relpath(end, os.path.dirname(source))
        os.symlink(there, target)


def _copy(source: str, target: str) -> None:
    """Content and permission bits. Raises OSError."""
    descriptor = os.open(source, _READ)
    with os.fdopen(descriptor, "rb") as given, open(target, "xb") as taken:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return
        if not _clone(taken.fileno(), descriptor):
            shutil.copyfileobj(given, taken, 1 << 20)
        os.fchmod(taken.fileno(), stat.S_IMODE(status.st_mode))


def _clone(target: int, source: int) -> bool:
    """Whether the file system could share the blocks."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True
