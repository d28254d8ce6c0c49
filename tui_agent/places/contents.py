"""Contents of a place: files that git does not ignore, with pending changes, and without secrets."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tui_agent.sandbox.view_plan import Seed

#: Nanoseconds within which a file can change twice and keep its times.
RACY = 20_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

#: Equal for equal contents: times and numbers of a file on disk, or the hash of a text.
Identity = tuple[int, ...] | str


class Item(NamedTuple):
    """A file or link. `content` is None for a file as on disk; `target` is of a link."""

    identity: Identity
    mode: int
    mtime: int
    content: bytes | None = None
    target: str = ""


class Contents(NamedTuple):
    """Items by path, in `root`; `left` are paths that cannot be sent. `key` is equal for equal contents."""

    root: str
    items: Mapping[str, Item]
    seeds: Sequence[Seed]
    key: str
    left: tuple[str, ...] = ()


def contents_of(root: str, paths: Iterable[str], seeds: Sequence[Seed]) -> Contents:
    """Returns the folder's state on disk at `paths`, replaced by `seeds`. Blocking."""
    items: dict[str, Item] = {}
    left: list[str] = []
    now = time.time_ns()
    for path in paths:
        if not can_travel(path):
            left.append(path)
        elif (item := _on_disk(root, path, now)) is not None:
            items[path] = item
    for seed in seeds:
        if seed.overlay not in ("", root) or seed.kind == "owned":
            continue
        there = items.get(seed.path)
        if seed.kind == "gone" or not can_travel(seed.path):
            items.pop(seed.path, None)
        elif seed.kind == "file" or there is not None:  # A hidden file that is not sent needs no replacement.
            mode = there.mode if there and seed.mode is None else seed.mode or 0o644
            digest = hashlib.sha256(seed.content).hexdigest()
            items[seed.path] = Item(digest, mode & 0o777, now, seed.content)
    lines = "".join([f"{path}\0{items[path][0]}\0{items[path][1]}\n" for path in sorted(items)])
    key = hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()
    return Contents(root, items, seeds, key, tuple(left))


def can_travel(path: str) -> bool:
    if "\n" in path:
        return False
    return (".git" not in path and ".." not in path) or not {".git", ".."} & {*path.split("/")}


def _on_disk(root: str, path: str, now: int) -> Item | None:
    try:
        status = os.lstat(f"{root}/{path}")
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(f"{root}/{path}")
            if target.startswith(f"{root}/"):
                target = os.path.relpath(target, os.path.dirname(f"{root}/{path}"))
            return Item(f"link {target}", 0o777, status.st_mtime_ns, None, target)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Item(identity_of(status, now), stat.S_IMODE(status.st_mode) & 0o777, status.st_mtime_ns)


def identity_of(status: os.stat_result, now: int) -> Identity:
    found = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return (*found, secrets.randbits(63)) if now - status.st_ctime_ns < RACY else found


def read_item(root: str, path: str, item: Item) -> tuple[bytes, Identity] | None:
    """Returns a file's bytes and the identity of the version that was read; None if it is gone."""
    if item.content is not None:
        return item.content, item.identity
    try:
        descriptor = os.open(f"{root}/{path}", _READ)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        parts = [os.read(descriptor, status.st_size + 1)]
        while len(parts[-1]) > 0 and sum(map(len, parts)) != status.st_size:  # It is large, or grows.
            parts.append(os.read(descriptor, 1 << 24))
        return b"".join(parts), identity_of(status, time.time_ns())
    finally:
        os.close(descriptor)


def folders_of(paths: Iterable[str]) -> set[str]:
    """Includes ""."""
    found = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def later(mtime: int, before: int | None) -> int:
    """At least a second after the earlier time: build tools and caches of bytecode compare whole seconds."""
    if before is None:
        return mtime
    return max(time.time_ns(), (before // 1_000_000_000 + 1) * 1_000_000_000)


def tar_stream(contents: Contents, wanted: Mapping[str, int], read: dict[str, Identity]) -> Iterator[bytes]:
    """Yields an archive of the `wanted` paths, with their times; `read` receives the identity of each.
    Blocking.
    """
    for path, mtime in wanted.items():
        item = contents.items[path]
        if item.target:
            read[path] = item.identity
            yield _header(path, 0o777, 0, mtime, item.target)
            continue
        found = read_item(contents.root, path, item)
        if found is None:
            continue
        data, read[path] = found
        yield _header(path, item.mode | 0o200, len(data), mtime)
        yield data + bytes(-len(data) % 512)
    yield bytes(1024)


#: The parts of the header of a file in an archive (GNU tar) that are the same for all.
_OWNERS, _END = b"0000000\x000000000\0", b"0" + bytes(100) + b"ustar  \0" + bytes(64 + 16 + 155 + 12)
_SUM = sum(_OWNERS) + sum(_END) + 8 * ord(" ")


def _header(path: str, mode: int, size: int, mtime: int, target: str = "") -> bytes:
    """What `tarfile` makes in ten times the time; it makes those of links, long names and very large files."""
    name, seconds = f"./{path}".encode("utf-8", "surrogateescape"), mtime // 1_000_000_000
    if target or len(name) > 100 or size >= 8**11 or not 0 <= seconds < 8**11:
        import tarfile

        info = tarfile.TarInfo(f"./{path}")
        info.mtime, info.mode, info.size = seconds, mode, size
        if target:
            info.type, info.linkname = tarfile.SYMTYPE, target
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    first, last = b"%07o\0" % mode, b"%011o\0%011o\0" % (size, seconds)
    total = _SUM + sum(name) + sum(first) + sum(last)
    return b"".join((name.ljust(100, b"\0"), first, _OWNERS, last, b"%06o\0 " % total, _END))
