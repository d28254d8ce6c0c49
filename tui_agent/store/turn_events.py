"""Events of a turn: plan, attempts of patterns, calls, end."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.context.known_files import KnownFile, Touch
from tui_agent.context.memory import asks_to_go_on
from tui_agent.files.gate import SecretChoice
from tui_agent.planning.chain import Attempt
from tui_agent.settings.schema import Effort
from tui_agent.store import task_events
from tui_agent.store.conversation import PermissionDecision, PermissionQuestion, ToolUse, Usage
from tui_agent.store.event import Lasting, Passing
from tui_agent.store.state import (
    ActionSlice,
    ChatMessage,
    Decision,
    ListedFolder,
    Phase,
    PlanSlice,
    ReplySlice,
    State,
    TurnCost,
    TurnSlice,
)

HISTORY_KEPT = 200
DECISIONS_KEPT = 500
#: Why a file is omitted from a request.
OutReason = Literal["room", "limit", "unreadable", "secret", "denied"]


class TurnStarted(Lasting, frozen=True):
    """`effort` is for this turn only (None: the model's)."""

    turn: int
    request: str
    queued: bool = False
    attachments: tuple[str, ...] = ()
    effort: Effort | None = None
    #: An automatic turn that continues a batch, within the previous turn's allowance.
    unasked: bool = False

    def apply(self, state: State) -> State:
        history = tuple(text for text in state.input.history if text != self.request)
        queue = state.input.queue[1:] if self.queued else state.input.queue
        # An edited memory expires with a turn about something different.
        memory = state.input.memory if asks_to_go_on(self.request, self.turn) else ""
        state = replace(
            state,
            turn=TurnSlice(
                number=self.turn,
                first=(state.turn.first or state.turn.number) if self.unasked else self.turn,
                phase="planning",
                request=self.request,
                effort=self.effort,
            ),
            plan=PlanSlice(turn=self.turn),
            reply=ReplySlice(turn=self.turn),
            input=replace(
                state.input, queue=queue, history=(*history, self.request)[-HISTORY_KEPT:], memory=memory
            ),
            usage=state.usage if self.unasked else replace(state.usage, turn=Usage(), planning=Usage()),
            chat=replace(state.chat, next_steps=()),
        )
        return state.with_message(ChatMessage(0, "person", self.turn, self.request))


class PhaseChanged(Passing, frozen=True):
    phase: Phase

    def apply(self, state: State) -> State:
        turn = replace(state.turn, phase=self.phase, retry_seconds=0, retry_why="", waiting_for="")
        return replace(state, turn=turn)


class PlanMade(Lasting, frozen=True):
    turn: int
    source: Literal["model", "words"]
    actions: tuple[FileAction, ...]
    directories: tuple[DirectoryAction, ...] = ()
    faults: tuple[str, ...] = ()

    def apply(self, state: State) -> State:
        plan = PlanSlice(
            turn=self.turn,
            source=self.source,
            actions=tuple(ActionSlice(action) for action in self.actions),
            directories=self.directories,
            faults=self.faults,
        )
        return replace(state, plan=plan, turn=replace(state.turn, phase="finding"))


class ActionsAdded(Lasting, frozen=True):
    actions: tuple[FileAction, ...]

    def apply(self, state: State) -> State:
        added = tuple(ActionSlice(action) for action in self.actions)
        plan = replace(state.plan, actions=(*state.plan.actions, *added))
        return replace(state, plan=plan, turn=replace(state.turn, phase="finding"))


class AttemptStarted(Passing, frozen=True):
    attempt: Attempt

    def apply(self, state: State) -> State:
        return _with_attempt(state, self.attempt)


class AttemptEnded(Lasting, frozen=True):
    attempt: Attempt

    def apply(self, state: State) -> State:
        return _with_attempt(state, self.attempt)


def _with_attempt(state: State, attempt: Attempt) -> State:
    def changed(slot: ActionSlice) -> ActionSlice:
        others = tuple(known for known in slot.attempts if known.step != attempt.step)
        state = "loaded" if attempt.outcome == "hit" and slot.state != "asking" else "looking"
        return replace(slot, attempts=(*others, attempt), state=state)

    return state.on_action(attempt.action, changed)


class FallbackTaken(Lasting, frozen=True):
    action: str
    kind: Literal["ask_user", "skip", "create_new"]
    patterns: tuple[str, ...]
    nearest: tuple[str, ...] = ()

    def apply(self, state: State) -> State:
        ended = {"ask_user": "asking", "skip": "skipped", "create_new": "create"}[self.kind]
        return state.on_action(self.action, lambda slot: replace(slot, state=ended, nearest=self.nearest))


class QuestionAsked(Passing, frozen=True):
    """`choices` are equally matching files; empty if none was found."""

    action: str
    choices: tuple[str, ...] = ()
    #: Replaces the usual question.
    question: str = ""

    def apply(self, state: State) -> State:
        state = replace(state, turn=replace(state.turn, phase="waiting", waiting_for=self.action))

        def asking(slot: ActionSlice) -> ActionSlice:
            nearest = self.choices or slot.nearest
            several = bool(self.choices) and not self.question
            return replace(slot, state="asking", nearest=nearest, several=several, question=self.question)

        return state.on_action(self.action, asking)


class SecretDecided(Lasting, frozen=True):
    """For these exact bytes. `action` asked the question."""

    path: str
    digest: str
    choice: SecretChoice
    action: str = ""

    def apply(self, state: State) -> State:
        state = replace(
            state,
            secrets={**state.secrets, self.digest: self.choice},
            turn=replace(state.turn, phase="finding", waiting_for="")
            if state.turn.waiting_for
            else state.turn,
        )
        ended = "skipped" if self.choice == "leave" else "loaded"
        return state.on_action(self.action, lambda slot: replace(slot, state=ended, nearest=()))


class QuestionAnswered(Lasting, frozen=True):
    """ "" skipped the action."""

    action: str
    path: str = ""

    def apply(self, state: State) -> State:
        state = replace(state, turn=replace(state.turn, phase="finding", waiting_for=""))
        ended = "looking" if self.path else "skipped"
        return state.on_action(
            self.action, lambda slot: replace(slot, state=ended, nearest=(), several=False)
        )


class DecisionsKept(Lasting, frozen=True):
    decisions: tuple[Decision, ...]

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, decisions=self.decisions))


class MatchChosen(Lasting, frozen=True):
    """A name matched the files `among` equally: `paths` are used. `all`: in headless mode, or as the user's
    choice.
    """

    action: str
    paths: tuple[str, ...]
    among: tuple[str, ...]
    by: Literal["nearness", "person", "all"]

    def apply(self, state: State) -> State:
        others = tuple(path for path in self.among if path not in self.paths)
        return state.on_action(self.action, lambda slot: replace(slot, others=others))


class ActionReopened(Lasting, frozen=True):
    """`dropped` paths leave the registry, earlier entries are `restored`."""

    action: str
    patterns: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    restored: tuple[KnownFile, ...] = ()

    def apply(self, state: State) -> State:
        known = {path: file for path, file in state.known.files.items() if path not in self.dropped}
        known |= {file.path: file for file in self.restored}
        state = replace(state, known=replace(state.known, files=known))

        def anew(slot: ActionSlice) -> ActionSlice:
            action, earlier, attempts = slot.action, slot.earlier, slot.attempts
            if self.patterns:
                known = {attempt.pattern for attempt in (*earlier, *attempts)}
                # A repeated search with the same patterns replaces the earlier attempts.
                if not known.issubset(self.patterns):
                    earlier = (*earlier, *attempts)
                action, attempts = replace(action, patterns=self.patterns, extra=()), ()
            others = tuple(dict.fromkeys((*slot.others, *slot.loaded)))
            return ActionSlice(action, attempts, state="looking", others=others, earlier=earlier)

        return state.on_action(self.action, anew)


class FileLoaded(Lasting, frozen=True):
    file: KnownFile
    action: str = ""
    at: float = 0.0

    def apply(self, state: State) -> State:
        file = self.file
        known = state.known
        if file.loaded_by == "mention":
            known = known.with_touch(Touch(file.path, file.seen_turn, "mentioned", "", at=self.at))
        touch = Touch(file.path, file.seen_turn, "read", file.md5, at=self.at)
        state = replace(state, known=known.with_file(file).with_touch(touch))
        state = state.on_action(
            self.action, lambda slot: replace(slot, state="loaded", loaded=(*slot.loaded, file.path))
        )
        return task_events.loaded(state, file, self.action)


class FilesLeftOut(Lasting, frozen=True):
    """`action` is "" if none requested them. `loaded`: withdrawn after loading; `before` are their earlier
    entries.
    """

    action: str
    paths: tuple[str, ...]
    why: str
    reason: OutReason = "room"
    loaded: bool = False
    before: tuple[KnownFile, ...] = ()

    def apply(self, state: State) -> State:
        if self.loaded:
            files = {path: file for path, file in state.known.files.items() if path not in self.paths}
            files |= {file.path: file for file in self.before}

            def without(slot: ActionSlice) -> ActionSlice:
                gone = tuple(path for path in slot.loaded if path in self.paths)
                kept = tuple(path for path in slot.loaded if path not in self.paths)
                return _failed(replace(slot, loaded=kept, left_out=(*slot.left_out, *gone))) if gone else slot

            plan = replace(state.plan, actions=tuple(map(without, state.plan.actions)))
            state = replace(state, plan=plan, known=replace(state.known, files=files))
        else:
            state = state.on_action(
                self.action, lambda slot: _failed(replace(slot, left_out=(*slot.left_out, *self.paths)))
            )
        return task_events.postpone_files(state, self.paths, for_room=self.reason == "room")


class DirectoryListed(Lasting, frozen=True):
    path: str
    entries: tuple[tuple[str, str, int], ...] = ()
    error: str = ""
    filter: str = ""
    recursive: bool = False
    total: int = 0

    def apply(self, state: State) -> State:
        directory = DirectoryAction(self.path, self.recursive, self.filter)
        listed = (*state.plan.listed, ListedFolder(directory, self.total, self.error))
        waiting = tuple(one for one in state.plan.directories if _plainly(one) != _plainly(directory))
        return replace(state, plan=replace(state.plan, listed=listed, directories=waiting))


class PermissionAsked(Passing, frozen=True):
    call: str
    tool: str
    shown: str
    preview: str
    digest: str
    answers: tuple[tuple[str, str], ...] = ()
    typed: bool = False

    def apply(self, state: State) -> State:
        question = PermissionQuestion(
            self.call, self.tool, self.shown, self.preview, self.answers, self.typed
        )
        return replace(
            state, asked=question, turn=replace(state.turn, phase="waiting", waiting_for=self.call)
        )


class PermissionDecided(Lasting, frozen=True):
    decision: PermissionDecision

    def apply(self, state: State) -> State:
        others = tuple(one for one in state.permissions if one.digest != self.decision.digest)
        turn = state.turn
        if state.asked is not None:
            turn = replace(turn, phase="finding", waiting_for="")
        kept = (*others, self.decision)[-DECISIONS_KEPT:]
        return replace(state, asked=None, turn=turn, permissions=kept)


class PermissionRevoked(Lasting, frozen=True):
    digest: str

    def apply(self, state: State) -> State:
        left = tuple(one for one in state.permissions if one.digest != self.digest)
        return replace(state, permissions=left)


class CallStarted(Passing, frozen=True):
    id: str
    name: str
    shown: str = ""

    def apply(self, state: State) -> State:
        words = f"{self.name} {self.shown}".strip()
        return replace(state, turn=replace(state.turn, calls={**state.turn.calls, self.id: words}))


class CallEnded(Lasting, frozen=True):
    """`arguments` are shortened, `text` is for the model beside files, `details` are for the user if
    different.
    """

    id: str
    name: str
    arguments: str = ""
    shown: str = ""
    ok: bool = True
    seconds: float = 0.0
    amount: str = ""
    text: str = ""
    details: str = ""

    def apply(self, state: State) -> State:
        conversation = state.conversation
        if self.id in conversation.open_calls:
            answered = {**conversation.answered, self.id: self.text}
            state = replace(state, conversation=replace(conversation, answered=answered))
        going = {key: words for key, words in state.turn.calls.items() if key != self.id}
        state = replace(state, turn=replace(state.turn, calls=going))
        messages = state.chat.messages
        at = state.chat.answering(state.turn.number)
        if at < 0 or (at < len(messages) - 1 and self.name == "run_command"):
            return state
        last = messages[at]
        details = self.details or self.text
        use = ToolUse(self.id, self.name, self.shown, self.ok, self.seconds, self.amount, details)
        made = {call: at for at, call in enumerate(conversation.open_calls)}
        uses = sorted((*last.calls, use), key=lambda one: made.get(one.id, -1))
        return state.with_message_at(at, replace(last, calls=tuple(uses)))


class TurnEnded(Lasting, frozen=True):
    turn: int
    ok: bool
    error: str = ""
    kind: str = ""
    stopped: bool = False
    seconds: float = 0.0
    limit: str = ""

    def apply(self, state: State) -> State:
        turn = replace(
            state.turn,
            phase="idle",
            ok=self.ok,
            error=self.error,
            kind=self.kind,
            limit=self.limit,
            seconds=self.seconds,
            retry_seconds=0,
            waiting_for="",
            calls={},
        )
        state = replace(state, usage=replace(state.usage, open=None), asked=None)
        state = replace(state, turn=turn).with_partial_reply()
        if (at := state.chat.last_of(self.turn)) >= 0:
            used = state.usage.turn
            spent = TurnCost(self.seconds, used.input + used.output, used.cost)
            state = state.with_message_at(at, replace(state.chat.messages[at], spent=spent))
        if self.error:
            level = "info" if self.stopped else "error"
            state = state.with_message(ChatMessage(0, "note", self.turn, self.error, level=level))
        return task_events.turn_ended(state, self.turn, whole=self.ok and not self.limit)


def _failed(slot: ActionSlice) -> ActionSlice:
    return slot if slot.loaded or slot.state != "loaded" else replace(slot, state="failed")


def _plainly(directory: DirectoryAction) -> DirectoryAction:
    return replace(directory, path=directory.path.strip().removeprefix("./").strip("/") or ".")
