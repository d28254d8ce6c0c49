"""Lists files by a walk, without git, or through the child in parts."""

from __future__ import annotations

import asyncio
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tui_agent.files.names import is_text
from tui_agent.processes.child import ChildProcess

#: Bounds memory if a home folder is opened by mistake.
MAX_FILES: Final = 500_000
CONTROL_FOLDERS: Final = frozenset({".git", ".hg", ".svn", ".jj"})
#: Up to this many paths are removed from a list one by one.
FEW: Final = 64
_BULKY_FOLDERS: Final = frozenset({"node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache"})


class FileListing(Struct, frozen=True):
    """Paths, sorted and without duplicates.

    `unnamed` counts files whose names are not UTF-8: they cannot be displayed, requested or stored, so
    they are omitted and reported. `cut`: too many files. `untracked`: paths not tracked by git, if git
    listed them; nested repositories end in `/`.
    """

    paths: list[str]
    unnamed: int = 0
    cut: bool = False
    untracked: tuple[str, ...] = ()


def walk(root: str, limit: int = MAX_FILES) -> FileListing:
    """Lists files, without large generated folders and links to folders. Unreadable folders count as empty."""
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
        folders: list[str] = []
        files: list[str] = []
        with suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif os.path.isfile(entry):  # `entry.is_file` raises for a circular link.
                    files.append(entry.name)
        yield from (folder + name for name in files)
        waiting += [f"{folder}{name}/" for name in folders if name not in CONTROL_FOLDERS | _BULKY_FOLDERS]


class PathListing(Struct, frozen=True):
    """Sorted, without duplicates. `note` is for the user. `status` has the fields of `GitStatus`; None if
    not available yet.
    """

    paths: list[str]
    note: str = ""
    status: dict[str, Any] | None = None


async def list_by_child(
    child: ChildProcess, root: Path, known: list[str], on_listed: Callable[[PathListing], None] | None = None
) -> PathListing:
    """Returns the files found by git or a walk in the child. Raises `ChildFailed`.

    `known` is the previous list, returned itself if nothing changed. `on_listed` receives the paths
    before git checks for deleted files.
    """
    gathered = _ListingParts(known)
    note, status = "", None
    async for item in child.stream("list", {"root": str(root)}):
        match item:
            case {"paths": part}:
                gathered.add(part)
            case {"source": _}:
                note = _note(item)
            case {"listed": True} if on_listed is not None:
                on_listed(PathListing(gathered.paths, note))
            case {"gone": gone, "status": status}:
                gathered.remove(gone)
    return PathListing(gathered.paths, note, status)


class _ListingParts:
    """Drops parts equal to the known paths at once, to avoid a second list and a long comparison."""

    def __init__(self, known: list[str]) -> None:
        self._known = known
        self._same = 0
        self._paths: list[str] | None = None

    @property
    def paths(self) -> list[str]:
        if self._paths is None and self._same == len(self._known):
            return self._known
        return self._changed()

    def add(self, part: list[str]) -> None:
        end = self._same + len(part)
        if self._paths is None and self._known[self._same : end] == part:
            self._same = end
        else:
            self._changed().extend(part)

    def remove(self, gone: list[str]) -> None:
        if not gone:
            return
        paths = without(self.paths, gone)
        self._paths = self._known if paths == self._known else paths

    def _changed(self) -> list[str]:
        if self._paths is None:
            self._paths = self._known[: self._same]
        return self._paths


async def list_here(root: Path) -> PathListing:
    listing = await asyncio.to_thread(walk, str(root))
    return PathListing(listing.paths, _note({"unnamed": listing.unnamed, "cut": listing.cut}))


def _note(facts: dict[str, Any]) -> str:
    notes = []
    if filters := facts.get("withheld_filters"):
        notes.append(
            f"The git {'filter' if len(filters) == 1 else 'filters'} {', '.join(filters)} did not run, since this"
            " workspace is not trusted: files are shown as they are on disk; `tui-agent trust` lets filters run"
        )
    if facts["unnamed"]:
        notes.append(f"{facts['unnamed']} files have names that are not UTF-8 and are skipped; rename them")
    if facts["cut"]:
        notes.append(f"The folder contains more than {MAX_FILES:,} files; open a subfolder to see all")
    return "; ".join(notes)


def without(paths: list[str], gone: Collection[str]) -> list[str]:
    if len(gone) > FEW:
        absent = frozenset(gone)
        return [path for path in paths if path not in absent]
    kept = list(paths)
    for path in gone:
        at = bisect_left(kept, path)
        if at < len(kept) and kept[at] == path:
            del kept[at]
    return kept
