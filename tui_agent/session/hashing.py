"""What known files are now: by their content, read only where the file system says that it may have moved."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tui_agent.context.known import MAX_BYTES, Freshness, KnownFile
from tui_agent.errors import TuiAgentError
from tui_agent.files.gate import Gate, read_for_person
from tui_agent.files.systems import Stamp, is_settled, stamp_of
from tui_agent.files.text import md5


class Hashes:
    """Hashes of files by path, remembered with the stamp they had. One thread at a time uses it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._root = str(gate.root)
        self._seen: dict[str, tuple[Stamp, str]] = {}

    def get(self, path: str) -> str:
        """The hash of a file's content. Raises `FileError` or `PathRefused` where it cannot be read."""
        stamp = stamp_of(f"{self._root}/{path}")
        seen = self._seen.get(path)
        if seen is not None and seen[0] == stamp:
            return seen[1]
        self._seen.pop(path, None)
        found = md5(read_for_person(self._gate, path, MAX_BYTES))
        if stamp is not None and is_settled(stamp) and stamp == stamp_of(f"{self._root}/{path}"):
            self._seen[path] = stamp, found
        return found

    def keep_only(self, paths: Iterable[str]) -> None:
        """Forget all other files."""
        kept = set(paths)
        for path in [path for path in self._seen if path not in kept]:
            del self._seen[path]

    def freshness(self, entry: KnownFile, renamed_to: str = "") -> tuple[Freshness, str]:
        """What a known file is now, and for `renamed` its new path: that where it was found, if it is gone."""
        try:
            found = self.get(entry.path)
        except TuiAgentError:
            if os.path.lexists(f"{self._root}/{entry.path}"):
                return "disk", ""
            for path in filter(None, (renamed_to, entry.renamed_to)):
                if os.path.isfile(f"{self._root}/{path}"):
                    return "renamed", path
            return "deleted", ""
        if found == entry.md5:
            return "fresh", ""
        return ("edited", "") if found == entry.written else ("disk", "")
