"""What nobody sees of the folders outside of a workspace that commands may read: stores of keys, and private files."""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterable, Sequence

from tui_agent.files.git_folder import read_start
from tui_agent.files.sensitive import is_secret, stores_in
from tui_agent.processes.background import pause

#: Folders of the machine in which a file may be there for one user alone.
_PRIVATE = ("/etc", "/opt", "/usr/local")
#: Caches whose names are hashes, and what git keeps by hash.
_NAMELESS = frozenset({"_cacache", "go-build", "objects", "__pycache__", ".git"})
#: Folders down to this depth are looked at each time; deeper ones once, and when what holds them has other entries.
_WATCHED_DEPTH = 2
#: A git configuration with something in it that lets somebody in.
_CREDENTIALS = re.compile(rb"://[^/\s]*@|extraheader|://\S*\?|password|token", re.IGNORECASE)
_MOST_CONFIG = 1 << 16


class _Look:
    """What is hidden in one folder, and in those below it that are not looked at by themselves."""

    def __init__(self, changed: tuple[int, int]) -> None:
        self.changed = changed
        self.found: list[str] = []
        self.folders: list[str] = []


class ToolFolders:
    """Looks through folders of tools, caches and the machine; remembers what did not change. Blocking."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bool], dict[str, _Look]] = {}
        self._looking = threading.Lock()

    def hidden(self, folders: Iterable[str], tools: Sequence[str] = ()) -> list[str]:
        """The files and folders below these that nobody sees, by path.

        In those of the machine that is also what only its owner may read; of `tools`, which a person with a strict
        umask has for itself alone, only where other files beside it can be read by everybody.
        """
        with self._looking:
            return sorted({path for folder in folders for path in self._below(folder, tools)})

    def _below(self, top: str, tools: Sequence[str]) -> list[str]:
        found: list[str] = []
        parts = [part for part in _PRIVATE if part == top or part.startswith(f"{top}/")]
        if parts and top not in parts:
            return [path for part in parts for path in self._below(part, tools)]
        private = _is_below(top, _PRIVATE)
        if not private and top in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys"):
            return []
        seen = self._seen.get((top, private), {})
        now: dict[str, _Look] = {}
        waiting = [(top, 0)]
        while waiting:
            folder, depth = waiting.pop()
            try:
                status = os.lstat(folder)
                changed = status.st_ino, status.st_mtime_ns
                entry = seen.get(folder)
                if entry is None or entry.changed != changed:
                    entry = _Look(changed)
                    _look(folder, entry, tools, private, deep=depth >= _WATCHED_DEPTH)
            except OSError:
                continue  # it went, or nobody may look into it
            now[folder] = entry
            found += entry.found
            waiting += [(path, depth + 1) for path in entry.folders]
        self._seen[top, private] = now
        return found


def _look(folder: str, entry: _Look, tools: Sequence[str], private: bool, *, deep: bool) -> None:
    """Look into a folder, with `deep` into all below it too. Raises OSError for the folder itself."""
    waiting = [folder]
    while waiting:
        pause()
        place = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            if place == folder:
                raise
            continue
        names: list[str] = []
        closed: list[str] = []
        is_open = False
        for one in entries:
            try:
                if one.is_symlink():
                    continue
                is_folder = one.is_dir(follow_symlinks=False)
                mode = one.stat(follow_symlinks=False).st_mode if private else 0o5
            except OSError:
                continue
            if not is_folder:
                names.append(one.name)
                if private and stat.S_ISREG(mode) and not mode & 0o104:
                    closed.append(one.path)
                else:
                    is_open = True
            elif private and not mode & 0o001 and not _leads_to(one.path, tools):
                entry.found.append(one.path)
            elif one.name not in _NAMELESS:
                (waiting if deep else entry.folders).append(one.path)
            elif one.name == ".git" and _has_credentials(f"{one.path}/config"):
                entry.found.append(f"{one.path}/config")
        if closed and _is_below(place, tools) and not is_open:
            closed = [path for path in closed if is_secret(path)]
        entry.found += [*closed, *(f"{place}/{name}" for name in stores_in(place, names))]
        if "config" in names and "HEAD" in names and _has_credentials(f"{place}/config"):
            entry.found.append(f"{place}/config")


def _has_credentials(path: str) -> bool:
    try:
        return _CREDENTIALS.search(read_start(path, _MOST_CONFIG)) is not None
    except OSError:
        return False


def _leads_to(folder: str, tools: Sequence[str]) -> bool:
    """Whether tools are in a folder, or it is in one of theirs."""
    return _is_below(folder, tools) or any(_is_below(tool, [folder]) for tool in tools)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
