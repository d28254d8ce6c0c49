"""Files that have the name of a secret by a link, hard or not, and another one that tells nothing."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from tui_agent.files.names import is_git
from tui_agent.files.sensitive import is_secret

#: A file by device and inode.
Identity = tuple[int, int]
#: For so long one look at a folder counts, in seconds: a search reads thousands of files.
FRESH_SECONDS = 2.0


class LinkedSecrets:
    """Looks through a folder, when somebody first reads a file with several names, for the secrets among such files."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._looked = -FRESH_SECONDS
        self._found: frozenset[Identity] = frozenset()
        self._targets: dict[str, tuple[int, frozenset[Identity]]] = {}

    def leads_to(self, path: str, identity: Identity) -> bool:
        """Whether a link with the name of a secret, in a folder on the way to `path`, leads to the file. Blocking."""
        folders = ["", *(path[:at] for at, letter in enumerate(path) if letter == "/")]
        return any(identity in self._targets_in(folder) for folder in folders)

    def _targets_in(self, folder: str) -> frozenset[Identity]:
        """What the links in a folder lead to that have names of secrets; looked at again when its entries change."""
        place = os.path.join(self._root, folder)
        try:
            changed = os.stat(place).st_mtime_ns
            seen = self._targets.get(folder)
            if seen is None or seen[0] != changed:
                seen = self._targets[folder] = changed, frozenset(_targets(place, folder))
        except OSError:
            return frozenset()
        return seen[1]

    def files(self) -> frozenset[Identity]:
        """The files with several names of which one, in this folder, looks like a secret. Blocking."""
        if time.monotonic() - self._looked >= FRESH_SECONDS:
            several = ((path, _several_names(entry)) for path, entry in _entries(self._root))
            self._found = frozenset(identity for path, identity in several if identity and is_secret(path))
            self._looked = time.monotonic()
        return self._found

    def paths(self) -> frozenset[str]:
        """All paths in this folder that are other names, by a link of either kind, of what looks like a secret. For
        a copy, in which those names are missing. Blocking."""
        secrets, found = self.files(), set()
        for path, entry in _entries(self._root):
            if entry.is_symlink():
                target = os.path.realpath(entry.path) if is_secret(path) else ""
                if target.startswith(f"{self._root}/"):
                    found.add(target[len(self._root) + 1 :])
            elif secrets and _several_names(entry) in secrets:
                found.add(path)
        return frozenset(found)


def _targets(place: str, folder: str) -> Iterator[Identity]:
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_symlink() and is_secret(os.path.join(folder, entry.name)):
                try:
                    status = entry.stat()
                except OSError:
                    continue  # it leads nowhere
                yield status.st_dev, status.st_ino


def _several_names(entry: os.DirEntry[str]) -> Identity | None:
    """Which file it is, if it is one that has another name too."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # it went just now
    several = status.st_nlink > 1 and stat.S_ISREG(status.st_mode)
    return (status.st_dev, status.st_ino) if several else None


def _entries(root: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file below a folder, after its path; what git keeps in there is left out."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        yield path, entry
                    elif not is_git(entry.name):
                        waiting.append(path)
        except OSError:
            continue  # it went, or may not be looked into, and then nothing in it can be read either
