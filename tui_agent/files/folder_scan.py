"""One folder's contents, scanned for secrets, and folders modified without a change of their own time.

The kernel queues events before a write returns, so results are complete. Without inotify, every file must
be checked.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tui_agent.files.masking import hits, may_hold_key
from tui_agent.files.names import is_git
from tui_agent.files.sensitive_paths import is_secret, is_store, stores_in

LARGEST = 4_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: Byte-order marks, longest first: one is a prefix of another.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
#: Encodings without a mark: bytes per character, index of the non-zero byte.
_WIDE = (("utf-32-le", 4, 0), ("utf-32-be", 4, 3), ("utf-16-le", 2, 0), ("utf-16-be", 2, 1))
_BEGINNING = 8_000
_OURS = str(Path(__file__).parents[2])
_PROGRAM = f"import sys; sys.path.insert(0, {_OURS!r}); from tui_agent.files.folder_scan import main; main()"

#: SHA-256 of a file's bytes, and the first line of each kind of key.
Keys = tuple[str, list[tuple[str, int]]]


def read_text(path: str) -> bytes | None:
    """Returns None unless it is a regular text file of limited size."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return None
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            data = file.read(LARGEST)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if encoding_of(data) else None


def encoding_of(data: bytes) -> str:
    """Recognizes UTF-16 and UTF-32 without a mark if nine of ten characters are Western. Returns "" for
    binary data.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    start = data[:_BEGINNING]
    if b"\0" not in start:
        return "utf-8"
    for encoding, width, place in _WIDE:
        zeros = [start[at::width].count(0) / (len(start[at::width]) or 1) for at in range(width)]
        if zeros[place] < 0.1 and all(share > 0.9 for at, share in enumerate(zeros) if at != place):
            return encoding
    return ""


def in_letters(data: bytes) -> str:
    """Preserves every character that a key may have."""
    return data.decode(encoding_of(data) or "utf-8", "replace")


def keys_in(path: str) -> Keys | None:
    data = read_text(path)
    if not data or (encoding_of(data) == "utf-8" and not may_hold_key(data)):
        return None
    text = in_letters(data)
    kinds: dict[str, int] = {}
    for hit in hits(text):
        kinds.setdefault(hit.what, text.count("\n", 0, hit.start) + 1)
    return (hashlib.sha256(data).hexdigest(), list(kinds.items())) if kinds else None


class KeySearch:
    """The search child. Methods raise OSError if it has exited."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
        )

    def keys_in(self, paths: Sequence[str]) -> dict[str, Keys]:
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(paths).encode() + b"\n")
            self._child.stdin.flush()
            found = json.loads(self._child.stdout.readline() or b"null")
        except ValueError as error:
            raise OSError("the search for keys broke off") from error
        if found is None:
            raise OSError("the search for keys ended")
        return {
            path: (digest, [(what, line) for what, line in kinds]) for path, (digest, kinds) in found.items()
        }

    def close(self) -> None:
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):
                pipe.close() if pipe else None
        self._child.wait()


def main() -> None:
    with suppress(OSError):
        os.nice(19)
    for line in sys.stdin.buffer:
        found = ((path, keys_in(path)) for path in json.loads(line))
        sys.stdout.write(json.dumps({path: keys for path, keys in found if keys}) + "\n")
        sys.stdout.flush()


_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_MODIFIED, _ATTRIBUTES, _WRITTEN, _ONLY_FOLDERS, _NO_LINKS = 0x2, 0x4, 0x8, 0x0100_0000, 0x0200_0000
_LOST, _GONE = 0x4000, 0x8000
_EVENT = struct.Struct("iIII")


class ModifiedFolders:
    """inotify on single folders. Raises OSError if unavailable."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("there is no inotify here")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(_NONBLOCK_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self._folders: dict[int, str] = {}
        self._complete = True

    def add(self, place: str, folder: str) -> None:
        """Watches the folder at `place`, reported as `folder` or its later name."""
        mask = _MODIFIED | _ATTRIBUTES | _WRITTEN | _ONLY_FOLDERS | _NO_LINKS
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(place), mask)
        if number < 0:
            self._complete = False
        else:
            self._folders[number] = folder

    def take(self) -> set[str] | None:
        """Returns folders with files written since the last call; None if unknown."""
        found: set[str] = set()
        while True:
            try:
                events = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return found if self._complete else None
            except OSError:
                return None
            at = 0
            while at < len(events):
                number, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                if mask & _LOST:
                    self._complete = False
                elif mask & _GONE:
                    self._folders.pop(number, None)
                elif number in self._folders:
                    found.add(self._folders[number])

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


#: Origin of a folder's files. "own": the user's, or unknown. "partly": mostly third-party, with certificates
#: and test keys that stay readable. "shipped": third-party. "git": git's files.
Kind = Literal["own", "partly", "shipped", "git"]
Identity = tuple[int, int]

_SHIPPED = frozenset({"node_modules", "site-packages", "dist-packages", ".tox", ".nox", "__pycache__"})
_PARTLY = frozenset({"vendor", "target"})
#: File names in these are branch names or meaningless.
_OF_GIT = frozenset({"objects", "refs", "lfs", "rr-cache"})
_NO_TEXT = (
    *(
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".ico",
        ".webp",
        ".woff",
        ".woff2",
        ".ttf",
        ".otf",
        ".eot",
        ".mp3",
        ".mp4",
    ),
    *(".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".jar", ".whl", ".so", ".o", ".a", ".dll", ".exe", ".pyc"),
    *(".class", ".wasm", ".pdf", ".parquet", ".npy", ".onnx"),
)
#: Clock resolution of file systems, in nanoseconds: a newer time may also belong to a later write.
_TICK = 50_000_000


class FolderScan(Struct, eq=False):
    """Scan of a folder. `changed` identifies the folder's version; None if it cannot.

    - named: paths of secrets by name
    - several: hard-linked files: path, identity, number of links
    - others: other users' files: path and size
    - searched: searched version of each file
    - waiting: unsearched versions; 0 if possibly just written
    - closed: our own files without read permission
    """

    kind: Kind
    changed: tuple[int, int, int] | None = None
    named: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    several: list[tuple[str, Identity, int]] = []
    others: list[tuple[str, int]] = []
    sizes: dict[str, int] = {}
    searched: dict[str, int] = {}
    waiting: dict[str, int] = {}
    keys: dict[str, Keys] = {}
    closed: set[str] = set()

    def rescan_modified(self, place: str) -> None:
        """Raises OSError."""
        now = time.time_ns()
        for name in (*self.searched, *self.waiting):
            try:
                status = os.lstat(f"{place}/{name}")
            except OSError:
                continue
            self._has(name, status, now)

    def was_searched(self, name: str, keys: Keys | None) -> None:
        version = self.waiting.get(name, -1)
        if version > 0:
            self.searched[name] = self.waiting.pop(name)
        if keys:
            self.keys[name] = keys
        else:
            self.keys.pop(name, None)

    def _has(self, name: str, status: os.stat_result, now: int) -> None:
        if is_closed(status):
            self.closed.add(name)
        else:
            self.closed.discard(name)
        version = 0
        if now - max(status.st_mtime_ns, status.st_ctime_ns) > _TICK:
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            version = abs(hash(identity)) | 1
        if version and self.searched.get(name) == version:
            return
        self.searched.pop(name, None)
        self.waiting[name] = version

    def take(self, path: str, entry: os.DirEntry[str], status: os.stat_result, now: int) -> None:
        named = is_secret(path) if self.kind == "own" else is_store(path)
        if self.kind == "git":
            parts = f"/{path}".rpartition("/.git/")[2].lstrip("/").split("/")
            named = "git-crypt" in parts or "creds" in parts[:-1] or (named and parts[0] != "logs")
        if named:
            self.named.append(path)
        if stat.S_ISLNK(status.st_mode):
            if self.kind != "shipped":
                self.links.append(path)
            return
        if not stat.S_ISREG(status.st_mode):
            return
        if status.st_nlink > 1 and (named or self.kind in ("own", "partly")):
            self.several.append((path, (status.st_dev, status.st_ino), status.st_nlink))
        if named or self.kind == "shipped" or not 16 <= status.st_size <= LARGEST:
            return
        if self.kind == "git" and (entry.name.startswith("config") or entry.name in ("index", "packed-refs")):
            return
        if self.kind == "own":
            self.sizes[entry.name] = status.st_size
        if not entry.name.lower().endswith(_NO_TEXT):
            self._has(entry.name, status, now)


def scan_folder(
    place: str, folder: str, kind: Kind, status: os.stat_result, before: FolderScan | None
) -> FolderScan:
    """Searches only files changed since `before`. Raises OSError."""
    now = time.time_ns()
    seen = FolderScan(kind)
    if before is not None:
        seen.searched, seen.keys = before.searched, before.keys
    user, group = os.geteuid(), os.getegid()
    names = set()
    with os.scandir(place) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                there = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if user and kind in ("own", "partly") and (there.st_uid, there.st_gid) != (user, group):
                seen.others.append((path, there.st_size))
            if not stat.S_ISDIR(there.st_mode):
                names.add(entry.name)
                seen.take(path, entry, there, now)
            elif kind == "git" and entry.name in _OF_GIT and "/annex" not in f"/{folder}":
                continue
            elif kind == "shipped" and os.path.basename(folder) not in _SHIPPED:
                for inner, folders, files in os.walk(entry.path):
                    below = path + inner[len(entry.path) :]
                    seen.named += [f"{below}/{name}" for name in stores_in(f"/{below}", files)]
                    folders[:] = [name for name in folders if not is_git(name)]
            else:
                seen.folders.append(entry.name)
    for kept in (seen.searched, seen.keys):
        for name in [name for name in kept if name not in names]:
            del kept[name]
    seen.searched = {name: version for name, version in seen.searched.items() if name not in seen.waiting}
    if now - max(status.st_mtime_ns, status.st_ctime_ns) > _TICK:
        seen.changed = version_of(status)
    return seen


def is_closed(status: os.stat_result) -> bool:
    """Whether it is ours but unreadable without a chmod."""
    wanted = 0o500 if stat.S_ISDIR(status.st_mode) else 0o400
    return 0 < os.geteuid() == status.st_uid and status.st_mode & wanted != wanted


def version_of(status: os.stat_result) -> tuple[int, int, int]:
    """Uses the change time, which programs cannot set."""
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def kind_below(kind: Kind, name: str) -> Kind:
    if kind in ("shipped", "git"):
        return kind
    if is_git(name):
        return "git"
    if name in _SHIPPED:
        return "shipped"
    return "partly" if name in _PARTLY else kind
