"""Files and folders for this user alone, whatever the umask says: all that tui-agent keeps goes through here.

In a workspace and in a folder that the person named, folders keep the rights that they have; ours are tightened where
an older version, or a home that was made by hand, left them open.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from tui_agent.files import systems

FILE_MODE, FOLDER_MODE = 0o600, 0o700
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: Path | str) -> None:
    """Make a folder of ours, and those above it that are missing, with the rights 0700.

    One that is there is closed to others, those above it are left as they are. Raises OSError.
    """
    folder = Path(folder)
    try:
        status = folder.stat()
    except FileNotFoundError:
        _make(folder)
        return
    if status.st_uid == os.geteuid() and status.st_mode & _OPEN_TO_OTHERS:
        folder.chmod(FOLDER_MODE)


def open_private(path: Path | str, flags: int) -> int:
    """A descriptor of a file of ours with the rights 0600, made where `flags` hold `O_CREAT`.

    What is not a regular file (a pipe that a recording goes to, say) keeps its rights. Raises OSError.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_private(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replace a file of ours whole, or not at all, on disk on return; its folder is made. Raises OSError.

    Without `sync` a kill leaves the old or the new, but a power cut may leave neither.
    """
    make_private(path.parent)
    replace_private(path, content, sync=sync)


def replace_private(path: Path, content: bytes, *, sync: bool = True) -> None:
    """The same in a folder that is there, and may be one that the person named. Raises OSError."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if sync:
                systems.sync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def sync_new(*paths: Path) -> None:
    """Make files durable that were put where there were none, content and name at once; until it returns a power cut
    may leave names without their contents. Raises OSError.
    """
    systems.several_at_once(_sync, list(dict.fromkeys([*paths, *(path.parent for path in paths)])))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        systems.sync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        systems.sync(descriptor)
    finally:
        os.close(descriptor)


def _make(folder: Path) -> None:
    if not folder.parent.exists():
        _make(folder.parent)
    with suppress(FileExistsError):  # somebody was faster
        folder.mkdir(mode=FOLDER_MODE)
        folder.chmod(FOLDER_MODE)  # a strict umask would shut us out of it
