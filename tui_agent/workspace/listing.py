"""The listing of a folder, from the child piece by piece, or from a thread of our own where there is none."""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tui_agent.processes.child import Child
from tui_agent.workspace.walk import MAX_FILES, walk


class Listed(Struct, frozen=True):
    """Every path, sorted, without doubles. `note` is what the person should know about it, if anything."""

    paths: list[str]
    note: str = ""


async def list_by_child(
    child: Child, root: Path, on_listed: Callable[[Listed], None] | None = None
) -> Listed:
    """The files as git or a walk in the child finds them. Raises `ChildFailed`.

    `on_listed` gets them as soon as they have come, before git has looked which of them were deleted.
    """
    paths: list[str] = []
    note = ""
    async for item in child.stream("list", {"root": str(root)}):
        match item:
            case {"paths": part}:
                paths += part
            case {"source": _}:
                note = _note(item)
            case {"listed": True} if on_listed is not None:
                on_listed(Listed(paths, note))
            case {"gone": [_, *_] as gone}:
                paths = _without(paths, gone)
    return Listed(paths, note)


async def list_here(root: Path) -> Listed:
    """The files as a walk in a thread finds them, without the rules of ignore files."""
    listing = await asyncio.to_thread(walk, str(root))
    return Listed(listing.paths, _note({"unnamed": listing.unnamed, "cut": listing.cut}))


def takes_case_for_nothing(root: Path) -> bool:
    """Whether the file system takes `A` and `a` for one name, told by the root's own."""
    twin = root.with_name(root.name.swapcase())
    try:
        return twin != root and os.path.samefile(twin, root)
    except OSError:
        return False


def _note(facts: dict[str, Any]) -> str:
    notes = []
    if facts["unnamed"]:
        notes.append(f"{facts['unnamed']} files have names that are not UTF-8 and are left out; rename them")
    if facts["cut"]:
        notes.append(f"The folder holds more than {MAX_FILES:,} files; open a folder further down to see all")
    return "; ".join(notes)


def _without(paths: list[str], gone: list[str]) -> list[str]:
    kept = list(paths)
    for path in gone:
        at = bisect_left(kept, path)
        if at < len(kept) and kept[at] == path:
            del kept[at]
    return kept
