"""Lists files by walking the folder, without git. Uses only the standard library."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tui_agent.files.names import is_text

#: Maximum files of a workspace; bounds memory if a home folder is opened by mistake.
MAX_FILES: Final = 500_000
CONTROL_FOLDERS: Final = frozenset({".git", ".hg", ".svn", ".jj"})
_BULKY_FOLDERS: Final = frozenset({"node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache"})


class FileListing(Struct, frozen=True):
    """Paths, sorted and without duplicates.

    `unnamed` counts files whose names are not UTF-8: they cannot be displayed, requested by a model or
    stored in a session, so they are omitted and reported to the user. `cut`: there were too many files.
    `untracked` are paths not tracked by git, if git listed them; nested repositories end in `/`.
    """

    paths: list[str]
    unnamed: int = 0
    cut: bool = False
    untracked: tuple[str, ...] = ()


def walk(root: str, limit: int = MAX_FILES) -> FileListing:
    """The files below `root`, without large generated folders. Does not follow links to folders. Unreadable
    folders count as empty."""
    found: list[str] = []
    for path in _files(root):
        if len(found) == limit:
            return _named(found, cut=True)
        found.append(path)
    return _named(found)


def holds_more(root: str, most: int, within: float) -> bool:
    end = time.monotonic() + within
    for count, _ in enumerate(_files(root), 1):
        if count > most:
            return True
        if count % 1_000 == 0 and time.monotonic() > end:
            return False
    return False


def as_texts(names: bytes) -> FileListing:
    try:
        paths = names.decode().split("\0")
    except UnicodeDecodeError:
        return _named([os.fsdecode(name) for name in names.split(b"\0") if name])
    paths.sort()  # merges git's two sorted runs
    return FileListing([path for path in dict.fromkeys(paths) if path])


def _named(paths: list[str], *, cut: bool = False) -> FileListing:
    kept = sorted({path for path in paths if is_text(path)})
    return FileListing(kept, len(set(paths)) - len(kept), cut)


def _files(root: str) -> Iterator[str]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        folders, files = _entries(os.path.join(root, folder))
        yield from (folder + name for name in files)
        waiting += [f"{folder}{name}/" for name in folders if name not in CONTROL_FOLDERS | _BULKY_FOLDERS]


def _entries(folder: str) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=True):
                    files.append(entry.name)
    except OSError:
        pass  # removed or unreadable: shown as an empty folder
    return folders, files
