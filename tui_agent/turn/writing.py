"""Which file a reply is writing, while it comes: a guess from the names that its changes have as JSON."""

from __future__ import annotations

import json
import re

#: `"path": "…"` as a change begins with it; quotes inside of a text are escaped, so they are none.
_NAMED = re.compile(r'(?<!\\)"(fileChanges|changes|path)"\s*:\s*(?:\[|("(?:[^"\\]|\\.){1,300}"))')
#: A name is cut in two at most here: so much of what came before is looked at again.
_KEPT = 400


class Writing:
    """The paths that were named so far in the changes of one reply, the newest last."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._tail = ""
        self._in_changes = False

    def take(self, text: str) -> str:
        """The path that a piece of the reply begins to write, "" if it begins none."""
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
