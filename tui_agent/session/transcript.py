"""Paging the transcript: what was said before the part that is in memory."""

from __future__ import annotations

from tui_agent.session.log import Log
from tui_agent.store.fold import fold
from tui_agent.store.state import ChatMessage, State


def messages_before(log: Log, before: int, count: int) -> tuple[ChatMessage, ...]:
    """Up to `count` messages with numbers below `before`, oldest first, folded anew from the log."""
    return tuple(message for message in said(log) if before - count <= message.number < before)


def said(log: Log) -> list[ChatMessage]:
    """Every message of the session, the changes that came with each named in it."""
    messages: dict[int, ChatMessage] = {}
    state = State()
    for event in log.load().events:
        state = fold(state, event)
        # an event touches the newest message, or one that a change belongs to a little before it
        messages.update((message.number, message) for message in state.chat.messages[-3:])
    return [messages[number] for number in sorted(messages)]
