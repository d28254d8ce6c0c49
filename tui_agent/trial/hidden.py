"""The files of a workspace that no command may read: those that look like secrets, by their names."""

from __future__ import annotations

import os
from collections.abc import Collection

from tui_agent.files.names import is_git
from tui_agent.files.sensitive import is_secret

#: What others made and the workspace only uses: the certificates and test keys in there have to be readable.
_DEPENDENCIES = frozenset(
    {"node_modules", "site-packages", "vendor", "target", ".tox", ".nox", "__pycache__"}
)


class HiddenFiles:
    """Knows the secret-looking files below a root; of a folder that did not change, it remembers what it saw."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {}

    def paths(self, revealed: Collection[str] = ()) -> list[str]:
        """Their relative paths, without those that the person lets commands see. Blocking."""
        found: list[str] = []
        waiting, seen = [""], self._folders
        self._folders = {}
        while waiting:
            folder = waiting.pop()
            place = os.path.join(self._root, folder)
            try:
                changed = os.lstat(place).st_mtime_ns
                entry = seen.get(folder)
                if entry is None or entry[0] != changed:
                    entry = (changed, *_look(place, folder))
            except OSError:
                continue  # it went, or nobody may look into it
            self._folders[folder] = entry
            found += entry[1]
            waiting += entry[2]
        return sorted(path for path in found if path not in revealed)


def _look(place: str, folder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The secret-looking files in a folder, and the folders to go on with."""
    secrets, folders = [], []
    with os.scandir(place) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not entry.is_dir(follow_symlinks=False):
                if is_secret(path):
                    secrets.append(path)
            elif not _is_of_others(entry):
                folders.append(path)
    return tuple(secrets), tuple(folders)


def _is_of_others(folder: os.DirEntry[str]) -> bool:
    return folder.name in _DEPENDENCIES or is_git(folder.name) or os.path.exists(f"{folder.path}/pyvenv.cfg")
