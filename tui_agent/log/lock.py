"""A session is written by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from tui_agent.errors import NotKept, OpenElsewhere, SessionError
from tui_agent.files.names import shown
from tui_agent.files.numbers import whole_number
from tui_agent.files.private import make_private, open_private

NAME = "lock"
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


class SessionLock:
    """The right to write the session in `folder`, until `release` or the end of the process, however it ends."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: Path) -> SessionLock:
        """Take the lock; the folder is made if need be. Raises SessionError naming the process that has it."""
        try:
            make_private(folder)
            descriptor = open_private(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except OSError as error:
            raise _not_kept(folder, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = holder(folder)
            os.close(descriptor)
            raise (
                _open_elsewhere(folder, owner) if error.errno in _BUSY else _not_kept(folder, error)
            ) from error
        lock = cls(folder, descriptor)
        lock._sign()
        return lock

    def release(self) -> None:
        """Let others write. A second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _sign(self) -> None:
        """Leave our number for whoever is refused; the lock holds without it, on a full disk say."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)
        except OSError:
            pass


def holder(folder: Path) -> int:
    """The process that last took the lock, 0 where none is known."""
    try:
        return whole_number((folder / NAME).read_bytes()[:20])
    except OSError:
        return 0


def _open_elsewhere(folder: Path, owner: int) -> SessionError:
    who = f"process {owner}" if owner else "another process"
    return OpenElsewhere(
        f"the session {folder.name} is open in {who}",
        f"close it there, or continue a copy: `tui-agent sessions fork {folder.name}`",
        folder.name,
    )


def _not_kept(folder: Path, error: OSError) -> SessionError:
    why = error.strerror or str(error)
    return NotKept(
        f"no session can be kept in {shown(str(folder))} ({why})",
        "give write permission and free some space, or point TUI_AGENT_HOME to another folder",
    )
