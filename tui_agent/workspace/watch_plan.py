"""Selects the folders to watch: all that are neither ignored nor behind a link. Runs in the child.

The watcher follows links, and a recursive watch includes ignored folders. Therefore only folders that
contain neither are watched recursively; folders above them are watched individually. In large trees all
folders are watched individually, because a recursive watch scans every file to find folders.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tui_agent.files.operating_system import Stamp, stamp_of
from tui_agent.git.repository import Repository, ignored_folders, ignored_folders_without_repository
from tui_agent.workspace.walk import CONTROL_FOLDERS

#: Files in a git folder that indicate a possible status change.
GIT_SIGNS: Final = frozenset(
    {"HEAD", "index", "config", "COMMIT_EDITMSG", "FETCH_HEAD", "MERGE_HEAD", "ORIG_HEAD", "packed-refs"}
)
#: Its changes affect the listing.
IGNORE_FILE: Final = ".gitignore"
#: In larger trees every folder is watched individually.
MANY_FILES: Final = 5000


class WatchPlan(Struct, frozen=True):
    """Absolute folders: `single` are watched individually, `whole` recursively. `git_folders` belong to git.

    `seen` maps all watched folders and their ignore files to their stamps before the scan; listing and
    status are unchanged while the stamps are equal.
    """

    single: frozenset[str]
    whole: frozenset[str]
    git_folders: frozenset[str] = frozenset()
    seen: Mapping[str, Stamp | None] = {}

    def newest(self) -> float:
        """The time of the latest addition, removal or rename by the system clock; now if a folder is missing.
        Uses ctime, which programs cannot set."""
        try:
            return max((os.lstat(place).st_ctime for place in self.seen), default=0.0)
        except OSError:
            return time.time()

    def holds(self) -> bool:
        """Whether no individually watched folder has changed since the plan; folders created before the watch
        would be missed."""
        return all(stamp_of(place) == self.seen[place] for place in self.single - self.git_folders)


def make_plan(root: str, repository: Repository | None) -> WatchPlan:
    ignored = ignored_folders(repository) if repository else ignored_folders_without_repository(root)
    folders, mixed, ignore_files, count = _folders(root, ignored)
    if count > MANY_FILES:
        mixed = set(folders)
    single = {_absolute(root, folder) for folder in mixed}
    whole = {
        _absolute(root, folder) for folder in folders.keys() - mixed if not folder or _parent(folder) in mixed
    }
    signs = _git_folders(repository) if repository else set()
    seen = {_absolute(root, folder): stamp for folder, stamp in folders.items()}
    seen |= {place: stamp_of(place) for place in (*(_absolute(root, path) for path in ignore_files), *signs)}
    return WatchPlan(frozenset(single | signs), frozenset(whole), frozenset(signs), seen)


def _folders(root: str, ignored: set[str]) -> tuple[dict[str, Stamp | None], set[str], list[str], int]:
    """Folders to watch (relative, the root is ""), those with an ignored or linked folder below, their ignore
    files, and the number of files."""
    ignore_files: list[str] = []
    count = 0
    folders: dict[str, Stamp | None] = {}
    mixed: set[str] = set()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        place = _absolute(root, folder)
        folders[folder] = stamp_of(place)
        below, links, files = _entries(place)
        count += len(files)
        prefix = folder + "/" if folder else ""
        if IGNORE_FILE in files:
            ignore_files.append(prefix + IGNORE_FILE)
        kept = [name for name in below if name not in CONTROL_FOLDERS and prefix + name not in ignored]
        waiting += [prefix + name for name in kept]
        if links or len(kept) < len(below):
            _mark_upwards(folder, mixed)
    return folders, mixed, ignore_files, count


def _mark_upwards(folder: str, mixed: set[str]) -> None:
    while folder not in mixed:
        mixed.add(folder)
        folder = _parent(folder)


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0]


def _absolute(root: str, folder: str) -> str:
    return os.path.join(root, folder) if folder else root


def _git_folders(repository: Repository) -> set[str]:
    beside = (os.path.join(repository.common_dir, "info"), os.path.join(repository.git_dir, "logs"))
    return {repository.git_dir, *filter(os.path.isdir, beside)}


def _entries(folder: str) -> tuple[list[str], bool, list[str]]:
    folders: list[str] = []
    files: list[str] = []
    links = False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_symlink():
                    links = links or entry.is_dir()
                else:
                    files.append(entry.name)
    except OSError:
        pass
    return folders, links, files
