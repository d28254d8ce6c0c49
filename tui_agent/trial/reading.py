"""Reads a layer: what of it is new, changed, deleted or of another mode, compared with the folder that it is laid over.

A layer of an overlay holds a file for each that was opened for writing, a character device 0:0 for each that was
deleted, and folders; a folder with the mark "opaque" replaces the one below it. So much is equal to what was there
before (a touch, a file that was moved away and back) that each is compared. Renames are a deletion and a new file.

Python's own library alone. Paths and sizes are the command's, so that nothing here follows a link, calls itself,
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tui_agent.trial.beneath import Beneath

#: What programs make for themselves, and what git keeps: nobody proposes that.
LEFT_OUT = frozenset(
    {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".hypothesis"}
)


class Before(NamedTuple):
    """What the command found at a path instead of what is in the folder: `Seed` of `plan.py`, by its path."""

    kind: str
    content: bytes
    mode: int | None


class Found(NamedTuple):
    """One path that a command left in another state than it found it; as `Written` of `changed.py` has it."""

    path: str
    kind: str
    content: bytes | None = None
    executable: bool = False
    target: str = ""
    size: int = 0
    meanwhile: bool = False


class Comparison:
    """One layer with the folder below it."""

    def __init__(
        self, layer: Beneath, real: Beneath, seeds: Mapping[str, Before], since: float, largest: int
    ) -> None:
        """`since` is when the view was made, in seconds since the epoch; of a `largest` file the content is read."""
        self._layer, self._real, self._seeds, self._since = layer, real, seeds, since
        self._largest = largest
        self.found: list[Found] = []
        #: What is still to be looked at, the next one last: how, the path, whether what was below it is gone.
        self._waiting: list[tuple[str, str, bool]] = []
        #: Names of seeds by their folder, with whether they are there.
        self._planted: dict[str, dict[str, bool]] = {}
        for path, seed in seeds.items():
            there = seed.kind != "gone"
            while True:
                folder, _, name = path.rpartition("/")
                known = self._planted.setdefault(folder, {})
                known[name] = known.get(name, False) or there
                if not folder or not there:
                    break
                path = folder

    def of_layer(self) -> list[Found]:
        """What is in the layer of an overlay, in the order of its folders."""
        self._waiting.append(("folder", "", False))
        self._work()
        return self.found

    def of_copy(self, files: Mapping[str, tuple[int, int, int]]) -> list[Found]:
        """What is in a copy of the folder, where `files` are size, time and mode of each when it was made."""
        for path in sorted(files):
            if LEFT_OUT.isdisjoint(path.split("/")):
                there = self._layer.status(path)
                if there is None or stat.S_ISDIR(there.st_mode):
                    self._waiting.append(("gone", path, False))
                    self._work()
        folders = [""]
        while folders:
            folder = folders.pop()
            for name in self._layer.names(folder):
                path = f"{folder}/{name}" if folder else name
                there = self._layer.status(path)
                if name in LEFT_OUT or there is None:
                    continue
                if stat.S_ISDIR(there.st_mode):
                    folders.append(path)
                elif files.get(path) != (there.st_size, there.st_mtime_ns, there.st_mode):
                    self._waiting.append(("entry", path, False))
                    self._work()
        return sorted(self.found)

    def _work(self) -> None:
        while self._waiting:
            how, path, opaque = self._waiting.pop()
            if how == "folder":
                self._folder(path, opaque)
            elif how == "entry":
                self._entry(path, opaque)
            elif how == "file":  # in the place of a folder, whose files are told of by now
                there = self._layer.status(path)
                if there is not None:
                    self._file(path, there, None)
            else:
                self._gone(path)

    def _next(self, how: str, folder: str, names: Iterable[str], opaque: bool = False) -> None:
        prefix = f"{folder}/" if folder else ""
        self._waiting += [
            (how, prefix + name, opaque) for name in sorted(names, reverse=True) if name not in LEFT_OUT
        ]

    def _folder(self, path: str, opaque: bool) -> None:
        opaque = opaque or (path != "" and self._layer.attribute(path, "user.overlay.opaque") == b"y")
        names = self._layer.names(path)
        self._next("entry", path, names, opaque)
        if opaque:  # popped, and so looked at, before the entries
            self._next("gone", path, self._below(path).difference(names))

    def _entry(self, path: str, opaque: bool) -> None:
        there = self._layer.status(path)
        if there is None:
            return
        before = self._before(path)
        was_folder = isinstance(before, os.stat_result) and stat.S_ISDIR(before.st_mode)
        if stat.S_ISCHR(there.st_mode) and there.st_rdev == 0:
            self._gone(path)
        elif stat.S_ISDIR(there.st_mode):
            if before is not None and not was_folder:
                self._gone(path)
            self._waiting.append(("folder", path, opaque or not was_folder))
        elif was_folder:
            self._waiting.append(("file", path, False))
            self._gone(path)
        else:
            self._file(path, there, before)

    def _file(self, path: str, there: os.stat_result, before: Before | os.stat_result | None) -> None:
        if isinstance(before, Before) and before.kind == "hidden":
            return
        if stat.S_ISLNK(there.st_mode):
            target = self._layer.target(path)
            known = isinstance(before, os.stat_result) and stat.S_ISLNK(before.st_mode)
            if target is not None and not (known and self._real.target(path) == target):
                self.found.append(Found(path, "link", target=target))
            return
        if not stat.S_ISREG(there.st_mode):
            self.found.append(Found(path, "special"))
            return
        executable = bool(there.st_mode & 0o100)
        is_file = isinstance(before, Before) or (before is not None and stat.S_ISREG(before.st_mode))
        content, same = self._compared(path, there, before if is_file else None)
        if not is_file:
            self.found.append(Found(path, "new", content, executable, size=there.st_size))
        elif not same or executable != self._was_executable(path, before):
            kind = "mode" if same else "changed"
            meanwhile = self._meanwhile(before)
            self.found.append(Found(path, kind, content, executable, "", there.st_size, meanwhile))

    def _gone(self, path: str) -> None:
        """A file, or all files of a folder, that were there."""
        before = self._before(path)
        if before is None or (isinstance(before, Before) and before.kind == "hidden"):
            return
        if isinstance(before, os.stat_result) and stat.S_ISDIR(before.st_mode):
            self._next("gone", path, self._below(path))
            return
        executable = self._was_executable(path, before)
        self.found.append(Found(path, "deleted", None, executable, meanwhile=self._meanwhile(before)))

    def _before(self, path: str) -> Before | os.stat_result | None:
        """What the command found there: pending, else in the folder."""
        seed = self._seeds.get(path)
        if seed is not None:
            return None if seed.kind == "gone" else seed
        return self._real.status(path)

    def _below(self, path: str) -> set[str]:
        """Names that were in a folder: on the disk and pending, without those that are pending as deleted."""
        names = set(self._real.names(path))
        for name, there in self._planted.get(path, {}).items():
            (names.add if there else names.discard)(name)
        return names

    def _meanwhile(self, before: Before | os.stat_result | None) -> bool:
        return isinstance(before, os.stat_result) and before.st_ctime > self._since

    def _was_executable(self, path: str, before: Before | os.stat_result | None) -> bool:
        mode = before.mode if isinstance(before, Before) else before and before.st_mode
        if mode is None:
            there = self._real.status(path)
            mode = 0o644 if there is None else there.st_mode
        return bool(mode & 0o100)

    def _compared(
        self, path: str, there: os.stat_result, before: Before | os.stat_result | None
    ) -> tuple[bytes | None, bool]:
        """The content, None if it is too large, and whether it is what was there before."""
        if there.st_size > self._largest:
            return None, False
        try:
            content = _content(self._layer.open(path), self._largest)
            if isinstance(before, Before):
                return content, content == before.content
            if before is None or before.st_size != there.st_size:
                return content, False
            return content, content == _content(self._real.open(path), self._largest)
        except OSError:
            return None, False


def _content(descriptor: int, largest: int) -> bytes | None:
    with open(descriptor, "rb") as file:
        content = file.read(largest + 1)
    return content if len(content) <= largest else None
