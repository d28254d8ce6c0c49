"""Compares a layer with the folder below it: new, changed and deleted files, and changed modes.

An overlay's layer has a file for each file opened for writing, a character device 0:0 for each deletion, and
folders; an "opaque" folder replaces the lower one. Many entries equal the original (a touch, a move there and
back), so each is compared. A rename is a deletion and a new file.

Standard library only. The command controls paths and sizes: the code follows no link, does not recurse, holds
one piece of a file in memory, and counts everything against a `Budget`.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from io import FileIO
from typing import NamedTuple

from tui_agent.sandbox.folder_access import FolderAccess

#: Caches, and git's files, which are never proposed.
LEFT_OUT = frozenset(
    {".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".hypothesis"}
)
#: Bytes of a file in memory; bytes of a path.
PIECE, LONGEST = 1 << 18, 4000
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
TOO_LARGE, BINARY = "it is too large", "it is binary"
NO_ROOM = "it is beyond what is kept of one command"


#: Bytes; seconds of processor time.
MEMORY, SECONDS = 1 << 30, 60


class EarlierState(NamedTuple):
    """Differs from the folder: a `Seed` of `view_plan.py`."""

    kind: str
    content: bytes
    mode: int | None


class Budget(NamedTuple):
    """Limits for reading a layer; paths beyond them are reported as omitted.

    - files: written files, and as many deleted ones.
    - entries: scanned.
    - depth: nested folders.
    - largest: bytes of a kept content.
    - texts: total bytes of kept contents.
    - read: bytes compared.
    - seconds: duration.
    """

    files: int
    entries: int
    depth: int
    largest: int
    texts: int
    read: int
    seconds: float


class ChangedEntry(NamedTuple):
    """As `ChangedPath` of `layer_changes.py`. at, digest: offset and hash of the kept content; -1 if not
    kept, with the reason in `why`.
    """

    path: str
    kind: str
    executable: bool = False
    target: str = ""
    size: int = 0
    meanwhile: bool = False
    at: int = -1
    digest: str = ""
    why: str = ""


class _Content(NamedTuple):
    same: bool
    at: int = -1
    digest: str = ""
    why: str = ""


class Comparison:
    def __init__(
        self,
        layer: FolderAccess,
        real: FolderAccess,
        seeds: Mapping[str, EarlierState],
        since: float,
        budget: Budget,
        contents: int,
        begin: int = 0,
        apart: Iterable[str] = (),
        beside: bool = False,
    ) -> None:
        """Writes kept contents to the descriptor `contents` from offset `begin`.

        - since: Unix time of the view.
        - apart: ignored paths.
        - beside: the seeds are in a separate layer below; this layer has only the command's writes.
        """
        self._apart, self._beside = frozenset(apart), beside
        self._layer, self._real, self._seeds, self._since = layer, real, seeds, since
        self._budget, self._contents = budget, contents
        self._until = time.monotonic() + budget.seconds
        self._begin = self._end = begin
        self._looked = self._read = self._names = self._gone_count = 0
        self._files: Mapping[str, tuple[int, int, int]] = {}
        self.found: list[ChangedEntry] = []
        #: Number of paths, and the first few, by reason.
        self.left: dict[str, tuple[int, list[str]]] = {}
        self._waiting: list[tuple[str, str, bool]] = []
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

    @property
    def end(self) -> int:
        return self._end

    def of_layer(self) -> list[ChangedEntry]:
        """In folder order."""
        self._waiting.append(("folder", "", False))
        self._work()
        told = {one.path for one in self.found}
        for path, seed in self._seeds.items():
            if path in told or seed.kind != "file" or not LEFT_OUT.isdisjoint(path.split("/")):
                continue
            without_trace = self._layer.status(path) is None and self._real.status(path) is None
            if without_trace and (not self._beside or self._covers(path)):
                self._waiting.append(("gone", path, False))
        self._work()
        return self.found

    def of_paths(self, paths: Iterable[str]) -> list[ChangedEntry]:
        for path in paths:
            if LEFT_OUT.isdisjoint(path.split("/")):
                self._waiting.append(("entry", path, self._covers(path)))
        self._work()
        return self.found

    def _covers(self, path: str) -> bool:
        while "/" in path:
            path = path.rpartition("/")[0]
            if (there := self._layer.status(path)) is not None:
                return self._layer.is_opaque(path) or not stat.S_ISDIR(there.st_mode)
        return False

    def of_copy(self, files: Mapping[str, tuple[int, int, int]]) -> list[ChangedEntry]:
        """`files`: size, time and mode of each file at its creation."""
        self._files = files
        self._waiting.append(("copy", "", False))
        for path in sorted(files, reverse=True):
            if LEFT_OUT.isdisjoint(path.split("/")):
                there = self._layer.status(path)
                if there is None or stat.S_ISDIR(there.st_mode):
                    self._waiting.append(("gone", path, False))
        self._work()
        return sorted(self.found)

    def _work(self) -> None:
        while self._waiting:
            how, path, opaque = self._waiting.pop()
            self._looked += 1
            if not self._looked % 64 and time.monotonic() > self._until:
                self._leave("seconds", path, len(self._waiting) + 1)
                self._waiting.clear()
                return
            match how:
                case "folder" | "copy":
                    if path.count("/") + 2 > self._budget.depth or len(os.fsencode(path)) > LONGEST:
                        self._leave("depth", path)
                    else:
                        self._folder(how, path, opaque)
                case "entry":
                    self._entry(path, opaque)
                case "file":
                    there = self._layer.status(path)
                    if there is not None:
                        self._file(path, there, None)
                case _:
                    self._gone(path)

    def _next(self, how: str, folder: str, names: Iterable[str], opaque: bool = False) -> None:
        prefix = f"{folder}/" if folder else ""
        wanted = sorted(
            name for name in names if name not in LEFT_OUT and f"{prefix}{name}" not in self._apart
        )
        room = max(0, self._budget.entries - self._looked - len(self._waiting))
        if len(wanted) > room:
            self._leave("entries", prefix + wanted[room], len(wanted) - room)
        self._waiting += [(how, prefix + name, opaque) for name in reversed(wanted[:room])]

    def _leave(self, why: str, path: str, count: int = 1) -> None:
        known, paths = self.left.get(why, (0, []))
        self.left[why] = known + count, [*paths, path[:LONGEST]] if len(paths) < 3 else paths

    def _report(self, found: ChangedEntry) -> None:
        deleted = found.kind == "deleted"  # New files must not displace deletions.
        count = self._gone_count if deleted else len(self.found) - self._gone_count
        self._names += len(found.path) + len(found.target)
        if count >= self._budget.files or self._names > self._budget.files * 400:
            self._leave("deleted" if deleted else "files", found.path)
            return
        self._gone_count += deleted
        self.found.append(found)

    def _folder(self, how: str, folder: str, opaque: bool) -> None:
        opaque = opaque or (how == "folder" and folder != "" and self._layer.is_opaque(folder))
        try:
            names = self._layer.listing(folder)
        except OSError:
            self._leave("unreadable", folder)
            return
        if how == "folder":
            self._next("entry", folder, names, opaque)
            if opaque:
                self._next("gone", folder, self._below(folder).difference(names))
            return
        again, folders = [], []
        for name in names:
            path = f"{folder}/{name}" if folder else name
            there = self._layer.status(path)
            if there is not None and stat.S_ISDIR(there.st_mode):
                folders.append(name)
            elif there is not None and self._files.get(path) != (
                there.st_size,
                there.st_mtime_ns,
                there.st_mode,
            ):
                again.append(name)
        self._next("copy", folder, folders)
        self._next("entry", folder, again)

    def _entry(self, path: str, opaque: bool) -> None:
        there = self._layer.status(path)
        if there is None:
            return
        before = self._before(path)
        planted = any(self._planted.get(path, {}).values())
        was_folder = planted or (isinstance(before, os.stat_result) and stat.S_ISDIR(before.st_mode))
        if stat.S_ISCHR(there.st_mode) and there.st_rdev == 0:
            self._gone(path)
        elif stat.S_ISDIR(there.st_mode):
            if before is not None and not was_folder:
                self._gone(path)
            self._waiting.append(("folder", path, opaque or not was_folder))
        elif was_folder:
            self._waiting.append(("file", path, False))
            if not self._files:
                self._gone(path)
        else:
            self._file(path, there, before)

    def _file(self, path: str, there: os.stat_result, before: EarlierState | os.stat_result | None) -> None:
        if isinstance(before, EarlierState) and before.kind == "hidden":
            return
        if stat.S_ISLNK(there.st_mode):
            target = self._layer.target(path)
            known = isinstance(before, os.stat_result) and stat.S_ISLNK(before.st_mode)
            if target is not None and not (known and self._real.target(path) == target):
                self._report(ChangedEntry(path, "link", target=target))
            return
        if not stat.S_ISREG(there.st_mode):
            self._report(ChangedEntry(path, "special"))
            return
        executable = bool(there.st_mode & 0o100)
        is_file = isinstance(before, EarlierState) or (before is not None and stat.S_ISREG(before.st_mode))
        content = self._compared(path, there, before if is_file else None)
        kind = "new"
        if is_file:
            if content.same and executable == self._was_executable(path, before):
                return
            kind = "mode" if content.same else "changed"
        meanwhile = is_file and self._meanwhile(before)
        self._report(ChangedEntry(path, kind, executable, "", there.st_size, meanwhile, *content[1:]))

    def _gone(self, path: str) -> None:
        before = self._before(path)
        if before is None or (isinstance(before, EarlierState) and before.kind == "hidden"):
            return
        if isinstance(before, os.stat_result) and stat.S_ISDIR(before.st_mode):
            self._next("gone", path, self._below(path))
            return
        executable = self._was_executable(path, before)
        self._report(ChangedEntry(path, "deleted", executable, meanwhile=self._meanwhile(before)))

    def _before(self, path: str) -> EarlierState | os.stat_result | None:
        seed = self._seeds.get(path)
        if seed is not None:
            return None if seed.kind == "gone" else seed
        return self._real.status(path)

    def _below(self, path: str) -> set[str]:
        names = set(self._real.names(path))
        for name, there in self._planted.get(path, {}).items():
            (names.add if there else names.discard)(name)
        return names

    def _meanwhile(self, before: EarlierState | os.stat_result | None) -> bool:
        return isinstance(before, os.stat_result) and before.st_ctime > self._since

    def _was_executable(self, path: str, before: EarlierState | os.stat_result | None) -> bool:
        mode = before.mode if isinstance(before, EarlierState) else before and before.st_mode
        if mode is None:
            there = self._real.status(path)
            mode = 0o644 if there is None else there.st_mode
        return bool(mode & 0o100)

    def _compared(
        self, path: str, there: os.stat_result, before: EarlierState | os.stat_result | None, again: int = 3
    ) -> _Content:
        if there.st_size > self._budget.largest:
            return _Content(False, why=TOO_LARGE)
        if self._read + there.st_size > self._budget.read:
            self._leave("read", path)
            return _Content(False, why=NO_ROOM)
        try:
            with open(self._layer.open(path), "rb", buffering=0) as after:
                if isinstance(before, EarlierState):
                    return self._store_content(path, after, io.BytesIO(before.content).read)
                if before is None or before.st_size != there.st_size:
                    return self._store_content(path, after, None)
                with open(self._real.open(path), "rb") as real:  # its reads are whole
                    return self._store_content(path, after, real.read)
        except OSError:
            now = self._layer.status(path)
            if again and now is not None and stat.S_ISREG(now.st_mode):
                if not isinstance(before, EarlierState):  # either file can be replaced at any time
                    before = self._real.status(path)
                    before = before if before is not None and stat.S_ISREG(before.st_mode) else None
                return self._compared(path, now, before, again - 1)
            self._leave("unreadable", path)
            return _Content(False, why="it could not be read")

    def _store_content(self, path: str, after: FileIO, before: Callable[[int], bytes] | None) -> _Content:
        """Appends the content; the next one overwrites an unchanged one."""
        same, why, size, digest = before is not None, "", 0, blake2b(digest_size=20)
        while True:
            piece = after.read(PIECE)
            same = same and before is not None and before(max(len(piece), 1)) == piece
            if not piece:
                break
            size += len(piece)
            self._read += len(piece)
            digest.update(piece)
            if not why and b"\0" in piece and not (size == len(piece) and piece.startswith(UTF_16)):
                why = BINARY
            if not why and self._end - self._begin + size > self._budget.texts:
                why = NO_ROOM
            if size > self._budget.largest:
                return _Content(False, why=TOO_LARGE)
            if not why:
                try:
                    write_all(self._contents, piece, self._end + size - len(piece))
                except OSError:
                    why = NO_ROOM
        if same:
            return _Content(True)
        if why == NO_ROOM:
            self._leave("texts", path)
        if why:
            return _Content(False, digest=digest.hexdigest(), why=why)
        at, self._end = self._end, self._end + size
        return _Content(False, at, digest.hexdigest())


def write_all(descriptor: int, data: bytes, at: int) -> None:
    """Raises OSError."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, at)
        rest, at = rest[written:], at + written


def main(descriptor: int) -> None:
    """Reads one layer in a process of its own, so that hostile layers cost the screen nothing.

    Receives two descriptors over the Unix packet socket `descriptor`: a file with the data to compare
    (`marshal`), and the layer's folder. Appends kept contents and then the result to the file, and
    responds with the result's offset and size.
    """
    import _signal as signal  # ty: ignore[import-not-found]
    import _socket
    import marshal
    import resource

    from tui_agent.sandbox.inside.kernel import DEATH_SIGNAL, prctl, received

    line = _socket.socket(fileno=descriptor)
    if sys.platform.startswith("linux"):
        prctl(DEATH_SIGNAL, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    text, descriptors = received(line, 1 << 16, 2)
    if not text:
        return
    contents, layer = descriptors
    size = os.fstat(contents).st_size
    asked = marshal.loads(os.pread(contents, size, 0))
    seeds = {path: EarlierState(*seed) for path, seed in asked["seeds"].items()}
    with FolderAccess(layer, own=True) as there, FolderAccess(asked["root"]) as real:
        budget = Budget(*asked["budget"])
        compared = Comparison(
            *(there, real, seeds, asked["since"], budget, contents, size, asked["apart"], asked["beside"])
        )
        if asked["paths"] is not None:
            found = compared.of_paths(asked["paths"])
        else:
            found = compared.of_layer() if asked["files"] is None else compared.of_copy(asked["files"])
    told = marshal.dumps({"found": [tuple(one) for one in found], "left": compared.left})
    write_all(contents, told, compared.end)
    line.send(ascii([compared.end, len(told)]).encode())
