"""Lists a folder through the child in parts, or on a thread without it."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tui_agent.processes.child import ChildProcess
from tui_agent.workspace.walk import MAX_FILES, walk


class PathListing(Struct, frozen=True):
    """All paths, sorted and without duplicates. `note` is a message for the user, or "".

    `status` has the fields of `GitStatus`; None if not available yet.
    """

    paths: list[str]
    note: str = ""
    status: dict[str, Any] | None = None


async def list_by_child(
    child: ChildProcess, root: Path, known: list[str], on_listed: Callable[[PathListing], None] | None = None
) -> PathListing:
    """The files found by git or a walk in the child. Raises `ChildFailed`.

    `known` is the previous list, returned itself if nothing changed. `on_listed` receives the paths before
    git checks for deleted files.
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
    """Collects paths sent in parts. Parts equal to the known paths are dropped immediately, to avoid a second
    list and a long comparison on the event loop."""

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
        paths = _without(self.paths, gone)
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


def _without(paths: list[str], gone: list[str]) -> list[str]:
    kept = list(paths)
    for path in gone:
        at = bisect_left(kept, path)
        if at < len(kept) and kept[at] == path:
            del kept[at]
    return kept
