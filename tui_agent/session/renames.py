"""Where a file that is gone may be now: guesses to hash, from what was added and what bears its name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tui_agent.context.known import KnownFile
from tui_agent.workspace.index import Index

MOST_LOOKED_AT = 500


def candidates(
    root: Path, index: Index, added: Iterable[str], gone: Sequence[KnownFile]
) -> dict[str, list[str]]:
    """For each file that is gone the paths of its size: what is new first, then its name elsewhere, its neighbours."""
    if not gone:
        return {}
    added = list(added)
    named = index.named({_name(entry.path) for entry in gone})
    return {entry.path: _for_one(root, index, added, named[_name(entry.path)], entry) for entry in gone}


def _for_one(
    root: Path, index: Index, added: Sequence[str], named: Sequence[str], entry: KnownFile
) -> list[str]:
    folder = entry.path.rpartition("/")[0]
    beside = [f"{folder}/{name}" if folder else name for name in _names(root / folder)]
    paths = dict.fromkeys([*reversed(added), *named, *beside])
    paths.pop(entry.path, None)
    return [path for path in list(paths)[:MOST_LOOKED_AT] if _size(root / path) == entry.size]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _names(folder: Path) -> list[str]:
    """What lies in a folder now: the index may not have heard of it yet."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
