"""Guesses the file a streaming reply is writing, from the `path` values in its JSON."""

from __future__ import annotations

import json
import re

#: `"path": "…"` as in a change. Escaped quotes inside a text do not match.
_NAMED = re.compile(r'(?<!\\)"(fileChanges|changes|path)"\s*:\s*(?:\[|("(?:[^"\\]|\\.){1,300}"))')
#: Characters kept for the next chunk, in case a chunk boundary splits a name.
_KEPT = 400


class StreamedPaths:
    """Paths named in the changes of one reply, newest last."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._tail = ""
        self._in_changes = False

    def take(self, text: str) -> str:
        """The path that a chunk begins to write, or ""."""
        looked = self._tail + text
        newest, end = "", 0
        for found in _NAMED.finditer(looked):
            end = found.end()
            if found[1] != "path":
                self._in_changes = True
            elif self._in_changes and found[2]:
                newest = _read(found[2])
                self.paths.pop(newest, None)
                self.paths[newest] = None
        self._tail = looked[max(end, len(looked) - _KEPT) :]
        return newest


def _read(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted[1:-1]
