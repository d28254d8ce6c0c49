"""Every file of a folder, found by walking, for want of git. No library is needed to import it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tui_agent.files.names import is_text

#: No workspace is taken to have more; a home folder opened by mistake must not fill the memory.
MAX_FILES: Final = 500_000
#: Folders of version control: nothing in them is anybody's file.
CONTROL_FOLDERS: Final = frozenset({".git", ".hg", ".svn", ".jj"})
#: Folders that a walk without ignore rules leaves out.
_BULKY_FOLDERS: Final = frozenset({"node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache"})


class FileListing(Struct, frozen=True):
    """Paths, sorted, without doubles.

    `unnamed` counts files whose names are not UTF-8: they cannot be shown, asked for by a model or kept in a
    session, so they are left out here, at the edge, and the person is told. `cut` says that there were too many.
    `untracked` are those that git does not track, where it listed them; a repository inside ends in `/`.
    """

    paths: list[str]
    unnamed: int = 0
    cut: bool = False
    untracked: tuple[str, ...] = ()


def walk(root: str, limit: int = MAX_FILES) -> FileListing:
    """The files below `root` but for what is bulky everywhere. Links to folders are not followed. Folders that cannot
    be read count as empty."""
    found: list[str] = []
    for path in _files(root):
        if len(found) == limit:
            return _named(found, cut=True)
        found.append(path)
    return _named(found)


def holds_more(root: str, most: int, within: float) -> bool:
    """Whether a walk of at most `within` seconds finds more than `most` files."""
    end = time.monotonic() + within
    for count, _ in enumerate(_files(root), 1):
        if count > most:
            return True
        if count % 1_000 == 0 and time.monotonic() > end:
            return False
    return False


def as_texts(names: bytes) -> FileListing:
    """The names of a list that ends or parts them with NUL."""
    try:
        paths = names.decode().split("\0")
    except UnicodeDecodeError:
        return _named([os.fsdecode(name) for name in names.split(b"\0") if name])
    paths.sort()  # git hands over two runs that are sorted already: one merge
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
    """The names of the folders and of the files (links to files among them; pipes and devices not)."""
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
        pass  # gone, or not ours to read: the person sees an empty folder, as `ls` would show it
    return folders, files
