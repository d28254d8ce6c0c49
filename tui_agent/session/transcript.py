"""The transcript as the log has it: all of it, or the part before what is in memory."""

from __future__ import annotations

from collections.abc import Iterable

from tui_agent.session.log import Log
from tui_agent.store.events import Event
from tui_agent.store.fold import fold
from tui_agent.store.state import ChatMessage, State


def messages_before(log: Log, before: int, count: int) -> tuple[ChatMessage, ...]:
    """Up to `count` messages with numbers below `before`, oldest first."""
    return tuple(message for message in said(log.load().events) if before - count <= message.number < before)


def said(events: Iterable[Event]) -> list[ChatMessage]:
    """Every message of a session, each with the changes that came with it."""
    messages: dict[int, ChatMessage] = {}
    state = State()
    for event in events:
        before = state.chat.messages
        state = fold(state, event)
        if state.chat.messages is not before:
            # an event adds a message, or names a change in one of the last few
            messages.update((message.number, message) for message in state.chat.messages[-4:])
    return [messages[number] for number in sorted(messages)]
