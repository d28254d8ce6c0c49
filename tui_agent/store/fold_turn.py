"""Folding a turn: its phases, its plan with the attempts, the reply as it streams, the transcript."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction
from tui_agent.context.memory import asks_to_go_on
from tui_agent.store import events as e
from tui_agent.store.state import (
    TRANSCRIPT_WINDOW,
    ActionSlice,
    ChatMessage,
    ListedFolder,
    PlanSlice,
    ReplySlice,
    State,
    TurnSlice,
)
from tui_agent.store.tool_calls import PermissionQuestion, ToolUse
from tui_agent.store.usage import Usage

HISTORY_KEPT = 200
DECISIONS_KEPT = 500


def say(state: State, message: ChatMessage) -> State:
    """The state with one more message in the transcript; its number is given here."""
    total = state.chat.total + 1
    messages = (*state.chat.messages, replace(message, number=total))[-TRANSCRIPT_WINDOW:]
    return replace(state, chat=replace(state.chat, messages=messages, total=total))


def next_turn(state: State) -> int:
    """The number of the next turn: that of the last once more, where the model never answered it."""
    last = state.turn
    answered = any(message.turn == last.number and message.kind == "agent" for message in state.chat.messages)
    failed = not last.running and not last.ok and last.kind != "Interrupted"
    return last.number if failed and not answered else last.number + 1


def _started(state: State, event: e.TurnStarted) -> State:
    history = tuple(text for text in state.input.history if text != event.request)
    queue = state.input.queue[1:] if event.queued else state.input.queue
    # what was written of the state of the work does not outlive a turn about something else
    memory = state.input.memory if asks_to_go_on(event.request, event.turn) else ""
    state = replace(
        state,
        turn=TurnSlice(
            number=event.turn,
            first=(state.turn.first or state.turn.number) if event.unasked else event.turn,
            phase="planning",
            request=event.request,
            effort=event.effort,
        ),
        plan=PlanSlice(turn=event.turn),
        reply=ReplySlice(turn=event.turn),
        input=replace(
            state.input, queue=queue, history=(*history, event.request)[-HISTORY_KEPT:], memory=memory
        ),
        usage=state.usage if event.unasked else replace(state.usage, turn=Usage(), planning=Usage()),
        chat=replace(state.chat, next_steps=()),
    )
    return say(state, ChatMessage(0, "person", event.turn, event.request))


def _forked(state: State, event: e.SessionForked) -> State:
    words = f"This session is a copy of {event.source}. {event.text}".rstrip()
    level = "warning" if event.text else "info"
    return say(state, ChatMessage(0, "note", state.turn.number, words, level=level))


def _phase(state: State, event: e.PhaseChanged) -> State:
    turn = replace(state.turn, phase=event.phase, retry_seconds=0, retry_why="", waiting_for="")
    return replace(state, turn=turn)


def _plan(state: State, event: e.PlanMade) -> State:
    plan = PlanSlice(
        turn=event.turn,
        source=event.source,
        actions=tuple(ActionSlice(action) for action in event.actions),
        directories=event.directories,
        faults=event.faults,
    )
    return replace(state, plan=plan, turn=replace(state.turn, phase="finding"))


def _more_actions(state: State, event: e.ActionsAdded) -> State:
    added = tuple(ActionSlice(action) for action in event.actions)
    plan = replace(state.plan, actions=(*state.plan.actions, *added))
    return replace(state, plan=plan, turn=replace(state.turn, phase="finding"))


def on_action(state: State, name: str, change: Callable[[ActionSlice], ActionSlice]) -> State:
    actions = tuple(change(slot) if slot.action.name == name else slot for slot in state.plan.actions)
    return replace(state, plan=replace(state.plan, actions=actions))


def _attempt(state: State, event: e.AttemptStarted | e.AttemptEnded) -> State:
    attempt = event.attempt

    def with_attempt(slot: ActionSlice) -> ActionSlice:
        others = tuple(known for known in slot.attempts if known.step != attempt.step)
        state = "loaded" if attempt.outcome == "hit" and slot.state != "asking" else "looking"
        return replace(slot, attempts=(*others, attempt), state=state)

    return on_action(state, attempt.action, with_attempt)


def _fallback(state: State, event: e.FallbackTaken) -> State:
    ended = {"ask_user": "asking", "skip": "skipped", "create_new": "create"}[event.kind]
    return on_action(state, event.action, lambda slot: replace(slot, state=ended, nearest=event.nearest))


def _asked(state: State, event: e.QuestionAsked) -> State:
    state = replace(state, turn=replace(state.turn, phase="waiting", waiting_for=event.action))

    def asking(slot: ActionSlice) -> ActionSlice:
        nearest = event.choices or slot.nearest
        several = bool(event.choices) and not event.question
        return replace(slot, state="asking", nearest=nearest, several=several, question=event.question)

    return on_action(state, event.action, asking)


def _answered(state: State, event: e.QuestionAnswered) -> State:
    state = replace(state, turn=replace(state.turn, phase="finding", waiting_for=""))
    ended = "looking" if event.path else "skipped"
    return on_action(state, event.action, lambda slot: replace(slot, state=ended, nearest=(), several=False))


def _secret_decided(state: State, event: e.SecretDecided) -> State:
    state = replace(
        state,
        secrets={**state.secrets, event.digest: event.choice},
        turn=replace(state.turn, phase="finding", waiting_for="") if state.turn.waiting_for else state.turn,
    )
    ended = "skipped" if event.choice == "leave" else "loaded"
    return on_action(state, event.action, lambda slot: replace(slot, state=ended, nearest=()))


def _decisions(state: State, event: e.DecisionsKept) -> State:
    return replace(state, input=replace(state.input, decisions=event.decisions))


def _chosen(state: State, event: e.MatchChosen) -> State:
    others = tuple(path for path in event.among if path not in event.paths)
    return on_action(state, event.action, lambda slot: replace(slot, others=others))


def _reopened(state: State, event: e.ActionReopened) -> State:
    known = {path: file for path, file in state.known.files.items() if path not in event.dropped}
    known |= {file.path: file for file in event.restored}
    state = replace(state, known=replace(state.known, files=known))

    def anew(slot: ActionSlice) -> ActionSlice:
        action, earlier, attempts = slot.action, slot.earlier, slot.attempts
        if event.patterns:
            known = {attempt.pattern for attempt in (*earlier, *attempts)}
            if not known.issubset(event.patterns):  # looking for the same once more replaces what was tried
                earlier = (*earlier, *attempts)
            action, attempts = replace(action, patterns=event.patterns, extra=()), ()
        others = tuple(dict.fromkeys((*slot.others, *slot.loaded)))
        return ActionSlice(action, attempts, state="looking", others=others, earlier=earlier)

    return on_action(state, event.action, anew)


def _left_out(state: State, event: e.FilesLeftOut) -> State:
    if not event.loaded:
        return on_action(
            state,
            event.action,
            lambda slot: _failed(replace(slot, left_out=(*slot.left_out, *event.paths))),
        )
    files = {path: file for path, file in state.known.files.items() if path not in event.paths}
    files |= {file.path: file for file in event.before}

    def without(slot: ActionSlice) -> ActionSlice:
        gone = tuple(path for path in slot.loaded if path in event.paths)
        kept = tuple(path for path in slot.loaded if path not in event.paths)
        return _failed(replace(slot, loaded=kept, left_out=(*slot.left_out, *gone))) if gone else slot

    plan = replace(state.plan, actions=tuple(map(without, state.plan.actions)))
    return replace(state, plan=plan, known=replace(state.known, files=files))


def _failed(slot: ActionSlice) -> ActionSlice:
    """An action of which nothing goes with the request has failed."""
    return slot if slot.loaded or slot.state != "loaded" else replace(slot, state="failed")


def _listed(state: State, event: e.DirectoryListed) -> State:
    directory = DirectoryAction(event.path, event.recursive, event.filter)
    listed = (*state.plan.listed, ListedFolder(directory, event.total, event.error))
    waiting = tuple(one for one in state.plan.directories if _plainly(one) != _plainly(directory))
    return replace(state, plan=replace(state.plan, listed=listed, directories=waiting))


def _plainly(directory: DirectoryAction) -> DirectoryAction:
    """The same folder in the same words, however its path was written."""
    return replace(directory, path=directory.path.strip().removeprefix("./").strip("/") or ".")


def _permission_asked(state: State, event: e.PermissionAsked) -> State:
    question = PermissionQuestion(event.call, event.tool, event.shown, event.preview)
    return replace(state, asked=question, turn=replace(state.turn, phase="waiting", waiting_for=event.call))


def _permission_decided(state: State, event: e.PermissionDecided) -> State:
    """Of decisions about the same thing the newest counts; only so many are kept."""
    others = tuple(one for one in state.permissions if one.digest != event.decision.digest)
    turn = state.turn
    if state.asked is not None:
        turn = replace(turn, phase="finding", waiting_for="")
    kept = (*others, event.decision)[-DECISIONS_KEPT:]
    return replace(state, asked=None, turn=turn, permissions=kept)


def _permission_revoked(state: State, event: e.PermissionRevoked) -> State:
    left = tuple(one for one in state.permissions if one.digest != event.digest)
    return replace(state, permissions=left)


def _call_started(state: State, event: e.CallStarted) -> State:
    words = f"{event.name} {event.shown}".strip()
    return replace(state, turn=replace(state.turn, calls={**state.turn.calls, event.id: words}))


def _called(state: State, event: e.CallEnded) -> State:
    """The call is shown with the answer that made it, and its result waits for the next request."""
    conversation = state.conversation
    if event.id in conversation.open_calls:
        answered = {**conversation.answered, event.id: event.text}
        state = replace(state, conversation=replace(conversation, answered=answered))
    going = {key: words for key, words in state.turn.calls.items() if key != event.id}
    state = replace(state, turn=replace(state.turn, calls=going))
    messages = state.chat.messages
    at = answering(messages, state.turn.number)
    if at < 0 or (at < len(messages) - 1 and event.name == "run_command"):
        return state  # a command has a message of its own
    last = messages[at]
    details = event.details or event.text
    use = ToolUse(event.id, event.name, event.shown, event.ok, event.seconds, event.amount, details)
    made = {call: at for at, call in enumerate(conversation.open_calls)}
    uses = sorted((*last.calls, use), key=lambda one: made.get(one.id, -1))  # those of earlier steps first
    messages = (*messages[:at], replace(last, calls=tuple(uses)), *messages[at + 1 :])
    return replace(state, chat=replace(state.chat, messages=messages))


def _retry(state: State, event: e.RetryCounted) -> State:
    turn = replace(state.turn, phase="retrying", retry_seconds=event.seconds, retry_why=event.why)
    return replace(state, turn=turn)


def _prompt_read(state: State, event: e.PromptRead) -> State:
    turn = replace(
        state.turn, reading=event.seconds, read=event.read, read_of=event.of, read_waits=event.waits
    )
    return replace(state, turn=turn)


def _streamed(state: State, event: e.ReplyStreamed) -> State:
    reply = state.reply
    match event.part:
        case "summary":
            reply = replace(reply, summary=reply.summary + event.text)
        case "message":
            reply = replace(reply, message=reply.message + event.text)
        case "reasoning":
            reply = replace(reply, reasoning=reply.reasoning + event.text)
    reply = replace(reply, letters=reply.letters + (event.letters or len(event.text)))
    if event.writing:
        reply = replace(reply, writing=event.writing, files=event.files)
    same = state.turn.phase == "streaming" or (state.turn.phase == "planning" and not event.part)
    turn = state.turn if same else replace(state.turn, phase="streaming")
    return replace(state, reply=reply, turn=turn)


def _grew(state: State, event: e.ReplyGrew) -> State:
    said = event.summary, event.message, event.reasoning, event.letters
    reply = ReplySlice(event.turn, *said, state.reply.writing, state.reply.files)
    return state if reply == state.reply else replace(state, reply=reply)


def read_reply(state: State, event: e.ReplyRead) -> State:
    state = replace(
        state,
        reply=ReplySlice(turn=event.turn),
        turn=replace(state.turn, proposes=state.turn.proposes or bool(event.changes)),
        chat=replace(state.chat, next_steps=event.next_steps),
    )
    message = ChatMessage(
        0,
        "agent",
        event.turn,
        event.message,
        summary=event.summary,
        reasoning=event.reasoning,
        todos=len(event.todos),
        cut=event.cut,
        why=event.why,
        thinking=state.usage.last.thinking,  # it was counted just before
    )
    messages = state.chat.messages
    at = answering(messages, event.turn)
    if at < 0 or not _adds_calls_alone(message, messages[at]):
        return say(state, message)
    last = messages[at]
    whole = replace(
        last,
        reasoning="\n\n".join(filter(None, (last.reasoning, message.reasoning))),
        thinking=last.thinking + message.thinking,
        todos=message.todos or last.todos,
    )
    return replace(state, chat=replace(state.chat, messages=(*messages[:at], whole, *messages[at + 1 :])))


def answering(messages: Sequence[ChatMessage], turn: int) -> int:
    """The place of the message that the model is saying in this turn: the newest, or before the newest command of the
    model; -1 where there is none."""
    for at in range(len(messages) - 1, max(-1, len(messages) - 3), -1):
        one = messages[at]
        if one.kind == "agent":
            return at if one.turn == turn else -1
        if one.kind != "command" or one.check is not None or one.command is None or one.command.by != "model":
            return -1
    return -1


def _adds_calls_alone(message: ChatMessage, last: ChatMessage) -> bool:
    """Whether a reply says nothing: its calls are then shown with the message of the same turn before it."""
    return not (message.text.strip() or message.summary or message.cut or last.cut)


def _ended(state: State, event: e.TurnEnded) -> State:
    turn = replace(
        state.turn,
        phase="idle",
        ok=event.ok,
        error=event.error,
        kind=event.kind,
        limit=event.limit,
        seconds=event.seconds,
        retry_seconds=0,
        waiting_for="",
        calls={},
    )
    state = replace(state, usage=replace(state.usage, open=None), asked=None)
    state = _keep_partial_reply(replace(state, turn=turn))
    if not event.error:
        return state
    level = "info" if event.stopped else "error"
    return say(state, ChatMessage(0, "note", event.turn, event.error, level=level))


def _left_off(state: State, event: e.ReplyLeftOff) -> State:
    reply = ReplySlice(event.turn, event.summary, event.message, event.reasoning)
    return _keep_partial_reply(replace(state, reply=reply))


def _keep_partial_reply(state: State) -> State:
    reply = state.reply
    if not (reply.summary or reply.message or reply.reasoning):
        return state
    message = ChatMessage(
        0, "agent", reply.turn, reply.message, summary=reply.summary, reasoning=reply.reasoning, cut=True
    )
    return say(replace(state, reply=ReplySlice(turn=reply.turn)), message)


FOLDS = {
    e.SessionForked: _forked,
    e.TurnStarted: _started,
    e.PhaseChanged: _phase,
    e.PlanMade: _plan,
    e.ActionsAdded: _more_actions,
    e.AttemptStarted: _attempt,
    e.AttemptEnded: _attempt,
    e.FallbackTaken: _fallback,
    e.QuestionAsked: _asked,
    e.QuestionAnswered: _answered,
    e.SecretDecided: _secret_decided,
    e.DecisionsKept: _decisions,
    e.MatchChosen: _chosen,
    e.ActionReopened: _reopened,
    e.FilesLeftOut: _left_out,
    e.DirectoryListed: _listed,
    e.PermissionAsked: _permission_asked,
    e.PermissionDecided: _permission_decided,
    e.PermissionRevoked: _permission_revoked,
    e.CallStarted: _call_started,
    e.CallEnded: _called,
    e.RetryCounted: _retry,
    e.PromptRead: _prompt_read,
    e.ReplyStreamed: _streamed,
    e.ReplyGrew: _grew,
    e.ReplyLeftOff: _left_off,
    e.TurnEnded: _ended,
}
