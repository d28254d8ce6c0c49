"""What a command wrote, read from its layer: files that are new, changed, deleted or have another mode.

A layer of an overlay holds a file for each that was opened for writing, a character device 0:0 for each that was
deleted, and folders; a folder with the mark "opaque" replaces the one below it. So much is equal to what was there
before (a touch, a file that was moved away and back) that each is compared. Renames are a deletion and a new file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tui_agent.trial.plan import MEGABYTE, Seed

#: A larger file is listed without its content.
MAX_CONTENT = 5 * MEGABYTE

#: What programs make for themselves, and what git keeps: nobody proposes that.
_LEFT_OUT = frozenset(
    {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".hypothesis"}
)
#: Size, time and mode of each file of a copy when it was made, by its relative path.
Copied = Mapping[str, tuple[int, int, int]]
Kind = Literal["new", "changed", "deleted", "mode", "link", "special"]


@dataclass(frozen=True, slots=True)
class Written:
    """One path that a command left in another state than it found it.

    before, after: contents; None where there is none, or where it is too large. executable: of a regular file
    afterwards. target: of a link. meanwhile: the file in the folder changed since the view was made, so that
    `before` is not what the command saw.
    """

    path: str
    kind: Kind
    before: bytes | None = None
    after: bytes | None = None
    executable: bool = False
    target: str = ""
    size: int = 0
    meanwhile: bool = False


def written(layer: int, root: str, seeds: Iterable[Seed], since: float) -> list[Written]:
    """What is in the layer of a workspace (a descriptor of its folder), in the order of the paths. Blocking.

    since: when the view was made, in seconds since the epoch. What git and caches keep is left out.
    """
    return list(_Comparison(root, _of_workspace(root, seeds), since).folder(layer, ""))


def written_to_copy(
    copy: str, root: str, seeds: Iterable[Seed], files: Copied, since: float
) -> list[Written]:
    """The same of a copy of a workspace, where `files` says what it held. Blocking."""
    compared = _Comparison(root, _of_workspace(root, seeds), since)
    gone = [
        path
        for path in files
        if _LEFT_OUT.isdisjoint(path.split("/")) and not os.path.lexists(f"{copy}/{path}")
    ]
    found = [written for path in gone for written in compared.gone(path)]
    for folder, folders, names in os.walk(copy):
        prefix = os.path.relpath(folder, copy) + "/" if folder != copy else ""
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        folders[:] = [name for name in folders if name not in _LEFT_OUT and name not in links]
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in (*names, *links):
                if name not in _LEFT_OUT and files.get(prefix + name) != state_of(
                    os.lstat(name, dir_fd=descriptor)
                ):
                    found += compared.entry(descriptor, name, prefix + name)
        finally:
            os.close(descriptor)
    return sorted(found, key=lambda written: written.path)


def state_of(status: os.stat_result) -> tuple[int, int, int]:
    """Size, time and mode: where they are the same, a copy was not written."""
    return status.st_size, status.st_mtime_ns, status.st_mode


def _of_workspace(root: str, seeds: Iterable[Seed]) -> dict[str, Seed]:
    """What was in place of files; what is only owned is what it was."""
    return {seed.path: seed for seed in seeds if seed.overlay in ("", root) and seed.kind != "owned"}


@dataclass(frozen=True, slots=True)
class _Comparison:
    root: str
    seeds: Mapping[str, Seed]
    since: float

    def folder(self, descriptor: int, prefix: str, *, opaque: bool = False) -> Iterator[Written]:
        names = sorted(os.listdir(descriptor))
        if opaque:
            gone = (name for name in self._below(prefix) if name not in names)
            for name in sorted(gone):
                yield from self.gone(prefix + name)
        for name in names:
            if name not in _LEFT_OUT:
                yield from self.entry(descriptor, name, prefix + name, opaque=opaque)

    def entry(self, folder: int, name: str, path: str, *, opaque: bool = False) -> Iterator[Written]:
        there = os.lstat(name, dir_fd=folder)
        before = self._before(path)
        was_folder = isinstance(before, os.stat_result) and stat.S_ISDIR(before.st_mode)
        if stat.S_ISCHR(there.st_mode) and there.st_rdev == 0:
            yield from self.gone(path)
        elif stat.S_ISDIR(there.st_mode):
            if before is not None and not was_folder:
                yield from self.gone(path)
            yield from self._folder(folder, name, path, opaque or not was_folder)
        else:
            if was_folder:
                yield from self.gone(path)
                before = None
            yield from self._file(folder, name, path, there, before)

    def _folder(self, folder: int, name: str, path: str, opaque: bool) -> Iterator[Written]:
        descriptor = _open_folder(folder, name)
        try:
            if not opaque:
                try:
                    opaque = os.getxattr(descriptor, "user.overlay.opaque") == b"y"
                except OSError:
                    opaque = False
            yield from self.folder(descriptor, f"{path}/", opaque=opaque)
        finally:
            os.close(descriptor)

    def _file(
        self, folder: int, name: str, path: str, there: os.stat_result, before: Seed | os.stat_result | None
    ) -> Iterator[Written]:
        seed = self.seeds.get(path)
        if seed is not None and seed.kind == "hidden":
            return
        if stat.S_ISLNK(there.st_mode):
            target = os.readlink(name, dir_fd=folder)
            if before is None or self._link(path, before) != target:
                yield Written(path, "link", target=target)
            return
        if not stat.S_ISREG(there.st_mode):
            yield Written(path, "special")
            return
        executable = bool(there.st_mode & 0o100)
        after = _content(folder, name, there.st_size)
        content, was_executable = self._content(path, before)
        known = isinstance(before, os.stat_result)
        meanwhile = isinstance(before, os.stat_result) and before.st_ctime > self.since
        if before is None or (known and not stat.S_ISREG(before.st_mode)):  # type: ignore[union-attr]
            yield Written(path, "new", None, after, executable, size=there.st_size)
        elif content != after or content is None:
            yield Written(path, "changed", content, after, executable, "", there.st_size, meanwhile)
        elif was_executable != executable:
            yield Written(path, "mode", content, after, executable, "", there.st_size, meanwhile)

    def gone(self, path: str) -> Iterator[Written]:
        """A file, or all files of a folder, that were there."""
        before = self._before(path)
        seed = self.seeds.get(path)
        if before is None or (seed is not None and seed.kind == "hidden"):
            return
        if isinstance(before, os.stat_result) and stat.S_ISDIR(before.st_mode):
            for name in sorted(self._below(f"{path}/")):
                if name not in _LEFT_OUT:
                    yield from self.gone(f"{path}/{name}")
            return
        content, executable = self._content(path, before)
        meanwhile = isinstance(before, os.stat_result) and before.st_ctime > self.since
        yield Written(path, "deleted", content, None, executable, meanwhile=meanwhile)

    def _before(self, path: str) -> Seed | os.stat_result | None:
        """What the command found there: pending, else on the disk."""
        seed = self.seeds.get(path)
        if seed is not None:
            return None if seed.kind == "gone" else seed
        try:
            return os.lstat(os.path.join(self.root, path))
        except OSError:
            return None

    def _below(self, prefix: str) -> set[str]:
        """Names that were in a folder: on the disk and pending, without those that are pending as deleted."""
        place = os.path.join(self.root, prefix)
        try:
            names = set() if os.path.islink(place.rstrip("/")) else set(os.listdir(place))
        except OSError:
            names = set()
        for path, seed in self.seeds.items():
            if path.startswith(prefix):
                name, _, more = path[len(prefix) :].partition("/")
                if not more and seed.kind == "gone":
                    names.discard(name)
                elif seed.kind != "gone":
                    names.add(name)
        return names

    def _content(self, path: str, before: Seed | os.stat_result | None) -> tuple[bytes | None, bool]:
        """The content before, None where it is too large, and whether it could be run."""
        if isinstance(before, Seed):
            mode = before.mode
            if mode is None:
                try:
                    mode = os.lstat(os.path.join(self.root, path)).st_mode
                except OSError:
                    mode = 0o644
            return before.content, bool(mode & 0o100)
        if before is None or not stat.S_ISREG(before.st_mode):
            return None, False
        return _content(None, os.path.join(self.root, path), before.st_size), bool(before.st_mode & 0o100)

    def _link(self, path: str, before: Seed | os.stat_result) -> str | None:
        if isinstance(before, Seed) or not stat.S_ISLNK(before.st_mode):
            return None
        try:
            return os.readlink(os.path.join(self.root, path))
        except OSError:
            return None


def _open_folder(folder: int, name: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:  # a command may have taken our right to look into its own folder
        os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)


def _content(folder: int | None, name: str, size: int) -> bytes | None:
    if size > MAX_CONTENT:
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except PermissionError:
        if folder is None:
            return None
        os.chmod(name, 0o600, dir_fd=folder)
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        return file.read(MAX_CONTENT + 1)
