"""The complete state: one immutable value with one slice per pane. Slices are replaced, so `is` detects
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.answers.values import NextStep
from tui_agent.context.blocks import holds, summary_line
from tui_agent.edits.change import Change, Checkpoint
from tui_agent.files.gate import SecretChoice
from tui_agent.planning.chain import Attempt
from tui_agent.settings.schema import Effort, Mode
from tui_agent.store.commands import (
    CheckMark,
    CheckResult,
    ChecksSlice,
    CommandResult,
    CommandsSlice,
    content_of,
    marks,
)
from tui_agent.store.conversation import (
    ConversationSlice,
    PermissionDecision,
    PermissionQuestion,
    ServerToolsSlice,
    ToolUse,
    UsageSlice,
)
from tui_agent.store.files import Buffer, BuffersSlice, KnownSlice
from tui_agent.store.graph import SubTask
from tui_agent.store.layout import LayoutSlice

#: Messages in memory; older ones are read from the log.
TRANSCRIPT_WINDOW = 200
#: A local model with a smaller window (tokens) gets few tools and no outline.
SMALL_WINDOW = 6_144


class SessionSlice(Struct, frozen=True):
    """`replay` is the recording; `rehearsal`: the bundled one."""

    id: str = ""
    name: str = ""
    workspace: str = ""
    replay: str = ""
    rehearsal: bool = False
    trusted: bool = False
    #: Why the session cannot be stored, or "".
    not_kept: str = ""
    #: The slow operation the user is waiting for, or "".
    waits_for: str = ""
    #: Chosen by the user; "" for that of the settings.
    mode: Mode | Literal[""] = ""


class WorkspaceSlice(Struct, frozen=True):
    """`revision` counts changes of the index; `marks` is git's two-letter status by path."""

    indexing: bool = True
    files: int = 0
    revision: int = 0
    watching: Literal["starting", "watching", "polling", "failed"] = "starting"
    is_repository: bool = False
    branch: str = ""
    ahead: int = 0
    behind: int = 0
    marks: dict[str, str] = field(default_factory=dict)


class ModelSlice(Struct, frozen=True):
    """`window` is in tokens; `status` is the state of the model's process."""

    name: str = ""
    planner: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    window: int = 0
    window_known: bool = False
    takes_schema: bool = False
    priced: bool = True
    #: Kind of a local server ("local" if unknown), and its parallel requests (0: unknown).
    server: str = ""
    slots: int = 0
    status: Literal["idle", "starting", "ready", "failed"] = "idle"
    #: Chosen in this session, by model.
    efforts: dict[str, Effort] = field(default_factory=dict)

    @property
    def small(self) -> bool:
        return bool(self.server) and self.window_known and self.window < SMALL_WINDOW


Phase = Literal[
    "idle", "starting", "planning", "finding", "waiting", "asking", "streaming", "retrying", "checking"
]


class TurnSlice(Struct, frozen=True):
    """The running or last turn. `waiting_for` is the action with an open question; `retry_seconds` and
    `retry_why` are the countdown. `proposes`: a reply contains changes, even if not yet in the review.
    """

    number: int = 0
    phase: Phase = "idle"
    request: str = ""
    step: int = 0
    ok: bool = True
    error: str = ""
    #: Class name of the error (see `errors`), or another cause of the end.
    kind: str = ""
    #: Name of the setting whose limit ended the turn, or "".
    limit: str = ""
    waiting_for: str = ""
    retry_seconds: int = 0
    retry_why: str = ""
    #: Seconds a local server has been reading the request, tokens read, and total tokens.
    reading: int = 0
    read: int = 0
    read_of: int = 0
    #: Why reading has not begun.
    read_waits: str = ""
    seconds: float = 0.0
    proposes: bool = False
    calls: dict[str, str] = field(default_factory=dict)
    #: None for the model's.
    effort: Effort | None = None
    #: The user's turn that an automatic batch turn continues; otherwise this turn.
    first: int = 0

    @property
    def running(self) -> bool:
        return self.phase != "idle"


class ActionSlice(Struct, frozen=True):
    """`nearest` are the choices of the open question: similar names, or with `several` equally matching
    files. `others` are unused matches. `earlier` are attempts with patterns the user has replaced.
    """

    action: FileAction
    attempts: tuple[Attempt, ...] = ()
    state: Literal["waiting", "looking", "loaded", "asking", "skipped", "create", "failed"] = "waiting"
    loaded: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    several: bool = False
    others: tuple[str, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    #: An open question about a secret, whose choices are `SecretChoice`s.
    question: str = ""


class ListedFolder(Struct, frozen=True):
    directory: DirectoryAction
    entries: int = 0
    error: str = ""


class PlanSlice(Struct, frozen=True):
    """`directories` remain to be listed."""

    turn: int = 0
    source: Literal["model", "words"] = "words"
    actions: tuple[ActionSlice, ...] = ()
    directories: tuple[DirectoryAction, ...] = ()
    listed: tuple[ListedFolder, ...] = ()
    faults: tuple[str, ...] = ()


class TurnCost(Struct, frozen=True):
    seconds: float = 0.0
    tokens: int = 0
    cost: float | None = None


class ChatMessage(Struct, frozen=True):
    """Kind `note` is from the program; `number` counts from 1."""

    number: int
    kind: Literal["person", "agent", "note", "command"]
    turn: int
    text: str
    summary: str = ""
    reasoning: str = ""
    changes: tuple[str, ...] = ()
    todos: int = 0
    level: Literal["info", "warning", "error"] = "info"
    cut: bool = False
    #: Why it was cut, without a full stop.
    why: str = ""
    command: CommandResult | None = None
    check: CheckResult | None = None
    calls: tuple[ToolUse, ...] = ()
    #: As counted by the provider; 0 if not reported.
    thinking: int = 0
    #: On the last message of the model in a turn that has ended.
    spent: TurnCost | None = None

    @property
    def headline(self) -> str:
        """The summary, or "" if it repeats the text."""
        return "" if holds(self.text, self.summary) else self.summary

    @property
    def title(self) -> str:
        """`You`, `Agent`, `Check tests`."""
        if self.check:
            return f"Check {self.check.name}"
        return "You" if self.kind == "person" else self.kind.capitalize()

    @property
    def gist(self) -> str:
        return self.summary or summary_line(self.text)


class ChatSlice(Struct, frozen=True):
    """At most `TRANSCRIPT_WINDOW` messages, and their total number."""

    messages: tuple[ChatMessage, ...] = ()
    total: int = 0
    next_steps: tuple[NextStep, ...] = ()

    def answering(self, turn: int) -> int:
        """Returns the newest message of the model in this turn, or the one before its newest command; -1 if
        none.
        """
        for at in range(len(self.messages) - 1, max(-1, len(self.messages) - 3), -1):
            one = self.messages[at]
            if one.kind == "agent":
                return at if one.turn == turn else -1
            if (
                one.kind != "command"
                or one.check is not None
                or one.command is None
                or one.command.by != "model"
            ):
                return -1
        return -1

    def last_of(self, turn: int) -> int:
        """Returns the model's newest message of a turn; -1 if none."""
        said = (at for at, one in enumerate(self.messages) if one.kind == "agent" and one.turn == turn)
        return max(said, default=-1)


class ReplySlice(Struct, frozen=True):
    """Empty if no reply is streaming. `writing` is the last of `files`."""

    turn: int = 0
    summary: str = ""
    message: str = ""
    reasoning: str = ""
    letters: int = 0
    writing: str = ""
    files: int = 0


class Decision(Struct, frozen=True):
    """Load `path`, search for `patterns`, or load all matches (`everything`); skip without any of them."""

    action: str
    path: str = ""
    patterns: tuple[str, ...] = ()
    everything: bool = False


class InputSlice(Struct, frozen=True):
    """`memory` replaces the generated memory in the next continuation request; `decisions` are executed with
    the next request; `pastes` maps placeholder lines to blobs.
    """

    draft: str = ""
    queue: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    memory: str = ""
    decisions: tuple[Decision, ...] = ()
    pastes: dict[str, str] = {}
    #: Unused text of other inputs, by place.
    typed: dict[str, str] = {}
    #: Consecutive turns work towards it, unless "".
    goal: str = ""


class Todo(Struct, frozen=True):
    id: str
    text: str
    details: str = ""
    done: bool = False
    turn: int = 0
    changes: tuple[str, ...] = ()


class Batch(Struct, frozen=True):
    """Files of a request that exceed one turn's room; `id` is also its todo's id. `turn` is the first turn.
    Of `total` files, `left` wait in order and `now` are in the current turn. `last` is the number
    completed in the previous turn.
    """

    id: str
    name: str
    pattern: str
    request: str
    turn: int
    total: int
    left: tuple[str, ...]
    now: tuple[str, ...] = ()
    last: int = 0

    @property
    def done(self) -> int:
        return self.total - len(self.left) - len(self.now)


class ReviewSlice(Struct, frozen=True):
    changes: tuple[Change, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    def change(self, change_id: str) -> Change | None:
        return next((change for change in self.changes if change.id == change_id), None)

    @property
    def open(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.is_open)

    @property
    def undecided(self) -> int:
        """Hunks, and changes without any, that await a decision."""
        return sum(max(change.hunks.count("pending"), 1) for change in self.open)


class SubTaskProgress(Struct, frozen=True):
    """`line` is its last output; `tokens` and `cost` (dollars, None if unknown) are those of this run."""

    phase: Phase = "starting"
    line: str = ""
    tokens: int = 0
    cost: float | None = 0.0
    started: float = 0.0
    heard: float = 0.0
    turn: int = 0


class SubTasksSlice(Struct, frozen=True):
    """`running` is by id. `begun` counts all runs of the session by id, including earlier graphs."""

    tasks: tuple[SubTask, ...] = ()
    running: dict[str, SubTaskProgress] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)

    def get(self, task: str) -> SubTask | None:
        return next((found for found in self.tasks if found.id == task), None)


class InstructionFile(Struct, frozen=True):
    path: str
    folder: str
    why: str
    md5: str = ""
    tokens: int = 0
    left_out: str = ""


class Notice(Struct, frozen=True):
    """One sentence; `number` counts from 1."""

    number: int
    level: Literal["info", "warning", "error"]
    text: str


class NoticesSlice(Struct, frozen=True):
    items: tuple[Notice, ...] = ()
    total: int = 0


class OtherSession(Struct, frozen=True):
    """In another process, as its line `state` describes it. `host` is "" for this machine."""

    id: str
    workspace: str
    state: str
    pid: int = 0
    title: str | None = None
    asks: str | None = None
    choices: tuple[str, ...] = ()
    changes: int = 0
    attached: bool = False
    host: str = ""

    @property
    def waits_for_user(self) -> bool:
        return self.state in ("asks", "failed", "checks failed", "has changes")


class State(Struct, frozen=True):
    session: SessionSlice = SessionSlice()
    workspace: WorkspaceSlice = WorkspaceSlice()
    model: ModelSlice = ModelSlice()
    turn: TurnSlice = TurnSlice()
    plan: PlanSlice = PlanSlice()
    chat: ChatSlice = ChatSlice()
    reply: ReplySlice = ReplySlice()
    input: InputSlice = InputSlice()
    todos: tuple[Todo, ...] = ()
    batches: tuple[Batch, ...] = ()
    review: ReviewSlice = ReviewSlice()
    known: KnownSlice = KnownSlice()
    buffers: BuffersSlice = BuffersSlice()
    subtasks: SubTasksSlice = SubTasksSlice()
    commands: CommandsSlice = CommandsSlice()
    checks: ChecksSlice = ChecksSlice()
    usage: UsageSlice = UsageSlice()
    conversation: ConversationSlice = ConversationSlice()
    instructions: tuple[InstructionFile, ...] = ()
    notices: NoticesSlice = NoticesSlice()
    layout: LayoutSlice = LayoutSlice()
    skills: tuple[tuple[str, str], ...] = ()
    agents: tuple[tuple[str, str], ...] = ()
    server_tools: ServerToolsSlice = ServerToolsSlice()
    #: Decisions about files, by SHA-256 of their bytes.
    secrets: dict[str, SecretChoice] = field(default_factory=dict)
    #: Unrevoked decisions about tool calls, oldest first, and the open question.
    permissions: tuple[PermissionDecision, ...] = ()
    asked: PermissionQuestion | None = None
    #: Oldest first. Empty while no terminal is attached.
    others: tuple[OtherSession, ...] = ()

    def with_message(self, message: ChatMessage) -> State:
        total = self.chat.total + 1
        messages = (*self.chat.messages, replace(message, number=total))[-TRANSCRIPT_WINDOW:]
        return replace(self, chat=replace(self.chat, messages=messages, total=total))

    def with_message_at(self, at: int, message: ChatMessage) -> State:
        messages = (*self.chat.messages[:at], message, *self.chat.messages[at + 1 :])
        return replace(self, chat=replace(self.chat, messages=messages))

    def with_partial_reply(self) -> State:
        reply = self.reply
        if not (reply.summary or reply.message or reply.reasoning):
            return self
        message = ChatMessage(
            0, "agent", reply.turn, reply.message, summary=reply.summary, reasoning=reply.reasoning, cut=True
        )
        return replace(self, reply=ReplySlice(turn=reply.turn)).with_message(message)

    def on_action(self, name: str, change: Callable[[ActionSlice], ActionSlice]) -> State:
        actions = tuple(change(slot) if slot.action.name == name else slot for slot in self.plan.actions)
        return replace(self, plan=replace(self.plan, actions=actions))

    def on_buffer(self, path: str, change: Callable[[Buffer], Buffer]) -> State:
        opened = tuple(change(buffer) if buffer.path == path else buffer for buffer in self.buffers.open)
        return replace(self, buffers=replace(self.buffers, open=opened))

    @property
    def next_turn(self) -> int:
        """Reuses the last number if the model never responded."""
        last = self.turn
        answered = any(
            message.turn == last.number and message.kind == "agent" for message in self.chat.messages
        )
        failed = not last.running and not last.ok and last.kind != "Interrupted"
        return last.number if failed and not answered else last.number + 1

    def holds(self, result: CheckResult) -> bool:
        if self.checks.outdated:
            return False
        if result.where == "workspace":
            return result.content == self.applied
        return result.content == content_of(self.review.changes, self.buffers.open, result.content)

    @property
    def checked_buffers(self) -> BuffersSlice | None:
        return self.buffers if self.checks.results else None

    @property
    def applied(self) -> dict[str, str]:
        """Content of checks in the folder itself."""
        checkpoints = self.review.checkpoints
        return {"applied": f"{len(checkpoints)}-{sum(point.undone for point in checkpoints)}"}

    @property
    def check_marks(self) -> list[CheckMark]:
        """Returns [] if all changes of the latest round are decided."""
        if self.checks.where == "trial" and not self.review.open and not self.checks.running:
            return []
        return marks(self.checks, [self.holds(result) for result in self.checks.results])

    @property
    def turn_expected(self) -> bool:
        """Whether a turn runs, a message is queued, or the draft has more than one character."""
        return len(self.input.draft) > 1 or bool(self.input.queue) or self.turn.running

    @property
    def has_plan(self) -> bool:
        return self.conversation.asks and not self.turn.running and self.turn.ok

    @property
    def check_doubt(self) -> str:
        """Returns why the open changes are not known to pass their checks; "" if they pass or have no
        checks. A missing program counts only if no check passed.
        """
        looks = self.check_marks if self.checks.where == "trial" else []
        for look, words in (
            ("failed", "failed"),
            ("running", "still running"),
            ("stale", "not run on this"),
            ("stopped", "stopped"),
            *((("missing", "program missing"),) if all(mark.look == "missing" for mark in looks) else ()),
        ):
            names = [mark.name for mark in looks if mark.look == look]
            if names:
                return f"{', '.join(names)}: {words}"
        return ""
