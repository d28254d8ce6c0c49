"""Folding the conversation as sent, what the model has yet to be told, and what it all cost."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store import fold_turn
from tui_agent.store.state import ConversationSlice, State


def _sent(state: State, event: e.RequestSent) -> State:
    turn = replace(state.turn, phase="asking", step=state.turn.step + 1)
    state = replace(state, turn=turn)
    if event.purpose != "main":
        return state
    before = ConversationSlice() if event.reset else state.conversation
    conversation = replace(
        before,
        model=event.model,
        protocol=event.protocol,
        messages=(*before.messages, *event.messages),
        files={**before.files, **event.files},
        rows={**before.rows, **event.rows},
        blocks={**before.blocks, **event.blocks},
        untold=(),
        open_calls=(),
    )
    usage = replace(state.usage, context=event.tokens, context_estimated=event.estimated, parts=event.parts)
    return replace(state, conversation=conversation, usage=usage)


def _read(state: State, event: e.ReplyRead) -> State:
    state = fold_turn.read_reply(state, event)
    if event.sent is None:
        return state
    conversation = replace(
        state.conversation,
        messages=(*state.conversation.messages, event.sent),
        open_calls=event.open_calls,
        untold=(*state.conversation.untold, *event.faults),
    )
    return replace(state, conversation=conversation)


def _owes(state: State, event: e.ModelOwesNews) -> State:
    conversation = replace(state.conversation, untold=(*state.conversation.untold, event.fact))
    return replace(state, conversation=conversation)


def _usage(state: State, event: e.UsageCounted) -> State:
    usage = replace(
        state.usage,
        turn=state.usage.turn.plus(event.usage),
        session=state.usage.session.plus(event.usage),
    )
    return replace(state, usage=usage)


def _listed(state: State, event: e.DirectoryListed) -> State:
    return state


FOLDS = {
    e.RequestSent: _sent,
    e.ReplyRead: _read,
    e.ModelOwesNews: _owes,
    e.UsageCounted: _usage,
    e.DirectoryListed: _listed,
}
