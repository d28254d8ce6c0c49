"""Staged writes: a temporary file next to the target, synced, and renamed over it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from msgspec import Struct

from tui_agent.errors import FileError, Outdated
from tui_agent.files import operating_system
from tui_agent.files.gate import PathHandle, open_checked
from tui_agent.files.names import display_path
from tui_agent.files.private import runs

_TEMPORARY = re.compile(r"\.tui-agent-(\d+)-[0-9a-f]{16}\.tmp")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_left: set[str] = set()
#: Tolerance for clock changes since boot, in seconds.
_CLOCK_SET = 60.0


class FileState(Struct, frozen=True):
    md5: str
    status: os.stat_result | None = None


def temporary_name() -> str:
    """Unpredictable."""
    return f".tui-agent-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def read_state(spot: PathHandle) -> FileState:
    """Raises PathRefused, FileError, OSError."""
    spot.status = _status(spot)
    if spot.status is None:
        return FileState("")
    descriptor = open_checked(spot)
    try:
        digest = hashlib.md5(usedforsecurity=False)
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
        return FileState(digest.hexdigest(), os.fstat(descriptor))
    finally:
        os.close(descriptor)


def content(spot: PathHandle) -> bytes:
    """Raises as `read_state` does."""
    with os.fdopen(open_checked(spot), "rb") as file:
        return file.read()


def stage(
    spot: PathHandle,
    temporary: str,
    data: bytes,
    like: os.stat_result | None,
    mode: int | None,
    *,
    sync: bool = True,
    source: PathHandle | None = None,
    executable: bool | None = None,
) -> None:
    """Writes `data` to `temporary`, durably with `sync`; removes it on failure. Raises OSError.

    Copies permissions, owner and extended attributes of the file at the spot (status `like`), or of
    `source` for a moved file. `mode` (permission bits) overrides them; `executable` then sets or clears
    execution for all readers.
    """
    known = like is not None or mode is not None or (source is not None and source.status is not None)
    descriptor = os.open(temporary, _WRITE, 0o600 if known else 0o666, dir_fd=spot.folder)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if like is not None:
                _take_after(spot, descriptor, like)
            elif source is not None and source.status is not None:
                _take_after(source, descriptor, source.status)
            if mode is not None:
                os.fchmod(descriptor, mode)
            if executable is not None:
                os.fchmod(descriptor, with_execution(stat.S_IMODE(os.fstat(descriptor).st_mode), executable))
            if sync:
                operating_system.sync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard(spot.folder, temporary)
        raise


def with_execution(mode: int, executable: bool) -> int:
    """Allows or forbids execution to all who may read."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def set_aside(spot: PathHandle, aside: str) -> None:
    """Preserves the old file by a hard link during its replacement, if supported."""
    discard(spot.folder, aside)
    with suppress(OSError):
        os.link(spot.name, aside, src_dir_fd=spot.folder, dst_dir_fd=spot.folder, follow_symlinks=False)


def restore_aside(spot: PathHandle, aside: str, seen: FileState) -> bool:
    """Restores the preserved file with later writes; False if missing. Raises Outdated, OSError."""
    try:
        status = os.stat(aside, dir_fd=spot.folder, follow_symlinks=False)
    except (FileNotFoundError, ValueError):
        return False
    if not aside or not stat.S_ISREG(status.st_mode):
        return False
    check_unmoved(spot, seen)
    os.rename(aside, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    sync_folder(spot.folder)
    return True


def rename_into_place(spot: PathHandle, temporary: str, seen: FileState, *, sync: bool = True) -> None:
    """Replaces the spot, durably with `sync`. Raises Outdated and keeps the temporary file if it changed
    since `seen`.
    """
    check_unmoved(spot, seen)
    if seen.status is None:
        # A link fails if the name exists; a rename overwrites it.
        try:
            os.link(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        except FileExistsError as error:
            raise Outdated(
                f"{display_path(spot.path)} was created by another program", "check it first"
            ) from error
        except OSError:
            os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        else:
            discard(spot.folder, temporary)
    else:
        os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    if sync:
        sync_folder(spot.folder)


def sync_staged(folder: int, temporary: str) -> None:
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    operating_system.sync_and_close(os.open(temporary, how, dir_fd=folder))


def remove(spot: PathHandle, seen: FileState, *, sync: bool = True) -> None:
    """Raises Outdated if it changed since `seen`. Durable with `sync`."""
    check_unmoved(spot, seen)
    os.unlink(spot.name, dir_fd=spot.folder)
    if sync:
        sync_folder(spot.folder)


def check_unmoved(spot: PathHandle, seen: FileState) -> None:
    """Raises Outdated unless the spot's status or else its hash equals `seen`."""
    status = _status(spot)
    if _identity(status) == _identity(seen.status):
        return
    if read_state(spot).md5 != seen.md5:
        raise Outdated(
            f"{display_path(spot.path)} was changed while it was about to be written",
            "check the file and try again",
        )


def check_writable(spot: PathHandle) -> None:
    """Raises FileError for a read-only file, which a rename would replace."""
    if spot.status is not None and not spot.status.st_mode & 0o222:
        raise FileError(
            f"{display_path(spot.path)} is write-protected",
            f"allow it with `chmod u+w {display_path(spot.path)}`",
        )


def discard(folder: int, temporary: str) -> bool:
    try:
        os.unlink(temporary, dir_fd=folder)
    except FileNotFoundError:
        return False
    except OSError:
        _left.add(temporary)
        return False
    _left.discard(temporary)
    return True


def sweep(folder: int) -> None:
    """Removes temporary files of this process, of dead processes, and from before a reboot."""
    uptime = getattr(time, "CLOCK_BOOTTIME", None)
    started = time.time() - time.clock_gettime(uptime) - _CLOCK_SET if uptime is not None else float("-inf")
    for name in os.listdir(folder):
        match = _TEMPORARY.fullmatch(name)
        if not match:
            continue
        old = name in _left or not runs(match[1])
        if not old:
            with suppress(OSError):
                old = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < started
        if old:
            discard(folder, name)


def sync_folder(folder: int) -> None:
    try:
        operating_system.sync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


@contextmanager
def made_parents(spot: PathHandle) -> Generator[None]:
    """Creates missing folders of a spot; on failure removes them if empty."""
    top, missing = os.dup(spot.folder), spot.missing[:-1]
    try:
        spot.make_parents()
        yield
    except BaseException:
        remove_folders(top, missing)
        raise
    finally:
        os.close(top)


def remove_folders(top: int, names: tuple[str, ...]) -> None:
    """Removes nested empty folders below the descriptor `top`, innermost first."""
    for depth in range(len(names), 0, -1):
        try:
            os.rmdir("/".join(names[:depth]), dir_fd=top)
        except FileNotFoundError:
            continue
        except OSError:
            return


def _take_after(spot: PathHandle, descriptor: int, like: os.stat_result) -> None:
    """Copies the owner first: it clears permission bits."""
    now = os.fstat(descriptor)
    for user, group in ((like.st_uid, -1), (-1, like.st_gid)):
        if user not in (-1, now.st_uid) or group not in (-1, now.st_gid):
            try:
                os.fchown(descriptor, user, group)
            except PermissionError:
                pass  # not root: the file becomes ours, as with any editor
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
    source = open_checked(spot)
    try:
        operating_system.copy_attributes(source, descriptor)
    finally:
        os.close(source)


def _status(spot: PathHandle) -> os.stat_result | None:
    try:
        return os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _identity(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
