"""Names spelled most alike: for "did you mean"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

#: How many names are compared in one call, which holds the interpreter for a few milliseconds.
SLICE: Final = 4096
#: Below this likeness, of 100, a name does not help.
LEAST: Final = 55.0
#: How much the folders count beside the name.
FOLDER_SHARE: Final = 0.25


def nearest_names(paths: Sequence[str], wanted: str, count: int) -> list[str]:
    """At most `count` of `paths`, best first: those whose file names are most like the last part of `wanted`.

    `wanted` is a path or a pattern. Case counts for nothing; of names that are equally alike, those in more similar
    folders come first.
    """
    from rapidfuzz import fuzz, process

    wanted = re.sub(r"[*?\[\]{}\\]", "", wanted)
    target = wanted.rstrip("/").rpartition("/")[2].lower()
    if not target:
        return []
    best: list[tuple[float, str]] = []
    for at in range(0, len(paths), SLICE):
        part = paths[at : at + SLICE]
        names = [path.rpartition("/")[2].lower() for path in part]
        found = process.extract(target, names, scorer=fuzz.ratio, limit=4 * count, score_cutoff=LEAST)
        best += [(score, part[place]) for _, score, place in found]
    whole = wanted.lower()
    ranked = sorted((-score - FOLDER_SHARE * fuzz.ratio(whole, path.lower()), path) for score, path in best)
    return [path for _, path in ranked[:count]]
