"""Key stores and private files in readable folders outside the workspace."""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterable, Sequence

from tui_agent.files.operating_system import read_start
from tui_agent.files.sensitive_paths import is_secret, stores_in
from tui_agent.processes.background import pause

#: System folders with files that one user may read.
_PRIVATE = ("/etc", "/opt", "/usr/local")
#: Caches with hashed names, and git's objects.
_NAMELESS = frozenset({"_cacache", "go-build", "objects", "__pycache__", ".git"})
#: Depth checked each time; deeper folders are checked again after their ancestors' entries change.
_WATCHED_DEPTH = 2
_CREDENTIALS = re.compile(rb"://[^/\s]*@|extraheader|://\S*\?|password|token", re.IGNORECASE)
_MOST_CONFIG = 1 << 16


class _Look:
    """Hidden paths of a folder and of descendants without an entry."""

    def __init__(self, changed: tuple[int, int]) -> None:
        self.changed = changed
        self.found: list[str] = []
        self.folders: list[str] = []


class ToolFolders:
    """Scans folders of tools, caches and the system; caches unchanged ones. Blocking."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bool], dict[str, _Look]] = {}
        self._looking = threading.Lock()

    def hidden(self, folders: Iterable[str], tools: Sequence[str] = ()) -> list[str]:
        """Returns hidden paths: in system folders also files that only their owner can read; in `tools` these
        only if neighbours are world-readable, because a strict umask makes all private."""
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
                    _scan(folder, entry, tools, private, deep=depth >= _WATCHED_DEPTH)
            except OSError:
                continue  # Deleted, or unreadable.
            now[folder] = entry
            found += entry.found
            waiting += [(path, depth + 1) for path in entry.folders]
        self._seen[top, private] = now
        return found


def _scan(folder: str, entry: _Look, tools: Sequence[str], private: bool, *, deep: bool) -> None:
    """`deep`: all descendants. Raises OSError for the folder itself."""
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
    return _is_below(folder, tools) or any(_is_below(tool, [folder]) for tool in tools)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
