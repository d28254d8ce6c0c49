"""What an operating system says and does about files: errors as sentences, stamps, locks, syncs and attributes.

Descriptors are taken where a name could lead astray. A stamp is the whole of (modified, changed, size, inode), of which
the second cannot be set by hand. It is not believed of a file that changed shortly before it was read: the clock behind
it ticks too slowly to tell two writes apart. Where it is not believed the file is read, so that the content decides.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tui_agent.errors import FileError
from tui_agent.files.names import shown

Item = TypeVar("Item")
#: How many syncs are waited for at a time.
AT_ONCE = 16
_SENTENCES = {
    errno.ENOSPC: ("the disk is full", "free some space, then try again"),
    errno.EDQUOT: ("your disk quota is used up", "free some space, then try again"),
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


#: On macOS a plain sync leaves the bytes in the drive's cache, where a power cut takes them.
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
#: What copyfile(3) calls access control lists and extended attributes.
_ACL, _ATTRIBUTES = 1 << 0, 1 << 2
#: A file system that has no attributes, one that we may not write, one that is gone again.
_NOT_OURS = (
    errno.ENOTSUP,
    errno.EPERM,
    errno.EACCES,
    getattr(errno, "ENOATTR", errno.ENODATA),
    errno.ENODATA,
)


def sync(descriptor: int) -> None:
    """Wait until a file or a folder is on the disk itself. Raises OSError."""
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
        except OSError:
            pass  # a file system that cannot, a network mount say
    os.fsync(descriptor)


def several_at_once(work: Callable[[Item], object], items: Sequence[Item]) -> None:
    """Call `work` with each item, several at a time: a slow disk is waited for once and not for each of them.

    Raises what the first of them raised, when all have ended.
    """
    if len(items) < 2:
        for item in items:
            work(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(items), AT_ONCE)) as pool:
        for _ in pool.map(work, items):
            pass


#: Why such a file is asked about.
OTHER_NAMES = "it is a hard link: the other names of the file would keep the old text"


def has_other_names(path: Path) -> bool:
    """Whether it is a file that other names lead to as well (hard links): to replace it cuts this one off."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def wait_for_writers(descriptor: int, seconds: float) -> None:
    """Wait until nobody has the file open for writing, so long at the most; where the system does not tell, not at all.

    The descriptor is one for reading."""
    deadline = time.monotonic() + seconds
    while _is_written(descriptor) and time.monotonic() < deadline:
        time.sleep(0.002)


def _is_written(descriptor: int) -> bool:
    lease = getattr(fcntl, "F_SETLEASE", None)
    if lease is None:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # the usual one would end this process
        fcntl.fcntl(descriptor, lease, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, lease, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def copy_attributes(source: int, target: int) -> None:
    """Give one file the extended attributes (tags) and access control lists of another. Raises OSError.

    What the file system does not have, or we may not set, is left out.
    """
    if hasattr(os, "listxattr"):
        _copy_each(source, target)
    else:
        _copy_all(source, target)


def _copy_each(source: int, target: int) -> None:
    try:
        names = os.listxattr(source)
    except OSError as error:
        _pass_over(error)
        return
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            _pass_over(error)


def _copy_all(source: int, target: int) -> None:
    """By the C library of macOS, which Python has no function for."""
    import ctypes

    copy = getattr(ctypes.CDLL(None, use_errno=True), "fcopyfile", None)
    if copy is not None and copy(source, target, None, ctypes.c_uint32(_ACL | _ATTRIBUTES)) < 0:
        code = ctypes.get_errno()
        _pass_over(OSError(code, os.strerror(code)))


def _pass_over(error: OSError) -> None:
    if error.errno not in _NOT_OURS:
        raise error


def remove_folder(folder: str) -> None:
    """Remove it, also where folders in it are closed to us; a link is removed itself. Nothing there is no error.

    Raises OSError for what cannot be removed.
    """
    import shutil

    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
        return
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except PermissionError:
        _open_up(folder)
        shutil.rmtree(folder)


def _open_up(folder: str) -> None:
    """Give ourselves the right to every folder in it, each before it is looked into."""
    os.chmod(folder, 0o700)
    for inner, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(inner, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


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
