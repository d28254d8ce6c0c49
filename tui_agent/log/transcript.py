"""The transcript as the log has it: all of it, or the part before what is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tui_agent.log import pages
from tui_agent.log.log import events_of
from tui_agent.store.events import Event
from tui_agent.store.fold import fold
from tui_agent.store.state import ChatMessage, State

#: How many messages are handed on at once.
_BATCH = 500


def messages_before(
    path: Path, before: int, count: int, keep: bool = True, lost: list[str] | None = None
) -> tuple[ChatMessage, ...]:
    """Up to `count` messages of the log at `path` with numbers below `before`, oldest first.

    With `keep` the pages that had to be made are kept for the next time. A sentence on each record that was met and
    cannot be read goes into `lost`.
    """
    folder = path.parent
    found = pages.before(folder, before, count)
    if found is not None:
        return found
    if not keep:
        there = (message for message in in_order(events_of(path, lost)) if message.number < before)
        return tuple(message for message in there if message.number >= before - count)
    pages.forget(folder)
    wanted: list[ChatMessage] = []
    batch: list[ChatMessage] = []
    for message in in_order(events_of(path, lost)):
        batch.append(message)
        if before - count <= message.number < before:
            wanted.append(message)
        if len(batch) == _BATCH:
            pages.put(folder, batch)
            batch = []
    pages.put(folder, batch)
    return tuple(wanted)


def said(events: Iterable[Event]) -> list[ChatMessage]:
    """Every message of a session, each with the changes that came with it."""
    return list(in_order(events))


def in_order(events: Iterable[Event]) -> Iterator[ChatMessage]:
    """Every message, once nothing can be added to it any more: when its turn is over."""
    state = State()
    waiting: dict[int, ChatMessage] = {}
    handed_on = 0
    for event in events:
        before = state.chat.messages
        state = fold(state, event)
        if state.chat.messages is before:
            continue
        # an event adds a message, or names a change in one of the last few
        last = (message for message in state.chat.messages[-4:] if message.number > handed_on)
        waiting.update((message.number, message) for message in last)
        turn = state.chat.messages[-1].turn
        for number in [number for number, message in waiting.items() if message.turn < turn - 1]:
            handed_on = number
            yield waiting.pop(number)
    yield from waiting.values()
