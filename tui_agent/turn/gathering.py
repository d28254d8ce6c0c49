"""Gathering: all that goes with the next request beside what the plan found, in the order in which it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection

from tui_agent.context import known, memory
from tui_agent.store import events as e
from tui_agent.turn import bundling, instructing, remembering, seeing
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import load_files

#: What a turn takes up again without a word about it: files that were seen in the turn before.
RECENT_TURNS = 1


async def gather(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Look what moved, read again what is needed, add what belongs to applied changes, memory and instructions."""
    if desk.look is not None:
        await desk.look()
    if gathered.query:
        gathered.goes_on = memory.asks_to_go_on(gathered.query, gathered.turn)
    async for event in read_again(desk, gathered):
        yield event
    async for event in bundling.bundle(desk, gathered):
        yield event
    if gathered.query and gathered.goes_on:
        written = desk.state().input.memory
        built = remembering.remembered(desk.state(), gathered.turn, gathered.again)
        gathered.memory = memory.titled(written) if written else built
        yield e.MemoryBuilt(gathered.turn, gathered.memory)
    async for event in seeing.see_open_files(desk, gathered):
        yield event
    async for event in instructing.instruct(desk, gathered):
        yield event
    dropped = known.overflow(desk.state().known.files, desk.settings.known.max_files, _kept(desk, gathered))
    if dropped:
        yield e.KnownFilesDropped(dropped)


async def read_again(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Stale files that the turn needs, unasked: seen recently, with an open change, or gathered and moved since.

    A file that is exactly what the model proposed is none of them: the model knows that text.
    """
    state = desk.state()
    moved = {file.path for file in gathered.files if _is_outdated(desk, file.path, file.md5)}
    gathered.files = [file for file in gathered.files if file.path not in moved]
    recent = memory.ACTIVE_TURNS if gathered.goes_on else RECENT_TURNS
    pending = {change.path for change in state.review.open}
    for entry in list(state.known.files.values()):
        if not entry.stale and (entry.freshness == "fresh" or entry.written_known):
            continue
        seen = max(entry.seen_turn, entry.modified_turn)
        needed = entry.path in moved or entry.path in pending or seen >= gathered.turn - recent
        path = entry.renamed_to if entry.freshness == "renamed" else entry.path
        if not needed or entry.freshness == "deleted" or _is_known_anew(desk, path, entry):
            continue
        async for event in load_files(desk, gathered, [path], entry.loaded_by):
            yield event


def _is_outdated(desk: Desk, path: str, md5: str) -> bool:
    """Whether a file that was read for this request has moved since."""
    entry = desk.state().known.files.get(path)
    return entry is not None and entry.md5 == md5 and entry.stale


def _is_known_anew(desk: Desk, path: str, entry: known.KnownFile) -> bool:
    """Whether a file that was renamed is known under its new name already."""
    return path != entry.path and path in desk.state().known.files


def _kept(desk: Desk, gathered: Gathered) -> Collection[str]:
    state = desk.state()
    paths = {buffer.path for buffer in state.buffers.open}
    paths.update(change.path for change in state.review.open)
    paths.update(file.path for file in (*gathered.files, *gathered.bundled))
    return paths
