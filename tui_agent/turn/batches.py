"""Batches (P5): every match within the token budget, the smallest first, and what was left out by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from tui_agent.answers.plans import FileAction
from tui_agent.context.loaded import cost
from tui_agent.planning.chain import Attempt
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import room

#: How many of the files that were left out are named to the person and to the model.
NAMED = 20


async def within_room(desk: Desk, gathered: Gathered, action: FileAction, hit: Attempt) -> list[str]:
    """The matches that fit into what is left of the request, smallest first, by their size on disk."""
    sizes = await asyncio.to_thread(_sizes, desk.workspace.root, hit.paths)
    left, taken = room(desk, gathered), []
    for size, path in sorted(sizes):
        left -= cost(size, 0)
        if left < 0 and taken:
            break
        taken.append(path)
    return taken


async def tell_left_out(
    gathered: Gathered, action: FileAction, hit: Attempt, taken: Sequence[str]
) -> AsyncGenerator[e.Event, None]:
    """Name what does not go along, to the person and to the model; nothing where all of it does."""
    out = tuple(sorted(set(hit.paths) - set(taken)))
    missing = hit.matches - len(taken)
    if missing <= 0:
        return
    more = f" and {missing - NAMED} more" if missing > NAMED else ""
    names = ", ".join(out[:NAMED]) + more
    yield e.FilesLeftOut(action.name, out, "no room in the model's window")
    sentence = f"{missing} of the {hit.matches} files of “{action.name}” do not fit into the request"
    yield e.NoticeGiven("warning", f"{sentence}, the largest are left out: {names}")
    gathered.facts.append(f"{sentence} and are not shown: {names}. Ask for them when these are done.")


def _sizes(root: Path, paths: Sequence[str]) -> list[tuple[int, str]]:
    return [(_size(root / path), path) for path in paths]


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0  # what is gone says so when it is read
