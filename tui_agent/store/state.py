"""All that the panes show and the next turn builds on: one frozen value, one slice a pane.

Slices are replaced, never changed, so that `is` tells whether one moved. A list in a slice is a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tui_agent.answers.gist import gist_of, holds
from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.answers.values import NextStep
from tui_agent.edits.change import Change, Checkpoint
from tui_agent.files.disclosure import SecretChoice
from tui_agent.planning.chain import Attempt
from tui_agent.settings.schema import Effort
from tui_agent.store.checks import CheckMark, CheckResult, ChecksSlice, applied_content, content_of, marks
from tui_agent.store.commands import CommandResult, CommandsSlice
from tui_agent.store.conversation import ConversationSlice
from tui_agent.store.files import Buffer, BuffersSlice, KnownSlice
from tui_agent.store.graph import SubTask
from tui_agent.store.layout import LayoutSlice
from tui_agent.store.tool_calls import PermissionDecision, PermissionQuestion, ToolUse
from tui_agent.store.usage import UsageSlice

#: How many messages of the transcript stay in memory; older ones are paged from the log.
TRANSCRIPT_WINDOW = 200
#: A local model whose window has fewer tokens gets few tools, and no outline.
SMALL_WINDOW = 6_144


class SessionSlice(Struct, frozen=True):
    """Which session this is. `replay` is the recording it answers from, `rehearsal` that it is the bundled one."""

    id: str = ""
    name: str = ""
    workspace: str = ""
    replay: str = ""
    rehearsal: bool = False
    read_only: bool = False
    trusted: bool = False
    #: Why nothing can be kept, where that is so; empty where the log works.
    not_kept: str = ""
    #: What takes long, where something does that the person waits for: the disk.
    waits_for: str = ""


class WorkspaceSlice(Struct, frozen=True):
    """The folder: how many files the index knows, how they are watched, and what git says.

    `revision` counts changes of the index, `marks` is git's two-letter status by path.
    """

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
    """The model in use. `window` is in tokens; `status` is that of the process that reaches it."""

    name: str = ""
    planner: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    window: int = 0
    window_known: bool = False
    #: Whether the provider can hold the model to a JSON schema.
    takes_schema: bool = False
    #: Whether what it costs is known.
    priced: bool = True
    #: The kind of a local server ("local" where that is not known), and how many requests it works on at once (0 where
    #: nobody knows).
    server: str = ""
    slots: int = 0
    status: Literal["idle", "starting", "ready", "failed"] = "idle"
    #: The effort that the person chose in this session, by the model's name.
    efforts: dict[str, Effort] = field(default_factory=dict)

    @property
    def small(self) -> bool:
        """Whether its window holds little more than a file and an answer: then only what is needed is sent."""
        return bool(self.server) and self.window_known and self.window < SMALL_WINDOW


Phase = Literal[
    "idle", "starting", "planning", "finding", "waiting", "asking", "streaming", "retrying", "checking"
]


class TurnSlice(Struct, frozen=True):
    """The turn that runs, or the last one. `number` counts from 1; `step` counts requests within the turn.

    `waiting_for` names the action whose question is open; `retry_seconds` and `retry_why` are the countdown.
    `proposes` says that a reply of this turn holds changes, whether all of them are in the review yet or not.
    """

    number: int = 0
    phase: Phase = "idle"
    request: str = ""
    step: int = 0
    ok: bool = True
    error: str = ""
    #: The name of the error's class (see `errors`), or what else ended the turn.
    kind: str = ""
    #: The limit that ended it, by the name of its setting.
    limit: str = ""
    waiting_for: str = ""
    retry_seconds: int = 0
    retry_why: str = ""
    #: How long a local server has been reading the request, in seconds, and how many tokens of how many it has read.
    reading: int = 0
    read: int = 0
    read_of: int = 0
    #: Why it does not read it yet.
    read_waits: str = ""
    seconds: float = 0.0
    proposes: bool = False
    #: The calls of tools that are being done: what each is about, by its id.
    calls: dict[str, str] = field(default_factory=dict)
    #: The effort of this turn alone; None for that of the model.
    effort: Effort | None = None
    #: The turn that the person asked for, where this one goes on with a batch by itself; else this one.
    first: int = 0

    @property
    def running(self) -> bool:
        return self.phase != "idle"


class ActionSlice(Struct, frozen=True):
    """One file action as it is: its attempts so far, what was loaded, how it ended.

    `nearest` are what the open question offers: the names most like the ones that were tried or, where `several`,
    the files that the name fits equally. `others` are matches that were not taken. `earlier` are attempts with
    patterns that the person has since replaced.
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
    #: What the open question asks, where it is about a secret: then it offers `SecretChoice`s.
    question: str = ""


class ListedFolder(Struct, frozen=True):
    """A folder that was listed for the model: how many entries it has, or why there is no listing."""

    directory: DirectoryAction
    entries: int = 0
    error: str = ""


class PlanSlice(Struct, frozen=True):
    """The plan of the turn: who made it and how far it has come. `directories` are those still to be listed."""

    turn: int = 0
    source: Literal["model", "words"] = "words"
    actions: tuple[ActionSlice, ...] = ()
    directories: tuple[DirectoryAction, ...] = ()
    listed: tuple[ListedFolder, ...] = ()
    faults: tuple[str, ...] = ()


class ChatMessage(Struct, frozen=True):
    """One entry of the transcript. `kind` `note` is the program's own voice; `number` counts from 1."""

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
    #: What cut it, as a sentence without its full stop.
    why: str = ""
    #: Of a command: what came of it.
    command: CommandResult | None = None
    #: Of a command that was a check.
    check: CheckResult | None = None
    calls: tuple[ToolUse, ...] = ()
    #: The tokens of its thinking by the provider's count; 0 if the provider gives none.
    thinking: int = 0

    @property
    def headline(self) -> str:
        """What is shown above the text: the summary, empty where the text says it."""
        return "" if holds(self.text, self.summary) else self.summary

    @property
    def gist(self) -> str:
        """Its summary, else what its text says last or first, in a line; empty where it says nothing."""
        return self.summary or gist_of(self.text)


class ChatSlice(Struct, frozen=True):
    """The newest messages (at most `TRANSCRIPT_WINDOW`), how many there are in all, and what is offered next."""

    messages: tuple[ChatMessage, ...] = ()
    total: int = 0
    next_steps: tuple[NextStep, ...] = ()

    def answering(self, turn: int) -> int:
        """The place of the message that the model is saying in this turn: the newest, or before the newest command of
        the model; -1 if there is none."""
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


class ReplySlice(Struct, frozen=True):
    """The answer that is being streamed, as far as it came; empty when none is.

    `letters` counts all that came, shown or not; `writing` is the file whose change comes, the last of so many `files`.
    """

    turn: int = 0
    summary: str = ""
    message: str = ""
    reasoning: str = ""
    letters: int = 0
    writing: str = ""
    files: int = 0


class Decision(Struct, frozen=True):
    """What the person says about an action of the plan: load `path`, or look for `patterns`, or (`everything`) take
    all the files that its name fits; without any of them it is let go."""

    action: str
    path: str = ""
    patterns: tuple[str, ...] = ()
    everything: bool = False


class InputSlice(Struct, frozen=True):
    """What the person has typed and not sent, and the messages that wait for the turn to end.

    `memory` is what the person wrote for the next request to go on, in place of what state would say;
    `decisions` are those on the plan that go with the next request; `pastes` are the blobs of long texts that were
    pasted, by the lines that are written in their place.
    """

    draft: str = ""
    queue: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    memory: str = ""
    decisions: tuple[Decision, ...] = ()
    pastes: dict[str, str] = {}
    #: What is typed at other places and was not put to its use yet, by place.
    typed: dict[str, str] = {}


class Todo(Struct, frozen=True):
    """`id` is the program's own. `changes` are the ids of the changes it is tied to."""

    id: str
    text: str
    details: str = ""
    done: bool = False
    turn: int = 0
    changes: tuple[str, ...] = ()


class Batch(Struct, frozen=True):
    """Many files that a request is about, more than a turn has room for; `id` is that of its todo, too.

    `name` and `pattern` are those of the action that asked for them, `turn` the one that began it. Of `total` files
    those in `left` wait, in this order, and those in `now` go with the turn that runs. `last` says how many the turn
    before has done.
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
    """Every change that was proposed this session, oldest first, and every apply that can be undone."""

    changes: tuple[Change, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    def change(self, change_id: str) -> Change | None:
        return next((change for change in self.changes if change.id == change_id), None)

    @property
    def open(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.is_open)


class SubTaskProgress(Struct, frozen=True):
    """A sub-task that runs. `line` is the last that it said; `started` and `heard` (when it last said anything) are
    in seconds since 1970, `tokens` and `cost` (in dollars, None where not known) are of this run so far."""

    phase: Phase = "starting"
    line: str = ""
    tokens: int = 0
    cost: float | None = 0.0
    started: float = 0.0
    heard: float = 0.0
    turn: int = 0


class SubTasksSlice(Struct, frozen=True):
    """The graph, in the order in which the tasks were proposed, and those that run, by id.

    `begun` counts by id all runs of the session, those of earlier graphs too.
    """

    tasks: tuple[SubTask, ...] = ()
    running: dict[str, SubTaskProgress] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)

    def get(self, task: str) -> SubTask | None:
        return next((found for found in self.tasks if found.id == task), None)


class InstructionFile(Struct, frozen=True):
    """An instruction file in force: in which folder, and why it is looked at there; or why it is left out."""

    path: str
    folder: str
    why: str
    md5: str = ""
    tokens: int = 0
    left_out: str = ""


class Notice(Struct, frozen=True):
    """One sentence for the person; `number` counts from 1."""

    number: int
    level: Literal["info", "warning", "error"]
    text: str


class NoticesSlice(Struct, frozen=True):
    """The newest notices (at most 50), oldest first."""

    items: tuple[Notice, ...] = ()
    total: int = 0


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
    #: Batches of which files are left.
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
    #: What the person decided about files with secrets, by the SHA-256 of their bytes.
    secrets: dict[str, SecretChoice] = field(default_factory=dict)
    #: What was decided about calls of tools, and not revoked, oldest first; and what is being asked.
    permissions: tuple[PermissionDecision, ...] = ()
    asked: PermissionQuestion | None = None

    def said(self, message: ChatMessage) -> State:
        """The state with one more message in the transcript; its number is given here."""
        total = self.chat.total + 1
        messages = (*self.chat.messages, replace(message, number=total))[-TRANSCRIPT_WINDOW:]
        return replace(self, chat=replace(self.chat, messages=messages, total=total))

    def with_partial_reply(self) -> State:
        """The state with what has come of an answer as a message, cut off."""
        reply = self.reply
        if not (reply.summary or reply.message or reply.reasoning):
            return self
        message = ChatMessage(
            0, "agent", reply.turn, reply.message, summary=reply.summary, reasoning=reply.reasoning, cut=True
        )
        return replace(self, reply=ReplySlice(turn=reply.turn)).said(message)

    def on_action(self, name: str, change: Callable[[ActionSlice], ActionSlice]) -> State:
        """The state with this action of the plan changed."""
        actions = tuple(change(slot) if slot.action.name == name else slot for slot in self.plan.actions)
        return replace(self, plan=replace(self.plan, actions=actions))

    def on_buffer(self, path: str, change: Callable[[Buffer], Buffer]) -> State:
        """The state with this open file changed."""
        opened = tuple(change(buffer) if buffer.path == path else buffer for buffer in self.buffers.open)
        return replace(self, buffers=replace(self.buffers, open=opened))

    @property
    def next_turn(self) -> int:
        """The number of the next turn: that of the last once more, if the model never answered it."""
        last = self.turn
        answered = any(
            message.turn == last.number and message.kind == "agent" for message in self.chat.messages
        )
        failed = not last.running and not last.ok and last.kind != "Interrupted"
        return last.number if failed and not answered else last.number + 1

    def holds(self, result: CheckResult) -> bool:
        """Whether what a check found is said of exactly the content that there is now."""
        if self.checks.outdated:
            return False
        if result.where == "workspace":
            return result.content == self.applied
        return result.content == content_of(self.review.changes, self.buffers.open, result.content)

    @property
    def checked_buffers(self) -> BuffersSlice | None:
        """The open files, where something was checked that their text may have made another by now."""
        return self.buffers if self.checks.results else None

    @property
    def applied(self) -> dict[str, str]:
        """What checks in the folder itself run on."""
        checkpoints = self.review.checkpoints
        return applied_content(len(checkpoints), sum(point.undone for point in checkpoints))

    @property
    def check_marks(self) -> list[CheckMark]:
        """The checks of the newest round as they are shown; none where they were of what is decided by now."""
        if self.checks.where == "trial" and not self.review.open and not self.checks.running:
            return []
        return marks(self.checks, [self.holds(result) for result in self.checks.results])

    @property
    def turn_expected(self) -> bool:
        """Whether a turn runs, or may soon: more than one letter of a message is written, or one waits."""
        return len(self.input.draft) > 1 or bool(self.input.queue) or self.turn.running

    @property
    def check_doubt(self) -> str:
        """Why what waits is not known to pass its checks, as a sentence without its full stop; "" where it is, or
        where it has none."""
        looks = self.check_marks if self.checks.where == "trial" else []
        for look, words in (
            ("failed", "failed"),
            ("running", "still running"),
            ("stale", "not run on this"),
            ("stopped", "stopped"),
        ):
            names = [mark.name for mark in looks if mark.look == look]
            if names:
                return f"{', '.join(names)}: {words}"
        return ""
