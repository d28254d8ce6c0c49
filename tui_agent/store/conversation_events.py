"""Events of the conversation with the model, of commands and checks."""

from __future__ import annotations

from typing import Literal

from msgspec import field
from msgspec.structs import replace

from tui_agent.answers.values import NextStep, SubTaskRequest, TodoItem
from tui_agent.settings.schema import CheckCommand
from tui_agent.store.commands import (
    KEPT,
    By,
    CheckResult,
    ChecksSlice,
    CommandResult,
    Isolated,
    RunningCommand,
    Where,
)
from tui_agent.store.conversation import ConversationSlice, OpenRequest, Purpose, SentMessage, ToolUse, Usage
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.state import ChatMessage, InstructionFile, ReplySlice, State

#: A larger ratio of the provider's count to the estimate measures something different.
MOST_SCALE = 4.0


class UploadsEnded(Lasting, frozen=True):
    """Uploads were deleted, or belong to another process; the next request restarts with text."""

    def apply(self, state: State) -> State:
        return replace(state, conversation=replace(state.conversation, uploads_ended=True))


class ConversationBegun(Lasting, frozen=True):
    """`files`, `contexts` and `head` are as in `ConversationSlice`; `open_calls` are carried over."""

    turn: int
    why: Literal["first", "model", "files", "condensed", "edited"]
    messages: tuple[SentMessage, ...]
    files: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)
    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    head: str = ""
    head_tokens: int = 0
    open_calls: tuple[str, ...] = ()

    def apply(self, state: State) -> State:
        before = state.conversation
        conversation = ConversationSlice(
            model=self.model,
            protocol=self.protocol,
            messages=self.messages,
            files=self.files,
            contexts=self.contexts,
            untold=before.untold,
            open_calls=self.open_calls,
            answered=before.answered,
            last=before.last,
            restarts=True,
            why=self.why,
            head=self.head,
            head_tokens=self.head_tokens,
            unbundled=before.unbundled,
        )
        return replace(state, conversation=conversation)


class SummaryMade(Lasting, frozen=True):
    """Without text, only the newest `kept` of all messages remain."""

    turn: int
    text: str
    kept: int = 0
    of: int = 0

    def apply(self, state: State) -> State:
        if self.kept:
            words = "Older messages could not be summarised: "
            words += f"the model continues with the newest {self.kept} of {self.of}."
            return state.with_message(ChatMessage(0, "note", self.turn, words, level="warning"))
        words = "Older messages were summarised for the model. The chat still shows all of them."
        return state.with_message(ChatMessage(0, "note", self.turn, self.text, summary=words))


class MemoryEdited(Lasting, frozen=True):
    text: str

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, memory=self.text))


class MemoryBuilt(Lasting, frozen=True):
    turn: int
    text: str

    def apply(self, state: State) -> State:
        state = replace(state, input=replace(state.input, memory=""))
        return state.with_message(ChatMessage(0, "note", self.turn, self.text))


class InstructionsRead(Lasting, frozen=True):
    """The files in force, or those rejected."""

    files: tuple[InstructionFile, ...]

    def apply(self, state: State) -> State:
        return replace(state, instructions=self.files)


class RequestSent(Lasting, frozen=True):
    """`messages` are new; `reset`: the conversation had restarted. `prefix_share` is the share of the last
    request's bytes that is a prefix of this one.
    """

    turn: int
    purpose: Literal["plan", "main", "condense", "subtask"]
    messages: tuple[SentMessage, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    tokens: int = 0
    estimated: bool = False
    parts: dict[str, int] = field(default_factory=dict)
    prefix_share: float = 0.0
    reset: bool = False
    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    contexts: dict[str, str] = field(default_factory=dict)
    #: Provider files referenced by the new messages.
    uploads: tuple[str, ...] = ()
    tasks: dict[str, str] = field(default_factory=dict)
    #: Estimated usage until the provider's count arrives; None in older logs.
    paid: OpenRequest | None = None
    asks: bool = False

    def apply(self, state: State) -> State:
        if self.purpose == "subtask":
            return state
        state = replace(
            state,
            usage=replace(state.usage, open=self.paid),
            reply=replace(state.reply, letters=0),
        )
        if self.purpose == "plan":
            return replace(state, turn=replace(state.turn, phase="planning"))
        turn = replace(
            state.turn, phase="asking", step=state.turn.step + 1, reading=0, read=0, read_of=0, read_waits=""
        )
        state = replace(state, turn=turn)
        if self.purpose != "main":
            return state
        begins = self.reset and not state.conversation.restarts
        before = ConversationSlice() if begins else state.conversation
        messages = (*before.messages, *self.messages)
        conversation = replace(
            before,
            model=self.model,
            protocol=self.protocol,
            messages=messages,
            files={**before.files, **self.files},
            rows={**before.rows, **self.rows},
            blocks={**before.blocks, **self.blocks},
            contexts={**before.contexts, **self.contexts},
            tasks={**before.tasks, **self.tasks},
            uploads=tuple(dict.fromkeys((*before.uploads, *self.uploads))),
            untold=(),
            open_calls=(),
            answered={},
            last=messages,
            restarts=False,
            unbundled=(),
            asks=self.asks,
            refusable=replace(state.conversation, refusable=None),
        )
        usage = replace(
            state.usage,
            context=round(self.tokens * state.usage.scale),
            context_estimated=self.estimated or state.usage.scale != 1,
            counted=self.tokens,
            parts=self.parts,
            prefix_share=self.prefix_share,
            resets=state.usage.resets + self.reset,
        )
        return replace(state, conversation=conversation, usage=usage)


class RequestWithdrawn(Lasting, frozen=True):
    """Refused as too long; the conversation is restored."""

    turn: int

    def apply(self, state: State) -> State:
        before = state.conversation.refusable
        return state if before is None else replace(state, conversation=before)


class RetryCounted(Passing, frozen=True):
    seconds: int
    attempt: int
    why: str

    def apply(self, state: State) -> State:
        turn = replace(state.turn, phase="retrying", retry_seconds=self.seconds, retry_why=self.why)
        return replace(state, turn=turn)


class PromptRead(Passing, frozen=True):
    """A local server has been reading the request for `seconds`. `waits` is the reason reading has not
    begun.
    """

    seconds: int
    read: int = 0
    of: int = 0
    waits: str = ""

    def apply(self, state: State) -> State:
        turn = replace(
            state.turn, reading=self.seconds, read=self.read, read_of=self.of, read_waits=self.waits
        )
        return replace(state, turn=turn)


class ReplyStreamed(Passing, frozen=True):
    """`writing` is the file whose change begins, `files` the number of files so far."""

    part: Literal["summary", "message", "reasoning", ""]
    text: str = ""
    letters: int = 0
    writing: str = ""
    files: int = 0

    def apply(self, state: State) -> State:
        reply = state.reply
        match self.part:
            case "summary":
                reply = replace(reply, summary=reply.summary + self.text)
            case "message":
                reply = replace(reply, message=reply.message + self.text)
            case "reasoning":
                reply = replace(reply, reasoning=reply.reasoning + self.text)
        reply = replace(reply, letters=reply.letters + (self.letters or len(self.text)))
        if self.writing:
            reply = replace(reply, writing=self.writing, files=self.files)
        same = state.turn.phase == "streaming" or (state.turn.phase == "planning" and not self.part)
        turn = state.turn if same else replace(state.turn, phase="streaming")
        return replace(state, reply=reply, turn=turn)


class ReplyGrew(Growing, frozen=True):
    turn: int
    summary: str
    message: str
    reasoning: str = ""
    letters: int = 0

    @property
    def key(self) -> str:
        return "reply"

    def apply(self, state: State) -> State:
        said = self.summary, self.message, self.reasoning, self.letters
        reply = ReplySlice(self.turn, *said, state.reply.writing, state.reply.files)
        return state if reply == state.reply else replace(state, reply=reply)


class ReplyRead(Lasting, frozen=True):
    turn: int
    summary: str
    message: str
    reasoning: str = ""
    sent: SentMessage | None = None
    open_calls: tuple[str, ...] = ()
    #: In order; each has a `ChangeProposed` event.
    changes: tuple[str, ...] = ()
    todos: tuple[TodoItem, ...] = ()
    sub_tasks: tuple[SubTaskRequest, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    cut: bool = False
    faults: tuple[str, ...] = ()
    #: Why it was cut, without a full stop; "" if unknown.
    why: str = ""

    def apply(self, state: State) -> State:
        state = self._say(state)
        if self.sent is None:
            return state
        conversation = replace(
            state.conversation,
            messages=(*state.conversation.messages, self.sent),
            open_calls=self.open_calls,
            answered={},
            untold=(*state.conversation.untold, *self.faults),
            refusable=None,
        )
        parts = {**state.usage.parts, "reply": self.sent.tokens}
        return replace(state, conversation=conversation, usage=replace(state.usage, parts=parts))

    def _say(self, state: State) -> State:
        state = replace(
            state,
            reply=ReplySlice(turn=self.turn),
            turn=replace(state.turn, proposes=state.turn.proposes or bool(self.changes)),
            chat=replace(state.chat, next_steps=self.next_steps),
        )
        message = ChatMessage(
            0,
            "agent",
            self.turn,
            self.message,
            summary=self.summary,
            reasoning=self.reasoning,
            todos=len(self.todos),
            cut=self.cut,
            why=self.why,
            thinking=state.usage.last.thinking,
        )
        messages = state.chat.messages
        at = state.chat.answering(self.turn)
        says_something = message.text.strip() or message.summary or message.cut
        if at < 0 or says_something or messages[at].cut:
            return state.with_message(message)
        # A reply of calls only is shown with the preceding message of the turn.
        last = messages[at]
        whole = replace(
            last,
            reasoning="\n\n".join(filter(None, (last.reasoning, message.reasoning))),
            thinking=last.thinking + message.thinking,
            todos=message.todos or last.todos,
        )
        return state.with_message_at(at, whole)


class ReplyLeftOff(Lasting, frozen=True):
    turn: int
    summary: str = ""
    message: str = ""
    reasoning: str = ""

    def apply(self, state: State) -> State:
        reply = ReplySlice(self.turn, self.summary, self.message, self.reasoning)
        return replace(state, reply=reply).with_partial_reply()


class UsageCounted(Lasting, frozen=True):
    usage: Usage
    purpose: Purpose = "main"

    def apply(self, state: State) -> State:
        usage = replace(state.usage, session=state.usage.session.plus(self.usage))
        if usage.open is not None and usage.open.purpose == self.purpose:
            usage = replace(usage, open=None)
        if self.purpose != "subtask":  # Sub-tasks run independently of turns, with separate limits.
            usage = replace(usage, turn=state.usage.turn.plus(self.usage))
        if self.purpose == "plan":
            usage = replace(usage, planning=state.usage.planning.plus(self.usage))
        if self.purpose == "main":
            usage = replace(usage, last=self.usage)
            if not self.usage.estimated and self.usage.input and usage.counted:
                # The provider's count is exact and corrects later estimates.
                scale = min(MOST_SCALE, max(1.0, self.usage.input / usage.counted))
                usage = replace(usage, context=self.usage.input, context_estimated=False, scale=scale)
        return replace(state, usage=usage)


class ModelOwesNews(Lasting, frozen=True):
    fact: str

    def apply(self, state: State) -> State:
        conversation = replace(state.conversation, untold=(*state.conversation.untold, self.fact))
        return replace(state, conversation=conversation)


#: Characters of a command, and of its output, stored with calls.
MOST_TOLD, MOST_SHOWN = 500, 4_000


class CommandPreparing(Passing, frozen=True):
    id: str
    command: str
    by: By
    at: float
    background: bool = False

    def apply(self, state: State) -> State:
        one = RunningCommand(
            self.id,
            self.command,
            self.by,
            "trial",
            "none",
            self.at,
            background=self.background,
            preparing=True,
        )
        commands = state.commands
        return replace(state, commands=replace(commands, running=(*commands.running, one)))


class CommandWithdrawn(Passing, frozen=True):
    id: str

    def apply(self, state: State) -> State:
        running = tuple(one for one in state.commands.running if one.id != self.id or not one.preparing)
        if len(running) == len(state.commands.running):
            return state
        return replace(state, commands=replace(state.commands, running=running))


class CommandStarted(Lasting, frozen=True):
    id: str
    command: str
    by: By
    where: Where
    isolated: Isolated
    at: float
    background: bool = False
    place: str = ""

    def apply(self, state: State) -> State:
        one = RunningCommand(
            self.id,
            self.command,
            self.by,
            self.where,
            self.isolated,
            self.at,
            background=self.background,
            place=self.place,
        )
        commands = state.commands
        running = (*(it for it in commands.running if it.id != self.id), one)
        return replace(state, commands=replace(commands, running=running, total=commands.total + 1))


class CommandPrinted(Passing, frozen=True):
    id: str
    line: str
    printed: int

    def apply(self, state: State) -> State:
        running = tuple(
            replace(one, line=self.line, printed=self.printed) if one.id == self.id else one
            for one in state.commands.running
        )
        return replace(state, commands=replace(state.commands, running=running))


class CommandEnded(Lasting, frozen=True):
    result: CommandResult

    def apply(self, state: State) -> State:
        result, commands = self.result, state.commands
        running = tuple(one for one in commands.running if one.id != result.id)
        results = (*commands.results, result)[-KEPT:]
        state = replace(state, commands=replace(commands, running=running, results=results))
        if result.by == "check":
            return state
        level = "info" if result.ok else "warning"
        message = ChatMessage(0, "command", state.turn.number, result.command, command=result, level=level)
        at = state.chat.answering(state.turn.number)
        if result.by != "model" or at < 0 or at != len(state.chat.messages) - 2:
            return state.with_message(message)
        *earlier, agent, before = state.chat.messages
        ran = before.command or result  # A later command follows: show this one among the model's calls.
        call = ToolUse(
            ran.id,
            "run_command",
            ran.command[:MOST_TOLD],
            ran.ok,
            ran.seconds,
            ran.ending,
            ran.output[:MOST_SHOWN],
        )
        agent = replace(agent, calls=(*agent.calls, call))
        messages = (*earlier, agent, replace(message, number=before.number))
        return replace(state, chat=replace(state.chat, messages=messages))


class ChecksStarted(Lasting, frozen=True):
    """adds: other results for the same content remain valid."""

    names: tuple[str, ...]
    repair: int = 0
    where: Where = "trial"
    adds: bool = False

    def apply(self, state: State) -> State:
        before = [result for result in state.checks.results if result.name not in self.names]
        checks = ChecksSlice(
            self.names,
            tuple(before) if self.adds else (),
            self.repair,
            self.where,
            offered=state.checks.offered,
        )
        return replace(state, checks=checks)


class CheckEnded(Lasting, frozen=True):
    result: CheckResult

    def apply(self, state: State) -> State:
        result, checks = self.result, state.checks
        running = tuple(name for name in checks.running if name != result.name)
        state = replace(state, checks=replace(checks, running=running, results=(*checks.results, result)))
        run = state.commands.result(result.run)
        if run is None:
            return state
        level = "info" if result.state == "passed" else "warning"
        message = ChatMessage(
            0, "command", state.turn.number, run.command, command=run, check=result, level=level
        )
        return state.with_message(message)


class ChecksRefused(Lasting, frozen=True):
    why: str

    def apply(self, state: State) -> State:
        return replace(state, checks=replace(state.checks, running=(), refused=self.why))


class ChecksOutdated(Passing, frozen=True):
    why: str

    def apply(self, state: State) -> State:
        return replace(state, checks=replace(state.checks, outdated=self.why))


class ChecksOffered(Passing, frozen=True):
    """Empty after the user's decision."""

    checks: tuple[CheckCommand, ...]

    def apply(self, state: State) -> State:
        return replace(state, checks=replace(state.checks, offered=self.checks))
