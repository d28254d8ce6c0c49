"""Lock that restricts the writing of a session to one process."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from tui_agent.errors import NotKept, OpenElsewhere, SessionError
from tui_agent.files.names import display_path
from tui_agent.files.numbers import whole_number
from tui_agent.files.private import make_private, open_private

NAME = "lock"
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


class SessionLock:
    """Exclusive right to write the session in `folder`, until `release` or the exit of the process."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: Path) -> SessionLock:
        """Acquire the lock; creates the folder if missing. Raises SessionError that names the owning
        process."""
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
        """Release the lock. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _sign(self) -> None:
        """Store our process id for error messages of other processes. The lock holds without it, for example
        on a full disk."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)
        except OSError:
            pass


def holder(folder: Path) -> int:
    """The last owner's process id, or 0 if unknown."""
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
        f"no session can be kept in {display_path(str(folder))} ({why})",
        "give write permission and free some space, or point TUI_AGENT_HOME to another folder",
    )
