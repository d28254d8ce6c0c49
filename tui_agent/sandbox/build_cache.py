"""Caches of builds and linters between runs: a layer on disk between the folder and a view's own layer.

It contains only listed folders, and only writes of commands that ran without pending changes, without
network, and without touching other files of the folder. Such commands see real file times, so build tools
work incrementally; pending files in later views are newer than the layer. Changes that tools cannot
detect discard the layer: a changed file without a newer time, a build by another program, other hidden
files, or other variables.

One program at a time merges the writes of exited commands; an incomplete merge discards the layer.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import marshal
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tui_agent.files.lazy_regex import late
from tui_agent.files.operating_system import read_start
from tui_agent.sandbox.view_plan import Seed, ViewPlan

#: Kept if they contain no files of the user.
ALWAYS: Final = (".mypy_cache", ".pytest_cache", ".ruff_cache", ".next", ".nuxt", ".svelte-kit", ".turbo", ".gradle",
                 ".parcel-cache", ".angular", "node_modules/.cache")  # fmt: skip
#: Kept if git ignores them or they contain a tool's marker file.
MARKED: Final = ("target", "build", "_build", "builddir", "cmake-build-debug", "cmake-build-release")
_MARKS: Final = ("CACHEDIR.TAG", "CMakeCache.txt", "build.ninja")
#: Builds do not read these.
_HARMLESS: Final = frozenset({".git", "__pycache__", ".tui-agent-report.xml", ".coverage"})
MOST_FILES, MOST_ENTRIES, DEEPEST = 50_000, 100_000, 100
_OPAQUE: Final = "user.overlay.opaque"
_DELETED: Final = "user.overlay.whiteout"
_FORM: Final = 1
_MAKES_FOLDER = late(
    r"(?:\bmkdir|-d)\s{1,20}['\"]?(?:\./)?(?:"
    + "|".join(map(re.escape, (*ALWAYS, *MARKED)))
    + r")/?(?![\w./-])"
)

_Identity = tuple[int, int, int]


class _LayerInfo(NamedTuple):
    """Start and end of the last merged run (ns), and each file's state then."""

    key: str
    began: int
    ended: int
    names: tuple[str, ...]
    files: dict[str, _Identity]


class _NotCacheable(Exception):
    """The written files cannot be kept."""


class KeptLayer:
    """The layer of one workspace. All methods block."""

    def __init__(self, parent: Path, root: str, most: int) -> None:
        """`most` is in bytes; 0 disables the layer."""
        self._root, self._most = root, most
        self._folder = parent / hashlib.sha256(os.fsencode(root)).hexdigest()[:24]

    def borrow(self, key: str, paths: Sequence[str], *, clean: bool, command: str) -> BorrowedLayer | None:
        """Returns the layer for one view, without an outdated one. None while another program merges, or if
        the folder or command is unsuitable.

        `key`: a change discards the layer. `paths`: the workspace's files. `clean`: nothing is pending,
        so writes may be kept.
        """
        if not self._most or len(paths) > MOST_FILES or _MAKES_FOLDER.search(command):
            return None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        tops = {path.partition("/")[0] for path in paths}
        free = [
            name
            for name in (*ALWAYS, *MARKED)
            if not (
                name.partition("/")[0] in tops
                and any(path.startswith(f"{name}/") or path == name for path in paths)
            )
            and not _through_link(self._root, name)
        ]
        known = self._stored_info()
        if known is not None and not (known.key == key and self._is_current(known, paths, free)):
            self._discard(lock)
            known = None
        return BorrowedLayer(self, lock, key, paths, free, known, clean)

    def delete(self) -> bool:
        """Raises OSError while a command uses it."""
        if not self._folder.exists():
            return False
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = (self._folder / "known").exists()
            self._remove()
            return there
        finally:
            os.close(lock)

    @property
    def layer(self) -> str:
        return f"{self._folder}/layer"

    def _stored_info(self) -> _LayerInfo | None:
        try:
            told = marshal.loads(read_start(self._folder / "known"))
            form, *rest = told
            return _LayerInfo(*rest) if form == _FORM else None
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def _is_current(self, known: _LayerInfo, paths: Sequence[str], free: Sequence[str]) -> bool:
        if known.ended > time.time_ns() or not set(known.names) <= set(free):
            return False
        for path, (number, modified, changed) in _identities(self._root, paths):
            before = known.files.get(path)
            newer = modified > known.ended
            if not newer and (before is None or before[0] != number or changed > known.began):
                return False
        for folder in (f"{self._root}/{name}" for name in known.names):
            try:
                if os.path.isdir(folder) and any(
                    one.st_ctime_ns > known.began
                    for one in (os.stat(folder), *(one for _, one in _walk(folder)))
                ):
                    return False
            except (OSError, _NotCacheable):
                return False
        return True

    def _discard(self, shared: int) -> None:
        with suppress(OSError):
            fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._remove()
            fcntl.flock(shared, fcntl.LOCK_SH)

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._folder / "known")  # first: without it, the rest is ignored
        _remove_tree(self.layer)

    def merge(
        self, lent: BorrowedLayer, upper: str, plan: ViewPlan, began: int, names: Sequence[str]
    ) -> None:
        """`upper` is the view's layer of the workspace."""
        known, now = lent.known, time.time_ns()
        try:
            fcntl.flock(lent.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        try:
            if self._stored_info() != known:
                return
            seeded = {seed.path for seed in plan.seeds if seed.overlay in ("", plan.workspace)}
            _only_wrote(upper, self._root, names, seeded)
            if not any(os.path.lexists(f"{upper}/{name}") for name in names):
                return
            files = dict(_identities(self._root, lent.paths))
            if any(changed > began for _, _, changed in files.values()):
                return
            if known is None:
                self._remove()
            else:
                os.unlink(self._folder / "known")
            os.makedirs(self.layer, mode=0o700, exist_ok=True)
            copied = _Copy(self._root, self._most)
            for name in names:
                copied.subtree(upper, self.layer, name)
            sizes = {(one.st_dev, one.st_ino): one.st_size for _, one in _walk(self.layer)}
            if sum(sizes.values()) > self._most:
                raise _NotCacheable("it is too large")
            both = tuple(dict.fromkeys((*(known.names if known else ()), *names)))
            told = (_FORM, lent.key, began, now, both, files)
            path = self._folder / "known"
            content = marshal.dumps(told)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(content)
        except _NotCacheable:
            if not (self._folder / "known").exists():
                self._remove()
        except (OSError, RecursionError):
            self._remove()


class BorrowedLayer:
    def __init__(
        self,
        layer: KeptLayer,
        lock: int,
        key: str,
        paths: Sequence[str],
        free: Sequence[str],
        known: _LayerInfo | None,
        clean: bool,
    ) -> None:
        self._layer, self._free = layer, free
        self.lock, self.key, self.paths, self.known = lock, key, paths, known
        self._clean = clean
        self._began = time.time_ns()

    @property
    def folder(self) -> str:
        return self._layer.layer if self.known is not None else ""

    def names(self, layers: int, plan: ViewPlan, ignored: Iterable[str]) -> tuple[str, ...]:
        """Returns kept folders among the view's writes; their contents are not proposed. `ignored`: `MARKED`
        folders that git ignores.
        """
        upper = _upper(layers, plan)
        before = self.known.names if self.known is not None else ()
        kept = {*ALWAYS, *ignored, *before}
        return tuple(
            name
            for name in self._free
            if not _through_link(upper, name)
            and (
                (name in kept and os.path.lexists(f"{upper}/{name}"))
                or any(os.path.isfile(f"{upper}/{name}/{mark}") for mark in _MARKS)
            )
        )

    def keep(self, layers: int, plan: ViewPlan, names: Sequence[str]) -> None:
        owned = any(seed.kind == "owned" for seed in plan.seeds)
        if self._clean and not owned:
            self._layer.merge(self, _upper(layers, plan), plan, self._began, names)

    def discard(self) -> None:
        self._layer._discard(self.lock)
        self.known = None

    def close(self) -> None:
        os.close(self.lock)


@dataclass(frozen=True, slots=True)
class RunLayer:
    lent: BorrowedLayer
    ignored: asyncio.Future[set[str]]

    def close(self) -> None:
        self.ignored.cancel()
        self.lent.close()

    async def names(self, layers: int, plan: ViewPlan) -> tuple[str, ...]:
        ignored = {path.partition("/")[0] for path in await self.ignored}
        return await asyncio.to_thread(self.lent.names, layers, plan, ignored)


def key_of(seeds: Iterable[Seed], values: Iterable[str]) -> str:
    """Hashes hidden files, their replacements, and the requested variables."""
    digest = hashlib.sha256()
    for seed in sorted(seeds, key=lambda seed: (seed.overlay, seed.path)):
        if seed.kind == "hidden" and ".git" not in seed.path.split("/"):
            digest.update(os.fsencode(f"{seed.overlay}\0{seed.path}\0") + seed.content + b"\0")
    for value in sorted(values):
        digest.update(b"\1" + os.fsencode(value))
    return digest.hexdigest()


def _upper(layers: int, plan: ViewPlan) -> str:
    return f"/proc/self/fd/{layers}/{len(plan.overlays) - 1}/u"


def _identities(root: str, paths: Sequence[str]) -> Iterator[tuple[str, _Identity]]:
    for path in paths:
        with suppress(OSError):
            there = os.lstat(f"{root}/{path}")
            yield path, (there.st_ino, there.st_mtime_ns, there.st_ctime_ns)


def _through_link(top: str, name: str) -> bool:
    parts = name.split("/")
    return any(os.path.islink(f"{top}/{'/'.join(parts[:end])}") for end in range(1, len(parts) + 1))


def _walk(top: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting, count = [("", 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        if depth > DEEPEST:
            raise _NotCacheable("it is too deep")
        with os.scandir(f"{top}/{folder}" if folder else top) as entries:
            for entry in entries:
                count += 1
                if count > MOST_ENTRIES:
                    raise _NotCacheable("there is too much of it")
                path = f"{folder}/{entry.name}" if folder else entry.name
                there = entry.stat(follow_symlinks=False)
                yield path, there
                if stat.S_ISDIR(there.st_mode):
                    waiting.append((path, depth + 1))


def _only_wrote(upper: str, root: str, names: Sequence[str], seeds: set[str]) -> None:
    """Raises `_NotCacheable` if a command touched another file of the folder: the build may have used
    contents that are gone.
    """
    apart = tuple(f"{name}/" for name in names)
    for path, there in _walk(upper):
        if (
            path.startswith(apart)
            or path in names
            or path in seeds
            or not _HARMLESS.isdisjoint(path.split("/"))
        ):
            continue
        opaque = stat.S_ISDIR(there.st_mode) and _attribute(f"{upper}/{path}", _OPAQUE) == b"y"
        if (opaque or not stat.S_ISDIR(there.st_mode)) and os.path.lexists(f"{root}/{path}"):
            raise _NotCacheable(f"{path} was written")


def _attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError:
        return None


class _Copy:
    def __init__(self, root: str, most: int) -> None:
        self._root, self._most = root, most
        self._bytes = 0
        self._linked: dict[tuple[int, int], str] = {}

    def subtree(self, upper: str, to: str, name: str) -> None:
        """Raises `_NotCacheable` and OSError."""
        parts = name.split("/")
        for end in range(1, len(parts)):
            os.makedirs(f"{to}/{'/'.join(parts[:end])}", exist_ok=True)
        try:
            top = os.lstat(f"{upper}/{name}")
        except FileNotFoundError:
            return
        self._one(f"{upper}/{name}", f"{to}/{name}", f"{self._root}/{name}", top)
        if not stat.S_ISDIR(top.st_mode):
            return
        for path, there in _walk(f"{upper}/{name}"):
            self._one(f"{upper}/{name}/{path}", f"{to}/{name}/{path}", f"{self._root}/{name}/{path}", there)

    def _one(self, source: str, target: str, real: str, there: os.stat_result) -> None:
        if stat.S_ISDIR(there.st_mode):
            opaque = _attribute(source, _OPAQUE) == b"y"
            if opaque or (os.path.lexists(target) and (os.path.islink(target) or not os.path.isdir(target))):
                _remove_tree(target)
            os.makedirs(target, exist_ok=True)
            os.chmod(target, stat.S_IMODE(there.st_mode) & 0o777 | 0o700)
            if opaque:
                os.setxattr(target, _OPAQUE, b"y")
            return
        _remove_tree(target)
        is_file, is_device = stat.S_ISREG(there.st_mode), stat.S_ISCHR(there.st_mode)
        if (is_device and there.st_rdev == 0) or (
            is_file and not there.st_size and _attribute(source, _DELETED) is not None
        ):
            if os.path.lexists(real):
                os.mknod(target, stat.S_IFCHR, os.makedev(0, 0))
        elif stat.S_ISLNK(there.st_mode):
            os.symlink(os.readlink(source), target)
        elif is_file:
            same = (there.st_dev, there.st_ino)
            if there.st_nlink > 1 and (first := self._linked.get(same)) is not None:
                os.link(first, target, follow_symlinks=False)
                return
            self._bytes += there.st_size
            if self._bytes > self._most:
                raise _NotCacheable("it is too large")
            shutil.copyfile(source, target, follow_symlinks=False)
            os.chmod(target, stat.S_IMODE(there.st_mode) & 0o777 | 0o400)
            os.utime(target, ns=(there.st_atime_ns, there.st_mtime_ns))
            self._linked[same] = target


def _remove_tree(path: str) -> None:
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(there.st_mode):
        os.unlink(path)
        return

    def allowed(_: Callable[..., object], path: str, __: object) -> None:
        os.chmod(os.path.dirname(path), 0o700)
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

    shutil.rmtree(path, onerror=allowed)
