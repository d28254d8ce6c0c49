"""Selects the paths of a program's layer that belong into the review."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from tui_agent.sandbox.folder_access import UNFINISHED, FolderAccess
from tui_agent.sandbox.layer_comparison import LEFT_OUT
from tui_agent.workspace.workspace import Workspace

RULES = ".gitignore"
#: Files with rules, bytes of one, and folders of a layer that are examined.
MOST_RULES, LONGEST_RULES, MOST_FOLDERS = 100, 64 * 1024, 20_000


class ReviewedPaths:
    """Omits files that git ignores, also by rules that the program writes in its view."""

    def __init__(self, workspace: Workspace, left_out: Sequence[str], notify: Callable[[str], None]) -> None:
        """`left_out`: patterns of the program's own files."""
        self._workspace, self._left_out, self._notify = workspace, left_out, notify
        #: Path of the program's writes.
        self.layer = ""
        self._ignored: dict[str, bool] = {}
        self._rules: dict[str, str] = {}

    async def kept(self, paths: Iterable[str]) -> list[str]:
        """Asks git about each folder before its contents."""
        left = []
        for path in paths:
            if any("\udc80" <= character <= "\udcff" for character in path):
                self._notify(f"{ascii(path)[1:-1]} is left out: its name is not UTF-8")
                continue
            names = path.split("/")
            own = names[-1].startswith(UNFINISHED) or any(
                fnmatchcase(names[0], glob) for glob in self._left_out
            )
            if not own and LEFT_OUT.isdisjoint(names):
                left.append(path)
        deepest = max((path.count("/") for path in left), default=-1)
        for depth in range(deepest + 1):
            folders = {"/".join(path.split("/")[: depth + 1]) for path in left if path.count("/") > depth}
            ends = [path for path in left if path.count("/") == depth]
            out = await self._ignored_of(folders)
            if ends:
                found = await self._workspace.ignored(ends, rules=self._rules)
                # Patterns can be about files only.
                inner = await asyncio.to_thread(_are_folders, self.layer, found)
                out |= (found - inner) | await self._ignored_of(inner)
            if out:
                left = [path for path in left if "/".join(path.split("/")[: depth + 1]) not in out]
        return left

    async def ignored_folders(self) -> list[str]:
        """Returns the outermost folders of which git ignores each file."""
        found, waiting, count = [], [""], 0
        while waiting and count < MOST_FOLDERS:
            inner = await asyncio.to_thread(_folders_in, self.layer, waiting)
            out = await self._ignored_of(inner)
            found += out
            waiting = [folder for folder in inner if folder not in out]
            count += len(inner)
        return found

    def read_rules(self, paths: Iterable[str], read: Callable[[str, int], bytes | None]) -> bool:
        """Returns whether rules changed. `read` is that of `ViewMirror`. Blocking."""
        before = dict(self._rules)
        for path in paths:
            if path.rpartition("/")[2] == RULES:
                self._rules.pop(path, None)
                with suppress(OSError, UnicodeDecodeError):
                    content = read(path, LONGEST_RULES)
                    if content and len(self._rules) < MOST_RULES:
                        self._rules[path] = content.decode()
        changed = self._rules != before
        if changed:
            self.forget()
        return changed

    def forget(self) -> None:
        """After a change of rules."""
        self._ignored.clear()

    async def _ignored_of(self, folders: Iterable[str]) -> set[str]:
        asked = [folder for folder in folders if folder not in self._ignored]
        if asked:
            found = await self._workspace.ignored(asked, folders=True, rules=self._rules)
            self._ignored |= {folder: folder in found for folder in asked}
        return {folder for folder in folders if self._ignored[folder]}


def _are_folders(layer: str, paths: Iterable[str]) -> set[str]:
    with FolderAccess(layer) as access:
        found = {path: access.status(path) for path in paths}
    return {path for path, there in found.items() if there is not None and stat.S_ISDIR(there.st_mode)}


def _folders_in(layer: str, folders: Sequence[str]) -> list[str]:
    found = []
    with FolderAccess(layer, own=True) as access:
        for folder in folders:
            for name in access.names(folder):
                path = f"{folder}/{name}" if folder else name
                there = None if name in LEFT_OUT else access.status(path)
                if there is not None and stat.S_ISDIR(there.st_mode):
                    found.append(path)
    return found
