"""Error messages, stamps, locks, syncs and attributes of the operating system.

A stamp is not trusted if the file changed shortly before: file systems have coarse clocks. The content is
compared instead.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tui_agent.errors import FileError
from tui_agent.files.names import display_path

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_log = logging.getLogger(__name__)
Item = TypeVar("Item")
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
    errno.ESTALE: ("the network disk was disconnected", "mount it again"),
    errno.ENOTCONN: ("the network disk was disconnected", "mount it again"),
}


def sentence(error: OSError) -> tuple[str, str]:
    """Returns the reason why a system call failed, and advice."""
    code = error.errno or 0
    return _SENTENCES.get(code, (os.strerror(code) if code else str(error), "try again, or look at the file"))


def file_error(error: OSError, path: str | os.PathLike[str], doing: str) -> FileError:
    """`doing`: written, read, removed, …"""
    why, remedy = sentence(error)
    return FileError(f"{display_path(os.fspath(path))} could not be {doing}, {why}", remedy)


@contextmanager
def as_file_error(path: str | os.PathLike[str], doing: str) -> Generator[None]:
    """Raises `file_error` of an OSError."""
    try:
        yield
    except OSError as error:
        raise file_error(error, path, doing) from error


def read_start(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Without `most`, reads the whole file. Raises OSError, also for a pipe, a device or a folder; never
    blocks.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def home_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Without links; a path that does not exist if unknown."""
    return os.path.realpath(environ.get("HOME") or "/nonexistent")


#: Age in seconds from which a stamp is trusted.
SETTLED = 2.0

#: Modification and change time (which programs cannot set) in nanoseconds, size in bytes, inode.
Stamp = tuple[int, int, int, int]


def stamp_of(path: Path | str) -> Stamp | None:
    """Follows links. Returns None if missing."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def inode_of(path: Path | str) -> int:
    """Does not follow links. Returns 0 if missing."""
    try:
        return os.lstat(path).st_ino
    except (OSError, ValueError):
        return 0


def is_settled(stamp: Stamp) -> bool:
    """Whether any later change yields another stamp."""
    return time.time() - stamp[1] / 1e9 > SETTLED


#: Maximum wait for another writer, in seconds; a write takes milliseconds.
PATIENCE = 10.0
_PAUSE = 0.005
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_here = threading.RLock()


@contextmanager
def writing(folder: int) -> Generator[None]:
    """Locks the folder behind a descriptor. Raises FileError on timeout.

    Locks the folder itself: no lock file. Without lock support (some network mounts), excludes only
    threads of this process.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in _BUSY:
                break
        if time.monotonic() > deadline:
            raise FileError("another program has locked the folder", "end it, then try again")
        time.sleep(_PAUSE)
    try:
        with _here:
            yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)


#: On macOS fsync leaves data in the drive's cache.
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
_ACL, _ATTRIBUTES = 1 << 0, 1 << 2
_NOT_OURS = (
    errno.ENOTSUP,
    errno.EPERM,
    errno.EACCES,
    getattr(errno, "ENOATTR", errno.ENODATA),
    errno.ENODATA,
)


def sync(descriptor: int) -> None:
    """Raises OSError."""
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
        except OSError:
            pass
    os.fsync(descriptor)


def sync_and_close(descriptor: int) -> None:
    """Raises OSError."""
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def several_at_once(work: Callable[[Item], object], items: Sequence[Item]) -> None:
    """Calls concurrently, so that a slow disk's latency counts once. Raises the first exception after all
    have ended.
    """
    if len(items) < 2:
        for item in items:
            work(item)
        return
    waiting = iter(items)  # a future for each item would cost more than most calls
    failures: list[BaseException] = []

    def several() -> None:
        for item in waiting:
            try:
                work(item)
            except BaseException as error:
                _log.debug("one of several calls failed", exc_info=True)
                failures.append(error)

    # This thread works too, so that nested calls cannot wait for each other.
    helpers = [_helpers().submit(several) for _ in range(min(len(items), AT_ONCE) - 1)]
    several()
    for helper in helpers:
        if not helper.cancel():
            helper.result()
    if failures:
        raise failures[0]


def in_background(work: Callable[[], object]) -> Future[object]:
    return _helpers().submit(work)


@lru_cache(maxsize=1)
def _helpers() -> ThreadPoolExecutor:
    """Kept: starting a thread costs more than most calls."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(2 * AT_ONCE, thread_name_prefix="at once")


os.register_at_fork(after_in_child=_helpers.cache_clear)  # Threads are not copied.


#: Why replacing such a file needs permission.
OTHER_NAMES = "it is a hard link: the other names of the file would keep the old text"


def has_other_names(path: Path) -> bool:
    """Whether the file has hard links, which a replacement would detach."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def wait_for_writers(descriptor: int, seconds: float) -> None:
    """Waits until no process has the file open for writing; returns at once on systems without leases. The
    descriptor must be read-only.
    """
    lease = getattr(fcntl, "F_SETLEASE", None)
    deadline = time.monotonic() + seconds
    while lease is not None:
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # the default signal kills
            fcntl.fcntl(descriptor, lease, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, lease, fcntl.F_UNLCK)
            return
        except OSError as error:
            if error.errno != errno.EAGAIN or time.monotonic() >= deadline:
                return
        time.sleep(0.002)


def copy_attributes(source: int, target: int) -> None:
    """Copies extended attributes and access control lists, except unsupported and forbidden ones. Raises
    OSError.
    """
    if hasattr(os, "listxattr"):
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
    else:
        # Python has no equivalent
        import ctypes

        copy = getattr(ctypes.CDLL(None, use_errno=True), "fcopyfile", None)
        if copy is not None and copy(source, target, None, ctypes.c_uint32(_ACL | _ATTRIBUTES)) < 0:
            code = ctypes.get_errno()
            _pass_over(OSError(code, os.strerror(code)))


def _pass_over(error: OSError) -> None:
    if error.errno not in _NOT_OURS:
        raise error


def remove_folder(folder: str) -> None:
    """Removes a tree, also without permissions, or a link itself, if it exists. Raises OSError."""
    import shutil

    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
        return
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except PermissionError:
        os.chmod(folder, 0o700)
        for inner, names, _ in os.walk(folder):
            for name in names:
                path = os.path.join(inner, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(folder)


MOST_BYTES = 512 * 1024 * 1024
#: JSON beyond the recursion limit of Python's parser, below a thousand levels.
TOO_DEEP = "it is nested too deeply"
HALF_A_LETTER = "it contains a lone surrogate"


def read_given(path: Path) -> bytes:
    """Raises OSError, also for pipes and devices, which may be endless."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    data = read_start(path, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes", str(path))
    return data
