"""What of a workspace needs care in a view: files that look like secrets, and files of other owners."""

from __future__ import annotations

import os
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import NamedTuple

from tui_agent.files.names import is_git
from tui_agent.files.sensitive import is_secret
from tui_agent.trial.plan import MEGABYTE, Seed

#: What others made and the workspace only uses: the certificates and test keys in there have to be readable.
_DEPENDENCIES = frozenset(
    {"node_modules", "site-packages", "vendor", "target", ".tox", ".nox", "__pycache__"}
)


#: Of how many files and bytes of somebody else a view has copies.
MOST_OWNED, MOST_OWNED_BYTES = 2_000, 64 * MEGABYTE


class _Folder(NamedTuple):
    """What is in a folder: secrets, folders to go on with, and what belongs to somebody else, with its size."""

    changed: int
    secrets: tuple[str, ...]
    folders: tuple[str, ...]
    others: tuple[tuple[str, int], ...]


class HiddenFiles:
    """Knows the secret-looking files below a root; of a folder that did not change, it remembers what it saw."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: dict[str, _Folder] = {}

    def paths(self, revealed: Collection[str] = ()) -> list[str]:
        """Their relative paths, without those that a glob of `revealed`, the person's choice, fits. Blocking."""
        found: list[str] = []
        waiting, seen = [""], self._folders
        self._folders = {}
        while waiting:
            folder = waiting.pop()
            place = os.path.join(self._root, folder)
            try:
                changed = os.lstat(place).st_mtime_ns
                entry = seen.get(folder)
                if entry is None or entry.changed != changed:
                    entry = _Folder(changed, *_look(place, folder))
            except OSError:
                continue  # it went, or nobody may look into it
            self._folders[folder] = entry
            found += entry.secrets
            waiting += entry.folders
        return sorted(path for path in found if not any(fnmatchcase(path, glob) for glob in revealed))

    def owned(self) -> tuple[list[Seed], str]:
        """Files and folders of somebody else, as `paths` has seen them, which a layer holds only as one's own.

        Where there are too many: none, and a sentence. For root everybody's files are its own.
        """
        others = [one for folder in self._folders.values() for one in folder.others]
        if len(others) > MOST_OWNED or sum(size for _, size in others) > MOST_OWNED_BYTES:
            return [], (
                f"Commands cannot write the {len(others):,} files here that belong to somebody else: "
                "they are too many to copy for each run"
            )
        return [Seed(path, "owned") for path, _ in sorted(others)], ""


def _look(place: str, folder: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, int], ...]]:
    secrets, folders, others = [], [], []
    user, group = os.geteuid(), os.getegid()
    with os.scandir(place) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if user:
                status = entry.stat(follow_symlinks=False)
                if (status.st_uid, status.st_gid) != (user, group):
                    others.append((path, status.st_size))
            if not entry.is_dir(follow_symlinks=False):
                if is_secret(path):
                    secrets.append(path)
            elif not _is_of_others(entry):
                folders.append(path)
    return tuple(secrets), tuple(folders), tuple(others)


def _is_of_others(folder: os.DirEntry[str]) -> bool:
    return folder.name in _DEPENDENCIES or is_git(folder.name) or os.path.exists(f"{folder.path}/pyvenv.cfg")
