"""Which folders are watched: all but what is ignored, and nothing behind a link. Lives in the child.

The watcher follows links, and a folder that is watched as a whole is watched with what is ignored inside it. So
only folders without either are watched as a whole; the folders above those are watched for themselves alone. Where
there are many files every folder is: for a whole folder the watcher looks at each file in it, to find the folders.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tui_agent.files.systems import Stamp, stamp_of
from tui_agent.git.repository import Repository, ignored_folders, ignored_folders_without_repository
from tui_agent.workspace.walk import CONTROL_FOLDERS

#: Files of a git folder that say that the status may have changed.
GIT_SIGNS: Final = frozenset(
    {"HEAD", "index", "config", "COMMIT_EDITMSG", "FETCH_HEAD", "MERGE_HEAD", "ORIG_HEAD", "packed-refs"}
)
#: A change of it changes what is listed.
IGNORE_FILE: Final = ".gitignore"
#: In a tree of more files each folder is watched for itself alone.
MANY_FILES: Final = 5000


class WatchPlan(Struct, frozen=True):
    """Absolute folders: `single` are watched for themselves, `whole` with all below. `git_folders` are git's own.

    `seen` are all folders that are watched, and their ignore files, with the stamps that they had before they were
    looked at: what is there, and what git says of it, is another only where one of these is.
    """

    single: frozenset[str]
    whole: frozenset[str]
    git_folders: frozenset[str] = frozenset()
    seen: Mapping[str, Stamp | None] = {}

    def newest(self) -> float:
        """When something was last added, removed or renamed, in seconds of the system's clock; now where a folder
        has gone. Times that programs can set count for nothing."""
        try:
            return max((os.lstat(place).st_ctime for place in self.seen), default=0.0)
        except OSError:
            return time.time()

    def holds(self) -> bool:
        """Whether nothing came or went in a folder that is watched for itself alone since the plan was made: what
        was made in it before the watcher listened would not be watched."""
        return all(stamp_of(place) == self.seen[place] for place in self.single - self.git_folders)


def make_plan(root: str, repository: Repository | None) -> WatchPlan:
    """Look through the folders and say how to watch them."""
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
    """All folders to be watched (relative, the root is ""), those with an ignored or linked one below, the ignore
    files in them, and how many files they hold."""
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
    """Its own, `info` with the excludes, `logs` where every move of HEAD is written."""
    beside = (os.path.join(repository.common_dir, "info"), os.path.join(repository.git_dir, "logs"))
    return {repository.git_dir, *filter(os.path.isdir, beside)}


def _entries(folder: str) -> tuple[list[str], bool, list[str]]:
    """The names of the folders, whether a link to a folder is among the entries, and the names of the files."""
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
        pass  # gone, or not ours to read
    return folders, links, files
