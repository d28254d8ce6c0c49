"""Secrets in a folder by name, symbolic or hard link, origin, and content.

Caches unchanged folders and files.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from msgspec import Struct

from tui_agent.files.folder_scan import (
    FolderScan,
    Identity,
    Keys,
    KeySearch,
    Kind,
    ModifiedFolders,
    is_closed,
    keys_in,
    kind_below,
    read_text,
    scan_folder,
    version_of,
)
from tui_agent.files.names import is_git
from tui_agent.files.operating_system import home_folder
from tui_agent.files.sensitive_paths import is_sample, is_secret, is_store

Why = Literal["name", "link", "origin", "content", "closed"]

#: Seconds that the gate reuses a scan, which reads thousands of files.
FRESH_SECONDS = 2.0
#: Number of files from which file events are used.
WATCHED_FROM = 3_000
#: Number of files from which a child searches them; its batch size.
CHILD_FROM, BATCH = 200, 500
#: Limits: entries around a folder scanned for other names of its files, links followed, linked files.
MOST_AROUND, MOST_LINKS, MOST_LINKED = 5_000, 5_000, 5_000
#: Smaller files, in bytes, are not identified by content: collisions are common.
SMALLEST_TOLD = 8


class SecretFile(Struct, frozen=True):
    """A secret at relative `path`. `by` is the name that makes it one: its own, a link's, or a previous one.
    By content: `what` and `line` are its first key, `digest` is the SHA-256. `closed`: an own file or
    folder without read permission, of unknown content.
    """

    path: str
    why: Why
    by: str = ""
    what: str = ""
    line: int = 0
    digest: str = ""


class Links(NamedTuple):
    """Secrets by link: files by identity and by path, and outside paths."""

    identities: frozenset[Identity] = frozenset()
    paths: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()


class SecretFiles:
    """Secrets below a folder: a workspace or, with `git`, a separate git folder. Thread-safe; methods that
    read the disk block.
    """

    def __init__(self, root: str | os.PathLike[str], *, git: bool = False) -> None:
        self.root = os.fspath(root)
        self._top: Kind = "git" if git else "own"
        self._folders: dict[str, FolderScan] = {}
        self._closed_folders: list[str] = []
        self._watch: ModifiedFolders | None = None
        self._walking = threading.RLock()
        self._searching = threading.Lock()
        self._closed = False
        self.progress = (0, 0)
        self.last: tuple[SecretFile, ...] = ()
        self._origins: dict[str, str] = {}
        self._bytes: dict[int, dict[str, str]] = {}
        self._copies: dict[str, str] = {}
        self._looked = -FRESH_SECONDS
        self._linked = Links()
        self._named_by: dict[str, str] = {}
        self._targets: dict[str, tuple[int, frozenset[Identity]]] = {}

    # ── for the gate: one file ───────────────────────────────────────────────────────────────────────────

    def is_linked(self, path: str, status: os.stat_result) -> bool:
        if not stat.S_ISREG(status.st_mode):
            return False
        if path in self._origins or self._copies.get(path):
            return True
        identity = status.st_dev, status.st_ino
        folders = ["", *(path[:at] for at, letter in enumerate(path) if letter == "/")]
        targets = frozenset[Identity]().union(*map(self._targets_in, folders))
        if not targets or identity in targets:
            leads_to = bool(targets)
        else:
            leads_to = any(_identity(os.path.join(self.root, folder)) in targets for folder in folders[1:])
        if leads_to:
            return True
        if not self._folders and status.st_nlink < 2:
            return False
        links = self._links()
        return identity in links.identities or path in links.paths

    def linked(self) -> frozenset[str]:
        return self._links(fresh=True).paths | frozenset(self._origins)

    def add_origin(self, path: str, of: str) -> None:
        """The file at `path` was renamed from a secret."""
        self._origins[path] = of

    def _targets_in(self, folder: str) -> frozenset[Identity]:
        place = os.path.join(self.root, folder)
        try:
            changed = os.stat(place).st_ctime_ns
            seen = self._targets.get(folder)
            if seen is None or seen[0] != changed:
                seen = self._targets[folder] = changed, frozenset(_targets(place, folder))
        except OSError:
            return frozenset()
        return seen[1]

    # ── all files ────────────────────────────────────────────────────────────────────────────────────────

    def scan(self) -> None:
        """Blocking; the first call is slow."""
        with self._searching:
            waiting = self._walk()
            self.progress = (0, len(waiting))
            child = None
            try:
                if len(waiting) >= CHILD_FROM:
                    with suppress(OSError):
                        child = KeySearch()
                for at in range(0, len(waiting), BATCH):
                    if self._closed:
                        return
                    batch = waiting[at : at + BATCH]
                    places = [os.path.join(self.root, folder, name) for folder, name in batch]
                    found: dict[str, Keys] | None = None
                    if child is not None:
                        with suppress(OSError):
                            found = child.keys_in(places)
                    if found is None:  # without a child, or it has ended
                        found = {place: keys for place in places if (keys := keys_in(place))}
                    with self._walking:
                        for (folder, name), place in zip(batch, places, strict=True):
                            if (entry := self._folders.get(folder)) is not None:
                                entry.was_searched(name, found.get(place))
                    self.progress = (at + len(batch), len(waiting))
            finally:
                self.progress = (0, 0)
                if child is not None:
                    child.close()

    def found(self) -> tuple[SecretFile, ...]:
        """Scans, then returns every secret by path. Blocking."""
        self.scan()
        linked = self._links(fresh=True).paths
        found: dict[str, SecretFile] = {}
        with self._walking:
            found |= {folder: SecretFile(folder, "closed") for folder in self._closed_folders}
            for folder, seen in self._folders.items():
                for name in seen.closed:
                    found[_joined(folder, name)] = SecretFile(_joined(folder, name), "closed")
                for name, keys in seen.keys.items():
                    path = _joined(folder, name)
                    kinds = [
                        one
                        for one in keys[1]
                        if seen.kind != "partly" or one[0] not in ("a private key", "a signed web token")
                    ]
                    if kinds:
                        found[path] = SecretFile(path, "content", path, *kinds[0], keys[0])
        for path, of in (*self._copies.items(), *self._origins.items()):
            if of and os.path.lexists(os.path.join(self.root, path)):
                found[path] = SecretFile(path, "origin", of)
        for path in linked:
            found[path] = SecretFile(path, "link", self._named_by.get(path, path))
        for path in self._named():
            found[path] = SecretFile(path, "name", path)
        self.last = tuple(found[path] for path in sorted(found))
        return self.last

    def is_known(self, path: str) -> bool:
        return is_secret(path) or path in self._named_by or path in self._origins or path in self._copies

    def outside(self) -> tuple[str, ...]:
        """Returns, after `found`, outside paths to which a link or its target gives a secret's name."""
        return tuple(sorted(self._linked.outside))

    def others(self) -> list[tuple[str, int]]:
        """Returns, after `found`, other users' files and sizes."""
        with self._walking:
            return [one for seen in self._folders.values() for one in seen.others]

    def told_by_bytes(self, data: bytes) -> str:
        """Returns the path of a secret with these present or past bytes, or ""."""
        known = self._bytes.get(len(data))
        return known.get(hashlib.sha256(data).hexdigest(), "") if known else ""

    def close(self) -> None:
        self._closed = True

    def _named(self) -> list[str]:
        with self._walking:
            return [path for seen in self._folders.values() for path in seen.named]

    def repositories(self) -> list[str]:
        """Absolute paths of subfolders with their own `.git`."""
        with self._walking:
            folders = [folder.rpartition("/") for folder in self._folders]
        return sorted(os.path.join(self.root, above) for above, _, name in folders if above and is_git(name))

    def _walk(self) -> list[tuple[str, str]]:
        with self._walking:
            seen, self._folders = self._folders, {}
            self._closed_folders = []
            touched = self._watch.take() if self._watch else None
            folders: list[tuple[str, Kind]] = [("", self._top)]
            fresh: list[str] = []
            while folders:
                folder, kind = folders.pop()
                place = os.path.join(self.root, folder) if folder else self.root
                try:
                    status = os.lstat(place)
                    changed = version_of(status)
                    entry = seen.get(folder)
                    if entry is None or entry.changed != changed:
                        if self._watch:
                            self._watch.add(place, folder)
                        entry = scan_folder(place, folder, kind, status, entry)
                        fresh.append(folder)
                    elif touched is None or folder in touched:
                        entry.rescan_modified(place)
                except OSError as error:
                    if isinstance(error, PermissionError) and is_closed(status):
                        self._closed_folders.append(folder)
                    continue
                self._folders[folder] = entry
                folders += [(_joined(folder, name), kind_below(kind, name)) for name in entry.folders]
            self._know_bytes(fresh)
            waiting = [(folder, name) for folder, entry in self._folders.items() for name in entry.waiting]
            searched = sum(len(entry.searched) for entry in self._folders.values())
            if not self._watch and searched >= WATCHED_FROM:
                with suppress(OSError):
                    self._watch = ModifiedFolders()
                    for folder in self._folders:
                        self._watch.add(os.path.join(self.root, folder), folder)
                    # Files written until now are checked once more.
            return waiting

    def _know_bytes(self, folders: Collection[str]) -> None:
        """Hashes the secrets and finds files with the same bytes: among all files if a secret is new."""
        new: set[int] = set()
        for folder in folders:
            for path in self._folders[folder].named:
                if self._folders[folder].kind == "own" and (data := self._bytes_of(path)) is not None:
                    known, digest = self._bytes.setdefault(len(data), {}), hashlib.sha256(data).hexdigest()
                    new |= {len(data)} if digest not in known else set()
                    known.setdefault(digest, path)
        fresh = set(folders)
        for folder in self._folders if new else folders:
            sizes = self._bytes.keys() if folder in fresh else new
            for name, size in self._folders[folder].sizes.items():
                path = _joined(folder, name)
                if folder in fresh:
                    self._copies.pop(path, None)
                if size in sizes and not is_sample(path):
                    data = self._bytes_of(path)
                    if data is not None and (of := self.told_by_bytes(data)):
                        self._copies[path] = of

    def _bytes_of(self, path: str) -> bytes | None:
        data = read_text(os.path.join(self.root, path))
        return data if data is not None and len(data) >= SMALLEST_TOLD else None

    # ── links ────────────────────────────────────────────────────────────────────────────────────────────

    def _links(self, *, fresh: bool = False) -> Links:
        with self._walking:
            if time.monotonic() - self._looked < FRESH_SECONDS and not fresh:
                return self._linked
            if not fresh:
                self._walk()
            named = set(self._named())
            by: dict[str, str] = {}
            outside: set[str] = set()
            links = [path for seen in self._folders.values() for path in seen.links]
            for path in links[:MOST_LINKS]:
                end = os.path.realpath(os.path.join(self.root, path))
                secret = _gives_name(path, os.path.isdir(end))
                if end.startswith(f"{self.root}/"):
                    if secret:
                        by |= dict.fromkeys(_files_at(end, len(self.root) + 1), path)
                elif secret or is_secret(end):
                    outside.add(end)
            several: dict[Identity, list[str]] = {}
            missing: set[Identity] = set()
            for seen in self._folders.values():
                for path, identity, _ in seen.several:
                    several.setdefault(identity, []).append(path)
            counts = {one: count for seen in self._folders.values() for _, one, count in seen.several}
            identities: set[Identity] = set()
            for identity, paths in several.items():
                secret = next((path for path in paths if path in named or path in by), "")
                if secret:
                    identities.add(identity)
                    by |= {path: secret for path in paths if path != secret}
                elif counts[identity] > len(paths):
                    missing.add(identity)
            for identity in missing & _around(self.root) if missing else ():
                identities.add(identity)
                by |= dict.fromkeys(several[identity], "a file outside of this folder")
            for path in [path for path in by if path not in several]:
                with suppress(OSError):
                    status = os.stat(os.path.join(self.root, path))
                    identities.add((status.st_dev, status.st_ino))
            self._named_by = by
            self._linked = Links(frozenset(identities), frozenset(by) - named, frozenset(outside))
            self._looked = time.monotonic()
            return self._linked


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _targets(place: str, folder: str) -> Iterator[Identity]:
    with os.scandir(place) as entries:
        for entry in entries:
            if not entry.is_symlink() or not (identity := _identity(entry.path)):
                continue
            if _gives_name(os.path.join(folder, entry.name), entry.is_dir()):
                yield identity


def _identity(place: str) -> Identity | None:
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _gives_name(link: str, leads_to_folder: bool) -> bool:
    return is_secret(f"{link}/x" if leads_to_folder else link)


def _files_at(place: str, cut: int) -> list[str]:
    if not os.path.isdir(place):
        return [place[cut:]] if os.path.lexists(place) else []
    found: list[str] = []
    for folder, _, names in os.walk(place):
        found += [f"{folder}/{name}"[cut:] for name in names]
        if len(found) > MOST_LINKED:
            break
    return found


def _around(root: str) -> frozenset[Identity]:
    home = home_folder()
    places, found, left = [home], set(), MOST_AROUND
    above = os.path.dirname(root)
    while above not in ("/", home):
        places.append(above)
        above = os.path.dirname(above)
    waiting: list[tuple[str, int]] = [(place, 2) for place in places]
    while waiting:
        place, depth = waiting.pop(0)
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                return frozenset(found)
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if depth > 1 and entry.path != root:
                        waiting.append((entry.path, depth - 1))
                elif is_secret(entry.path.removeprefix(f"{home}/")) or is_store(entry.path):
                    status = entry.stat(follow_symlinks=False)
                    found.add((status.st_dev, status.st_ino))
    return frozenset(found)
