"""Folding the conversation as sent, what the model has yet to be told, and what it all cost."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.store import events as e
from tui_agent.store import fold_turn
from tui_agent.store.conversation import ConversationSlice
from tui_agent.store.fold_turn import say
from tui_agent.store.state import ChatMessage, State
from tui_agent.store.usage import UsageSlice

#: A provider that counts more than so many times what we do counts something else.
MOST_SCALE = 4.0


def _begun(state: State, event: e.ConversationBegun) -> State:
    before = state.conversation
    conversation = ConversationSlice(
        model=event.model,
        protocol=event.protocol,
        messages=event.messages,
        files=event.files,
        contexts=event.contexts,
        untold=before.untold,
        open_calls=event.open_calls,
        answered=before.answered,
        last=before.last,
        restarts=True,
        why=event.why,
        head=event.head,
        head_tokens=event.head_tokens,
        unbundled=before.unbundled,
    )
    return replace(state, conversation=conversation)


def _uploads_ended(state: State, event: e.UploadsEnded) -> State:
    return replace(state, conversation=replace(state.conversation, uploads_ended=True))


def _sent(state: State, event: e.RequestSent) -> State:
    if event.purpose == "subtask":
        return state
    state = replace(
        state,
        usage=replace(state.usage, open=event.paid),
        reply=replace(state.reply, letters=0),
    )
    if event.purpose == "plan":
        return replace(state, turn=replace(state.turn, phase="planning"))
    turn = replace(
        state.turn, phase="asking", step=state.turn.step + 1, reading=0, read=0, read_of=0, read_waits=""
    )
    state = replace(state, turn=turn)
    if event.purpose != "main":
        return state
    begins = event.reset and not state.conversation.restarts
    before = ConversationSlice() if begins else state.conversation
    messages = (*before.messages, *event.messages)
    conversation = replace(
        before,
        model=event.model,
        protocol=event.protocol,
        messages=messages,
        files={**before.files, **event.files},
        rows={**before.rows, **event.rows},
        blocks={**before.blocks, **event.blocks},
        contexts={**before.contexts, **event.contexts},
        tasks={**before.tasks, **event.tasks},
        uploads=tuple(dict.fromkeys((*before.uploads, *event.uploads))),
        untold=(),
        open_calls=(),
        answered={},
        last=messages,
        restarts=False,
        unbundled=(),
        refusable=replace(state.conversation, refusable=None),
    )
    return replace(state, conversation=conversation, usage=_counted(state.usage, event))


def _withdrawn(state: State, event: e.RequestWithdrawn) -> State:
    before = state.conversation.refusable
    return state if before is None else replace(state, conversation=before)


def _counted(usage: UsageSlice, event: e.RequestSent) -> UsageSlice:
    return replace(
        usage,
        context=round(event.tokens * usage.scale),
        context_estimated=event.estimated or usage.scale != 1,
        counted=event.tokens,
        parts=event.parts,
        prefix_share=event.prefix_share,
        resets=usage.resets + event.reset,
    )


def _read(state: State, event: e.ReplyRead) -> State:
    state = fold_turn.read_reply(state, event)
    if event.sent is None:
        return state
    conversation = replace(
        state.conversation,
        messages=(*state.conversation.messages, event.sent),
        open_calls=event.open_calls,
        answered={},
        untold=(*state.conversation.untold, *event.faults),
        refusable=None,
    )
    parts = {**state.usage.parts, "reply": event.sent.tokens}
    return replace(state, conversation=conversation, usage=replace(state.usage, parts=parts))


def _owes(state: State, event: e.ModelOwesNews) -> State:
    conversation = replace(state.conversation, untold=(*state.conversation.untold, event.fact))
    return replace(state, conversation=conversation)


def _usage(state: State, event: e.UsageCounted) -> State:
    usage = replace(state.usage, session=state.usage.session.plus(event.usage))
    if usage.open is not None and usage.open.purpose == event.purpose:
        usage = replace(usage, open=None)
    if event.purpose != "subtask":  # sub-tasks go on beside turns and have limits of their own
        usage = replace(usage, turn=state.usage.turn.plus(event.usage))
    if event.purpose == "plan":
        usage = replace(usage, planning=state.usage.planning.plus(event.usage))
    return replace(state, usage=_told(usage, event))


def _told(usage: UsageSlice, event: e.UsageCounted) -> UsageSlice:
    """The provider's own count is the exact one; what it is to ours says what ours is worth."""
    if event.purpose != "main":
        return usage
    usage = replace(usage, last=event.usage)
    if event.usage.estimated or not event.usage.input or not usage.counted:
        return usage
    scale = min(MOST_SCALE, max(1.0, event.usage.input / usage.counted))
    return replace(usage, context=event.usage.input, context_estimated=False, scale=scale)


def _memory_edited(state: State, event: e.MemoryEdited) -> State:
    return replace(state, input=replace(state.input, memory=event.text))


def _memory(state: State, event: e.MemoryBuilt) -> State:
    state = replace(state, input=replace(state.input, memory=""))
    return say(state, ChatMessage(0, "note", event.turn, event.text))


def _summary(state: State, event: e.SummaryMade) -> State:
    if event.kept:
        words = f"Older messages could not be summarised: the model goes on with the newest {event.kept} of {event.of}."
        return say(state, ChatMessage(0, "note", event.turn, words, level="warning"))
    words = "Older messages were summarised for the model; nothing of what you see here is gone."
    return say(state, ChatMessage(0, "note", event.turn, event.text, summary=words))


def _instructions(state: State, event: e.InstructionsRead) -> State:
    return replace(state, instructions=event.files)


FOLDS = {
    e.ConversationBegun: _begun,
    e.SummaryMade: _summary,
    e.MemoryEdited: _memory_edited,
    e.MemoryBuilt: _memory,
    e.InstructionsRead: _instructions,
    e.RequestSent: _sent,
    e.RequestWithdrawn: _withdrawn,
    e.UploadsEnded: _uploads_ended,
    e.ReplyRead: _read,
    e.ModelOwesNews: _owes,
    e.UsageCounted: _usage,
}
