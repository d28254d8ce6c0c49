"""New content beside its place: written under a temporary name, made durable, and moved over the old in one step."""

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
from tui_agent.files import systems
from tui_agent.files.gate import open_checked
from tui_agent.files.names import shown
from tui_agent.files.temporary import runs
from tui_agent.files.walk import Spot

_TEMPORARY = re.compile(r"\.tui-agent-(\d+)-[0-9a-f]{16}\.tmp")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
#: The names of temporaries of this process that could not be removed when it was done with them.
_left: set[str] = set()
#: By how much the clock may have been set since the machine was started, in seconds.
_CLOCK_SET = 60.0


class FileFound(Struct, frozen=True):
    """What lies at a spot: its hash (empty: nothing) and its status at that moment."""

    md5: str
    status: os.stat_result | None = None


def temporary_name() -> str:
    """A name that nobody guesses, which says whose it is and which process made it."""
    return f".tui-agent-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a name (without folders) is one of ours for content on its way: no index should list it."""
    return _TEMPORARY.fullmatch(name) is not None


def look(spot: Spot) -> FileFound:
    """Hash what lies at a spot now, not when the spot was found. Raises PathRefused, FileError, OSError."""
    spot.status = _status(spot)
    if spot.status is None:
        return FileFound("")
    descriptor = open_checked(spot)
    try:
        digest = hashlib.md5(usedforsecurity=False)
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
        return FileFound(digest.hexdigest(), os.fstat(descriptor))
    finally:
        os.close(descriptor)


def content(spot: Spot) -> bytes:
    """The bytes of the file at a spot. Raises like `look`."""
    with os.fdopen(open_checked(spot), "rb") as file:
        return file.read()


def stage(
    spot: Spot,
    temporary: str,
    data: bytes,
    like: os.stat_result | None,
    mode: int | None,
    *,
    sync: bool = True,
    source: Spot | None = None,
    executable: bool | None = None,
) -> None:
    """Write `data` under `temporary` in the spot's folder, durably with `sync`; nothing stays of it on failure.

    Permissions, owner and extended attributes are taken from the file at the spot, whose status is `like`;
    `source` is another file that they are taken from, for one that moves. `mode` (permission bits) overrides;
    `executable` then sets or clears the bits of those who may read it. Raises OSError.
    """
    known = like is not None or mode is not None or (source is not None and source.status is not None)
    descriptor = os.open(temporary, _WRITE, 0o600 if known else 0o666, dir_fd=spot.folder)
    try:
        try:
            _write_all(descriptor, data)
            if like is not None:
                _take_after(spot, descriptor, like)
            elif source is not None and source.status is not None:
                _take_after(source, descriptor, source.status)
            if mode is not None:
                os.fchmod(descriptor, mode)
            if executable is not None:
                os.fchmod(descriptor, with_execution(stat.S_IMODE(os.fstat(descriptor).st_mode), executable))
            if sync:
                systems.sync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard(spot.folder, temporary)
        raise


def with_execution(mode: int, executable: bool) -> int:
    """Permission bits with execution for everybody who may read, or for nobody."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def keep_aside(spot: Spot, aside: str) -> None:
    """Give the file at a spot another name, under which it stays when it is replaced; not where the file system has
    no hard links."""
    discard(spot.folder, aside)
    with suppress(OSError):
        os.link(spot.name, aside, src_dir_fd=spot.folder, dst_dir_fd=spot.folder, follow_symlinks=False)


def put_back(spot: Spot, aside: str, seen: FileFound) -> bool:
    """Give the file that was kept aside its place again, whatever was written into it since; False where there is
    none. Raises Outdated, OSError."""
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


def land(spot: Spot, temporary: str, seen: FileFound, *, sync: bool = True) -> None:
    """Move staged content to its place, if that still is as it was `seen`; durable on return with `sync`.

    Raises Outdated, and leaves the temporary where it is, if it is not.
    """
    check_unmoved(spot, seen)
    if seen.status is None:
        _land_new(spot, temporary)
    else:
        os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    if sync:
        sync_folder(spot.folder)


def sync_staged(spot: Spot, temporary: str) -> None:
    """Make durable what was staged without that."""
    descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.folder)
    try:
        systems.sync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(spot: Spot) -> None:
    """Make the content at a spot durable."""
    descriptor = open_checked(spot)
    try:
        systems.sync(descriptor)
    finally:
        os.close(descriptor)


def remove(spot: Spot, seen: FileFound, *, sync: bool = True) -> None:
    """Remove the file at a spot, if it still is as it was `seen`; durable on return with `sync`."""
    check_unmoved(spot, seen)
    os.unlink(spot.name, dir_fd=spot.folder)
    if sync:
        sync_folder(spot.folder)


def check_unmoved(spot: Spot, seen: FileFound) -> None:
    """Raise Outdated unless the spot is as it was `seen`: by its status, and where that moved, by its hash."""
    status = _status(spot)
    if _identity(status) == _identity(seen.status):
        return
    if look(spot).md5 != seen.md5:
        raise Outdated(
            f"{shown(spot.path)} was changed while it was about to be written", "look at it and try again"
        )


def check_writable(spot: Spot) -> None:
    """Raise FileError for a file that its owner protected from writing: a rename would not mind."""
    if spot.status is not None and not spot.status.st_mode & 0o222:
        raise FileError(
            f"{shown(spot.path)} is write-protected", f"allow it with `chmod u+w {shown(spot.path)}`"
        )


def discard(folder: int, temporary: str) -> bool:
    """Remove a temporary, which may be gone already; whether it was there."""
    try:
        os.unlink(temporary, dir_fd=folder)
    except FileNotFoundError:
        return False
    except OSError:
        _left.add(temporary)  # the next writer here sweeps it
        return False
    _left.discard(temporary)
    return True


def sweep(folder: int) -> None:
    """Remove the temporaries in a folder that this process could not remove, or whose process died before it could,
    or was ended by a power cut."""
    for name in os.listdir(folder):
        match = _TEMPORARY.fullmatch(name)
        if match and (name in _left or not runs(match[1]) or _is_from_before_the_start(folder, name)):
            discard(folder, name)


def _is_from_before_the_start(folder: int, name: str) -> bool:
    """Whether a file is older than the machine is up: the number of its process is another's by now."""
    uptime = getattr(time, "CLOCK_BOOTTIME", None)
    if uptime is None:
        return False
    try:
        written = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:
        return False
    return written < time.time() - time.clock_gettime(uptime) - _CLOCK_SET


def sync_folder(folder: int) -> None:
    """Make renames in a folder durable, on file systems that know how."""
    try:
        systems.sync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


@contextmanager
def made_parents(spot: Spot) -> Generator[None]:
    """Make the missing folders of a spot; they go again if what follows fails and they are empty."""
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
    """Remove nested empty folders below the descriptor `top`, the innermost first; one that is used stays."""
    for depth in range(len(names), 0, -1):
        try:
            os.rmdir("/".join(names[:depth]), dir_fd=top)
        except FileNotFoundError:
            continue  # it did not get that far
        except OSError:
            return


def _land_new(spot: Spot, temporary: str) -> None:
    """Make the name appear only if nobody else has it: a link fails where a rename would overwrite."""
    try:
        os.link(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    except FileExistsError as error:
        raise Outdated(
            f"{shown(spot.path)} was made by somebody else meanwhile", "look at it first"
        ) from error
    except OSError:
        os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)  # no hard links here
    else:
        discard(spot.folder, temporary)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _take_after(spot: Spot, descriptor: int, like: os.stat_result) -> None:
    """Give a new file the owner, attributes and permissions of the one it replaces; owner first, it clears bits."""
    now = os.fstat(descriptor)
    for user, group in ((like.st_uid, -1), (-1, like.st_gid)):
        if user not in (-1, now.st_uid) or group not in (-1, now.st_gid):
            try:
                os.fchown(descriptor, user, group)
            except PermissionError:
                pass  # only root gives files away: it becomes ours, as with any editor
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
    source = open_checked(spot)
    try:
        systems.copy_attributes(source, descriptor)
    finally:
        os.close(source)


def _status(spot: Spot) -> os.stat_result | None:
    try:
        return os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _identity(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
