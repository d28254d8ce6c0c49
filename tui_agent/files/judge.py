"""The one judge of which files of a folder are secrets: by a name, by a link of either kind, by origin, by content.

The gate asks it about one file, a view about all of them. Of a folder whose entries did not change, and of a file that
was not written, it remembers what it saw.
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

from tui_agent.files.folder_looks import FolderLook, Identity, Kind, is_closed, kind_below, look, version_of
from tui_agent.files.key_search import Keys, KeySearch, keys_in, read_text
from tui_agent.files.names import is_git
from tui_agent.files.sensitive import is_sample, is_secret, is_store
from tui_agent.files.touched import TouchedFolders

Why = Literal["name", "link", "origin", "content", "closed"]

#: For so long one look at a folder counts for the gate, in seconds: a search reads thousands of files.
FRESH_SECONDS = 2.0
#: From so many files on the system is asked which were written; fewer are looked at each time.
WATCHED_FROM = 3_000
#: From so many files on a child searches them.
CHILD_FROM, BATCH = 200, 500
#: Entries around a folder that are looked at for the other names of its files, and links that are followed.
MOST_AROUND, MOST_LINKS, MOST_LINKED = 5_000, 5_000, 5_000
#: Smaller files are not told by their bytes: too many have the same.
SMALLEST_TOLD = 8


class SecretFile(Struct, frozen=True):
    """A secret by its relative `path`. `by` is the name that makes it one: its own, a link's, or the one that it had.
    Nobody knows what is in one that is closed: a file or folder of our own that we may not read, but may open.

    Where its content does, `what` and `line` say which key it holds first, and `digest` is the SHA-256 of its bytes.
    """

    path: str
    why: Why
    by: str = ""
    what: str = ""
    line: int = 0
    digest: str = ""


class Links(NamedTuple):
    """What links of either kind make a secret: files by identity and by path, and absolute paths outside."""

    identities: frozenset[Identity] = frozenset()
    paths: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()


class SecretFiles:
    """Knows the secrets below a folder, which is a workspace or, with `git`, a folder that git keeps elsewhere.

    Every method may be called from any thread; those that look at the disk block.
    """

    def __init__(self, root: str | os.PathLike[str], *, git: bool = False) -> None:
        self.root = os.fspath(root)
        self._top: Kind = "git" if git else "own"
        self._folders: dict[str, FolderLook] = {}
        self._closed_folders: list[str] = []
        self._watch: TouchedFolders | None = None
        self._walking = threading.RLock()
        self._searching = threading.Lock()
        self._closed = False
        #: Files that the search has behind it, and all that it has to look at, while it works.
        self.progress = (0, 0)
        #: What was found the last time.
        self.last: tuple[SecretFile, ...] = ()
        #: Paths that were renamed from a secret, with its name.
        self._origins: dict[str, str] = {}
        #: The bytes of secrets by name, hashed, by size: the name that had them.
        self._bytes: dict[int, dict[str, str]] = {}
        self._copies: dict[str, str] = {}
        self._looked = -FRESH_SECONDS
        self._linked = Links()
        #: What makes a path in there a secret: the path of a link or of another name.
        self._named_by: dict[str, str] = {}
        self._targets: dict[str, tuple[int, frozenset[Identity]]] = {}

    # ── for the gate: one file ───────────────────────────────────────────────────────────────────────────

    def is_linked(self, path: str, status: os.stat_result) -> bool:
        """Whether a regular file is, by a link or by where it came from, another name of a secret. Blocking."""
        if not stat.S_ISREG(status.st_mode):
            return False
        if path in self._origins or self._copies.get(path):
            return True
        identity = status.st_dev, status.st_ino
        if self._leads_to(path, identity):
            return True
        if not self._folders and status.st_nlink < 2:
            return False
        links = self._links()
        return identity in links.identities or path in links.paths

    def linked(self) -> frozenset[str]:
        """All paths in this folder that are other names of what looks like a secret. Blocking."""
        return self._links(fresh=True).paths | frozenset(self._origins)

    def add_origin(self, path: str, of: str) -> None:
        """Say that the file at a path was renamed from a secret."""
        self._origins[path] = of

    def _leads_to(self, path: str, identity: Identity) -> bool:
        """Whether a link with the name of a secret, in a folder on the way to `path`, leads to the file. Blocking."""
        folders = ["", *(path[:at] for at, letter in enumerate(path) if letter == "/")]
        targets = frozenset[Identity]().union(*map(self._targets_in, folders))
        if not targets or identity in targets:
            return bool(targets)
        return any(_identity(os.path.join(self.root, folder)) in targets for folder in folders[1:])

    def _targets_in(self, folder: str) -> frozenset[Identity]:
        """What the links in a folder lead to that have names of secrets; looked at again when its entries change."""
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
        """Look at everything that is new or was written since the last time. Blocking; the first time for long."""
        with self._searching:
            waiting = self._walk()
            self.progress = (0, len(waiting))
            try:
                self._search(waiting)
            finally:
                self.progress = (0, 0)

    def found(self) -> tuple[SecretFile, ...]:
        """Every secret, by path, as `scan` would find it now. Blocking."""
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
                    kinds = _counted(keys, seen.kind)
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
        """Whether a path is, or was, one of a secret file, by any of its names."""
        return is_secret(path) or path in self._named_by or path in self._origins or path in self._copies

    def outside(self) -> tuple[str, ...]:
        """Absolute paths outside that a link in here, or its target, gives the name of a secret, after `found`."""
        return tuple(sorted(self._linked.outside))

    def others(self) -> list[tuple[str, int]]:
        """What belongs to somebody else, after `found`: paths with sizes."""
        with self._walking:
            return [one for seen in self._folders.values() for one in seen.others]

    def told_by_bytes(self, data: bytes) -> str:
        """The path of the secret that these are, or were, the bytes of; "" where they are of none."""
        known = self._bytes.get(len(data))
        return known.get(hashlib.sha256(data).hexdigest(), "") if known else ""

    def close(self) -> None:
        """Stop a search that is on its way."""
        self._closed = True

    def _named(self) -> list[str]:
        with self._walking:
            return [path for seen in self._folders.values() for path in seen.named]

    def repositories(self) -> list[str]:
        """Absolute paths of folders below the root that have a `.git` of their own, as they were last seen."""
        with self._walking:
            folders = [folder.rpartition("/") for folder in self._folders]
        return sorted(os.path.join(self.root, above) for above, _, name in folders if above and is_git(name))

    def _walk(self) -> list[tuple[str, str]]:
        """Look at every folder that has other entries, and every file that was written; what has to be searched."""
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
                        entry = look(place, folder, kind, status, entry)
                        fresh.append(folder)
                    elif touched is None or folder in touched:
                        entry.look_again(place)
                except OSError as error:
                    if isinstance(error, PermissionError) and is_closed(status):
                        self._closed_folders.append(folder)
                    continue  # it went, or is somebody else's
                self._folders[folder] = entry
                folders += [(_joined(folder, name), kind_below(kind, name)) for name in entry.folders]
            self._know_bytes(fresh)
            waiting = [(folder, name) for folder, entry in self._folders.items() for name in entry.waiting]
            self._begin_to_watch()
            return waiting

    def _begin_to_watch(self) -> None:
        if self._watch or sum(len(entry.searched) for entry in self._folders.values()) < WATCHED_FROM:
            return
        with suppress(OSError):
            self._watch = TouchedFolders()
            for folder in self._folders:
                self._watch.add(os.path.join(self.root, folder), folder)
            # what was written until now is looked at once more

    def _know_bytes(self, folders: Collection[str]) -> None:
        """Keep what the secrets are like, and find the files that have the bytes of one: of all, where one is new."""
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

    def _search(self, waiting: list[tuple[str, str]]) -> None:
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
                found = _keys_of(places, child)
                with self._walking:
                    for (folder, name), place in zip(batch, places, strict=True):
                        if (entry := self._folders.get(folder)) is not None:
                            entry.was_searched(name, found.get(place))
                self.progress = (at + len(batch), len(waiting))
        finally:
            if child is not None:
                child.close()

    # ── links ────────────────────────────────────────────────────────────────────────────────────────────

    def _links(self, *, fresh: bool = False) -> Links:
        with self._walking:
            if time.monotonic() - self._looked >= FRESH_SECONDS or fresh:
                if not fresh:
                    self._walk()
                self._linked = self._find_links()
                self._looked = time.monotonic()
            return self._linked

    def _find_links(self) -> Links:
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
        return Links(frozenset(identities), frozenset(by) - named, frozenset(outside))


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _counted(keys: Keys, kind: Kind) -> list[tuple[str, int]]:
    """The kinds of keys that count in a folder: dependencies bring private keys for their tests."""
    return [
        one for one in keys[1] if kind != "partly" or one[0] not in ("a private key", "a signed web token")
    ]


def _keys_of(places: list[str], child: KeySearch | None) -> dict[str, Keys]:
    if child is not None:
        with suppress(OSError):
            return child.keys_in(places)
    return {place: keys for place in places if (keys := keys_in(place))}


def _targets(place: str, folder: str) -> Iterator[Identity]:
    with os.scandir(place) as entries:
        for entry in entries:
            if not entry.is_symlink() or not (identity := _identity(entry.path)):
                continue
            if _gives_name(os.path.join(folder, entry.name), entry.is_dir()):
                yield identity


def _identity(place: str) -> Identity | None:
    """Which file or folder a place leads to; None where it leads nowhere."""
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _gives_name(link: str, leads_to_folder: bool) -> bool:
    """Whether what a link leads to is a secret by the link's name: `.env` for a file, `.aws` for a folder."""
    return is_secret(f"{link}/x" if leads_to_folder else link)


def _files_at(place: str, cut: int) -> list[str]:
    """The file at a place, or those below it, without the first letters of their paths."""
    if not os.path.isdir(place):
        return [place[cut:]] if os.path.lexists(place) else []
    found: list[str] = []
    for folder, _, names in os.walk(place):
        found += [f"{folder}/{name}"[cut:] for name in names]
        if len(found) > MOST_LINKED:
            break
    return found


def _around(root: str) -> frozenset[Identity]:
    """The secrets by name in the home, in the folders above a folder, and in those beside it."""
    home = os.path.realpath(os.environ.get("HOME") or "/nonexistent")
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
