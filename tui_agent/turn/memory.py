"""The session's memory, derived from its state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

from tui_agent.context.known_files import KnownFile, freshness_mark
from tui_agent.context.memory import ACTIVE_TURNS, MOST, Memory, TodoNote, asks_to_go_on, section
from tui_agent.store.state import Batch, State

#: Maximum share of the window for the section, and the minimum number of characters per token.
SHARE, CHARACTERS_A_TOKEN = 0.12, 2
#: Maximum number of pending batch files listed by name.
BATCH_NAMED = 20


def remembered(state: State, turn: int, again: Mapping[str, KnownFile] = MappingProxyType({})) -> str:
    """Returns text for a turn that continues earlier work, and beside a summary. `again` are files as they were before
    this turn reloaded them."""
    room = int(state.model.window * SHARE * CHARACTERS_A_TOKEN) or MOST
    return section(memory_of(state, turn, again), min(MOST, room))


def memory_of(state: State, turn: int, again: Mapping[str, KnownFile] = MappingProxyType({})) -> Memory:
    files = sorted(state.known.files.values(), key=lambda entry: entry.path)
    found: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for point in state.review.checkpoints:
        if not point.undone:
            found[point.turn].update(dict.fromkeys(step.path for step in point.files))
    return Memory(
        turn=turn,
        request=last_request(state),
        summary=next(
            (gist for m in reversed(state.chat.messages) if m.kind == "agent" and (gist := m.gist)), ""
        ),
        todos=tuple(TodoNote(todo.text, todo.details, todo.done) for todo in state.todos),
        batches=tuple(map(_progress, state.batches)),
        pending=tuple(dict.fromkeys(change.path for change in state.review.open)),
        stale={entry.path: _mark(entry, False) for entry in files if entry.stale}
        | {path: _mark(entry, True) for path, entry in again.items() if entry.stale},
        modified={turn: tuple(paths) for turn, paths in found.items()},
        active=tuple(
            entry.path for entry in files if max(entry.seen_turn, entry.modified_turn) >= turn - ACTIVE_TURNS
        ),
    )


def _progress(batch: Batch) -> str:
    waits = (
        f"; {len(batch.left)} wait for the next: {', '.join(batch.left[:BATCH_NAMED])}" if batch.left else ""
    )
    waits += " …" if len(batch.left) > BATCH_NAMED else ""
    now = f"; {len(batch.now)} go with this request" if batch.now else ""
    return f"{batch.name}: {batch.done} of {batch.total} files are done{now}{waits}. What is asked for: {batch.request}"


def _mark(entry: KnownFile, again: bool) -> str:
    return freshness_mark(entry, again).removeprefix("⚠️ Yes ")


def last_request(state: State) -> str:
    """Verbatim, ignoring "continue"."""
    said = [message for message in state.chat.messages if message.kind == "person"]
    real = [message.text for message in said if not asks_to_go_on(message.text, message.turn)]
    if real:
        return real[-1]
    return next((text for text in reversed(state.input.history) if not asks_to_go_on(text, 2)), "")
