"""Files that a name fits equally well: which of them is nearest to where it was looked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.answers.plans import FileAction

_SIGNS = re.compile(r"[*?\[\]{}]")


def names_one(pattern: str) -> bool:
    """Whether a pattern names a single file, wherever it lies: `**/schema.ts`, and not `src/*` or `**/*Schema*`."""
    name = pattern.rpartition("/")[2]
    return bool(name) and not _SIGNS.search(re.sub(r"\\.", "", name))


def nearest(action: FileAction, paths: Sequence[str]) -> tuple[str, ...]:
    """Those of `paths` whose folders are most like the ones that the action's patterns name; best alone, or a tie.

    The last folder counts most: how many of them agree from the end on, then how many are shared at all.
    """
    hints = [folders for pattern in action.patterns if (folders := _folders(pattern))]
    if not hints:
        return tuple(paths)
    scores = {path: max(_likeness(hint, path.split("/")[:-1]) for hint in hints) for path in paths}
    best = max(scores.values())
    return tuple(path for path in paths if scores[path] == best)


def _folders(pattern: str) -> list[str]:
    """The folders that a pattern names in so many words."""
    folders = pattern.removeprefix("./").split("/")[:-1]
    return [folder for folder in folders if not _SIGNS.search(folder)]


def _likeness(hint: Sequence[str], folders: Sequence[str]) -> tuple[int, int]:
    agree = 0
    for ours, theirs in zip(reversed(hint), reversed(folders), strict=False):
        if ours != theirs:
            break
        agree += 1
    return agree, len(set(hint) & set(folders))
