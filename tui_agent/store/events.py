"""Everything that can happen, in the past tense: the only way in which the state changes.

Three kinds. A `Lasting` event is in the log before it is folded. A `Growing` event describes something that is
still being made (a half-typed message, an unsaved buffer, a reply as it streams): the newest one under each
`key` is kept, about once a second, until a lasting event takes its place. A `Passing` event is folded and
forgotten: progress, countdowns, what can be measured again.

A field that is added later has a default; an event that a newer version wrote is skipped by an older one.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.answers.values import NextStep, SubTaskRequest, TodoItem
from tui_agent.context.known import Freshness, KnownFile, Touch
from tui_agent.edits.change import Change, Checkpoint, FileStep, HunkState
from tui_agent.files.text import Encoding
from tui_agent.planning.chain import Attempt
from tui_agent.store.state import (
    Decision,
    InstructionFile,
    LayoutSlice,
    Phase,
    SentMessage,
    SubTaskProgress,
    Todo,
    Usage,
)
from tui_agent.subtasks.graph import SubTask, SubTaskState


class Event(Struct, frozen=True, tag_field="type", tag=lambda name: name):
    """Base of all events; `type` on the wire is the class's name."""


class Lasting(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """On disk before it is acknowledged."""


class Growing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """The newest under its key is kept within a second."""

    @property
    def key(self) -> str:
        raise NotImplementedError


class Passing(Event, frozen=True, tag_field="type", tag=lambda name: name):
    """Folded, never kept."""


# ── the session ──────────────────────────────────────────────────────────────────────────────────────────


class SessionStarted(Lasting, frozen=True):
    """A session began in a workspace, maybe with a recording to answer from."""

    id: str
    workspace: str
    replay: str = ""
    rehearsal: bool = False
    version: str = ""


class SessionOpened(Passing, frozen=True):
    """A session was opened by this process; `not_kept` says why nothing can be written, if so."""

    trusted: bool = False
    read_only: bool = False
    not_kept: str = ""


class KeepingChanged(Passing, frozen=True):
    """The log refuses to be written, for this reason; or (with none) it is written again, with all that waited."""

    not_kept: str = ""


class SessionRenamed(Lasting, frozen=True):
    """The person (or the first request) gave the session a name."""

    name: str


class SessionForked(Lasting, frozen=True):
    """The session goes on where the session `source` stood after a turn, and the person is told how files differ."""

    source: str
    text: str


class ModelChosen(Lasting, frozen=True):
    """A model was chosen, with the dialect it is spoken to in and the size of its window in tokens."""

    name: str
    planner: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    window: int = 0
    window_known: bool = False
    takes_schema: bool = False
    priced: bool = True


class ModelStatusChanged(Passing, frozen=True):
    """The process that reaches the model is starting, ready, or has failed."""

    status: Literal["idle", "starting", "ready", "failed"]


class NoticeGiven(Lasting, frozen=True):
    """The program has something to say that is no part of the conversation."""

    level: Literal["info", "warning", "error"]
    text: str


class LayoutChanged(Growing, frozen=True):
    """The person moved between panes, zoomed, hid or resized one."""

    layout: LayoutSlice

    @property
    def key(self) -> str:
        return "layout"


# ── the workspace ────────────────────────────────────────────────────────────────────────────────────────


class IndexChanged(Passing, frozen=True):
    """The list of files was made or has changed; `complete` once the first listing is through."""

    files: int
    complete: bool = True


class WatchChanged(Passing, frozen=True):
    """Changes on disk are seen by events, by polling, or not at all."""

    watching: Literal["starting", "watching", "polling", "failed"]


class GitStatusRead(Passing, frozen=True):
    """git told the branch, its distance from upstream, and a two-letter mark for each changed path."""

    is_repository: bool
    branch: str = ""
    ahead: int = 0
    behind: int = 0
    marks: dict[str, str] = {}


# ── what the person types ────────────────────────────────────────────────────────────────────────────────


class DraftChanged(Growing, frozen=True):
    """The text in the chat's input is now this."""

    text: str

    @property
    def key(self) -> str:
        return "draft"


class MessageQueued(Lasting, frozen=True):
    """A message was sent while a turn was running: it waits for that turn to end."""

    text: str


class QueueChanged(Lasting, frozen=True):
    """The person edited, reordered or emptied the messages that wait."""

    queue: tuple[str, ...]


# ── the turn ─────────────────────────────────────────────────────────────────────────────────────────────


class TurnStarted(Lasting, frozen=True):
    """The person asked for something; `queued` says that it was the first in the queue."""

    turn: int
    request: str
    queued: bool = False
    attachments: tuple[str, ...] = ()


class PhaseChanged(Passing, frozen=True):
    """The turn went from one kind of work to another."""

    phase: Phase


class PlanMade(Lasting, frozen=True):
    """It is known which files the request needs and how they will be looked for."""

    turn: int
    source: Literal["model", "words"]
    actions: tuple[FileAction, ...]
    directories: tuple[DirectoryAction, ...] = ()
    faults: tuple[str, ...] = ()


class ActionsAdded(Lasting, frozen=True):
    """The model asked for more files in the middle of the turn."""

    actions: tuple[FileAction, ...]


class AttemptStarted(Passing, frozen=True):
    """A pattern is being looked for."""

    attempt: Attempt


class AttemptEnded(Lasting, frozen=True):
    """A pattern was looked for, and this is what came of it."""

    attempt: Attempt


class FallbackTaken(Lasting, frozen=True):
    """No pattern of an action matched: the person is asked, it is skipped, or the file is to be made."""

    action: str
    kind: Literal["ask_user", "skip", "create_new"]
    patterns: tuple[str, ...]
    nearest: tuple[str, ...] = ()


class QuestionAsked(Passing, frozen=True):
    """The turn waits for the person to say which file an action means.

    `choices` are files that its name fits equally well; without them nothing was found.
    """

    action: str
    choices: tuple[str, ...] = ()


class QuestionAnswered(Lasting, frozen=True):
    """The person chose a path for an action, or (with none) let it go."""

    action: str
    path: str = ""


class DecisionsKept(Lasting, frozen=True):
    """These decisions of the person on the plan, made after its request had gone out, go with the next one."""

    decisions: tuple[Decision, ...]


class MatchChosen(Lasting, frozen=True):
    """A name fitted the files `among` equally well: `paths` are taken, as the nearest, by the person's choice, or
    (`all`) because nobody could be asked or the person wants them all."""

    action: str
    paths: tuple[str, ...]
    among: tuple[str, ...]
    by: Literal["nearness", "person", "all"]


class ActionReopened(Lasting, frozen=True):
    """The person took an action up again, with these patterns or for another file.

    What it had loaded does not go out: `dropped` paths leave the registry, those known before are `restored`.
    """

    action: str
    patterns: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    restored: tuple[KnownFile, ...] = ()


class FileLoaded(Lasting, frozen=True):
    """A file's text goes into the next request; `action` is the one that wanted it."""

    file: KnownFile
    action: str = ""
    at: float = 0.0


class UploadsEnded(Lasting, frozen=True):
    """What was uploaded is deleted, or was another process's: the next request begins anew with text."""


class FilesLeftOut(Lasting, frozen=True):
    """Matches of an action that were not loaded, and why; `unreadable` are those that cannot be."""

    action: str
    paths: tuple[str, ...]
    why: str
    unreadable: bool = False


class DirectoryListed(Lasting, frozen=True):
    """A folder was listed for the model; `entries` are (name, type, size in bytes)."""

    path: str
    entries: tuple[tuple[str, str, int], ...] = ()
    error: str = ""


class ConversationBegun(Lasting, frozen=True):
    """The conversation as sent begins anew with `messages`: what the next request appends to.

    `files`, `contexts` and `head` are as in `ConversationSlice`; `open_calls` are carried over.
    """

    turn: int
    why: Literal["first", "model", "files", "condensed", "edited"]
    messages: tuple[SentMessage, ...]
    files: dict[str, str] = {}
    contexts: dict[str, str] = {}
    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    head: str = ""
    head_tokens: int = 0
    open_calls: tuple[str, ...] = ()


class SummaryMade(Lasting, frozen=True):
    """Older messages were summarised into this text, or (`kept`) only the most recent were kept, so many of all."""

    turn: int
    text: str
    kept: int = 0
    of: int = 0


class MemoryEdited(Lasting, frozen=True):
    """The person wrote what the next request to go on tells the model of where the work stands (C10)."""

    text: str


class MemoryBuilt(Lasting, frozen=True):
    """The person asked to go on: this is what the model is told of where the work stands (C10)."""

    turn: int
    text: str


class InstructionsRead(Lasting, frozen=True):
    """Which instruction files are in force, and which were left out, has changed."""

    files: tuple[InstructionFile, ...]


class RequestSent(Lasting, frozen=True):
    """A request went to a model: what it added to the conversation, and how much of it was there before.

    `messages` are those that this request appended to the conversation; `reset` says that this had begun anew.
    `rows`, `blocks` and `contexts` are the table rows, the digests of editor blocks and the hashes of instruction
    files as they now stand in it. `prefix_share` is the share of the last request's bytes that begin this one.
    """

    turn: int
    purpose: Literal["plan", "main", "condense", "subtask"]
    messages: tuple[SentMessage, ...] = ()
    files: dict[str, str] = {}
    rows: dict[str, str] = {}
    blocks: dict[str, str] = {}
    tokens: int = 0
    estimated: bool = False
    parts: dict[str, int] = {}
    prefix_share: float = 0.0
    reset: bool = False
    model: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    contexts: dict[str, str] = {}
    #: Ids of the provider's files that the new messages refer to (P7).
    uploads: tuple[str, ...] = ()
    #: What was told of each sub-task, by its id.
    tasks: dict[str, str] = {}


class RetryCounted(Passing, frozen=True):
    """The provider asked us to wait; `seconds` are left before the next attempt."""

    seconds: int
    attempt: int
    why: str


class ReplyStreamed(Passing, frozen=True):
    """A piece of the answer came."""

    part: Literal["summary", "message", "reasoning"]
    text: str


class ReplyGrew(Growing, frozen=True):
    """The answer so far, as a crash would leave it."""

    turn: int
    summary: str
    message: str
    reasoning: str = ""

    @property
    def key(self) -> str:
        return "reply"


class ReplyRead(Lasting, frozen=True):
    """An answer ended and was read. `sent` is the message as the next request will carry it."""

    turn: int
    summary: str
    message: str
    reasoning: str = ""
    sent: SentMessage | None = None
    open_calls: tuple[str, ...] = ()
    #: The ids that its changes get, in order; each is told by a `ChangeProposed` of its own.
    changes: tuple[str, ...] = ()
    todos: tuple[TodoItem, ...] = ()
    sub_tasks: tuple[SubTaskRequest, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    cut: bool = False
    faults: tuple[str, ...] = ()


class ReplyLeftOff(Lasting, frozen=True):
    """An answer broke off (stopped, crashed): what had come of it stays in the transcript, as far as it came."""

    turn: int
    summary: str = ""
    message: str = ""
    reasoning: str = ""


class UsageCounted(Lasting, frozen=True):
    """A request was paid for."""

    usage: Usage
    purpose: Literal["plan", "main", "condense", "subtask", "draft"] = "main"


class TurnEnded(Lasting, frozen=True):
    """The turn is over. `error` is the sentence why it failed; `stopped` that the person ended it."""

    turn: int
    ok: bool
    error: str = ""
    kind: str = ""
    stopped: bool = False
    seconds: float = 0.0


# ── todos, sub-tasks ─────────────────────────────────────────────────────────────────────────────────────


class TodosChanged(Lasting, frozen=True):
    """The todos are now these, in this order; only logs of the first version say it so."""

    todos: tuple[Todo, ...]


class TodosAdded(Lasting, frozen=True):
    """Todos came to the end of the list: from a reply, or by hand."""

    todos: tuple[Todo, ...]


class TodoChanged(Lasting, frozen=True):
    """The person worded a todo anew, or ticked it, or took the tick away."""

    id: str
    text: str
    done: bool


class TodoRemoved(Lasting, frozen=True):
    """The person removed a todo."""

    id: str


class TodoMoved(Lasting, frozen=True):
    """The person moved a todo to another place, counted from 0."""

    id: str
    place: int


class SubTasksProposed(Lasting, frozen=True):
    """The model split the work: these join what is not done yet, or begin a new graph."""

    tasks: tuple[SubTask, ...]


class SubTaskMoved(Lasting, frozen=True):
    """A sub-task went from one state to another; to `pending` it is as if it had never run."""

    id: str
    state: SubTaskState
    summary: str = ""
    reason: str = ""


class SubTaskChanged(Lasting, frozen=True):
    """The person added a sub-task or worded one anew: goal, files, dependencies, its mark for the batch."""

    task: SubTask


class SubTaskRemoved(Lasting, frozen=True):
    """The person took a sub-task out of the graph; nothing waits for it any more."""

    id: str


class SubTasksWanted(Lasting, frozen=True):
    """These sub-tasks were approved and begin as soon as they can, or (`wanted` false) wait for a key again."""

    ids: tuple[str, ...]
    wanted: bool = True


class SubTaskGivenBack(Lasting, frozen=True):
    """A sub-task is to be done again on top of others that it conflicted with; `note` tells it so."""

    id: str
    on_top: tuple[str, ...]
    note: str


class SubTaskProgressed(Passing, frozen=True):
    """What a running sub-task is doing."""

    id: str
    progress: SubTaskProgress


class SubTaskEnded(Lasting, frozen=True):
    """A run of a sub-task is over, and this is what came of it and what it took."""

    id: str
    state: Literal["completed", "failed", "cancelled"]
    summary: str = ""
    changed: tuple[FileStep, ...] = ()
    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    reason: str = ""


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────


class ChangeProposed(Lasting, frozen=True):
    """The model would change a file; an open change to the same path gives way to this one."""

    change: Change


class ChangeMoved(Lasting, frozen=True):
    """A change came to a new state. `reason` is for the person."""

    id: str
    state: Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
    hunks: tuple[HunkState, ...] = ()
    reason: str = ""
    written: str = ""


class ChangeReworked(Lasting, frozen=True):
    """A change that waits has other texts: edited by hand, settled where it conflicted, or given a comment."""

    change: Change


class CheckpointMade(Lasting, frozen=True):
    """Files were written, and this is how they were before and are now."""

    checkpoint: Checkpoint


class CheckpointCommitted(Lasting, frozen=True):
    """git keeps the work tree as it was after an apply, as a private commit."""

    id: str
    commit: str


class CheckpointUndone(Lasting, frozen=True):
    """A checkpoint was taken back, or (with `undone` false) done again. The hashes are those left on disk."""

    id: str
    undone: bool
    written: dict[str, str] = {}


class ModelOwesNews(Lasting, frozen=True):
    """Something happened that the model is told with the next request, once."""

    fact: str


# ── known files ──────────────────────────────────────────────────────────────────────────────────────────


class FreshnessChanged(Lasting, frozen=True):
    """A known file no longer is (or is again) what the model saw; `by_agent` says that an applied change did it."""

    path: str
    freshness: Freshness
    renamed_to: str = ""
    at: float = 0.0
    by_agent: bool = False


class KnownFileEdited(Lasting, frozen=True):
    """A change that was applied gave a known file (or one that is new) the content `file.written`.

    `as_proposed` says that it is to the letter what the model proposed, so that the model knows it.
    """

    file: KnownFile
    as_proposed: bool = False
    at: float = 0.0


class FileTouched(Lasting, frozen=True):
    """One line for the timeline of a file."""

    touch: Touch


class KnownFilesDropped(Lasting, frozen=True):
    """The registry was full: these files left it, the least recently seen first."""

    paths: tuple[str, ...]


# ── buffers ──────────────────────────────────────────────────────────────────────────────────────────────


class BufferOpened(Lasting, frozen=True):
    """A file was opened in the editor. Its text is read from disk, here and at every resume."""

    path: str


class BufferLoaded(Passing, frozen=True):
    """The text of an open file came from disk; unsaved edits, if any, are gone with it."""

    path: str
    text: str
    disk: str
    note: str = ""
    mtime: int = 0
    encoding: Encoding = "utf-8"
    mark: bytes = b""


class BufferEdited(Growing, frozen=True):
    """The person changed the text of an open file and has not saved it. `disk` is what it started from."""

    path: str
    text: str
    disk: str
    cursor: tuple[int, int] = (0, 0)
    anchor: tuple[int, int] = (0, 0)
    #: False where the person came back, by undo say, to the text that is on disk.
    unsaved: bool = True
    #: True where the text did not come from the editor itself, which then loads it anew.
    from_outside: bool = False

    @property
    def key(self) -> str:
        return f"buffer:{self.path}"


class CursorMoved(Growing, frozen=True):
    """The cursor of an open file stands here; `anchor` differs from it while text is selected."""

    path: str
    cursor: tuple[int, int]
    anchor: tuple[int, int]

    @property
    def key(self) -> str:
        return f"cursor:{self.path}"


class BufferScrolled(Growing, frozen=True):
    """The editor shows an open file from this line and column on; None: wherever its cursor is."""

    path: str
    scroll: tuple[int, int] | None

    @property
    def key(self) -> str:
        return f"scroll:{self.path}"


class BufferSaved(Lasting, frozen=True):
    """An open file was written to disk as it stands in the editor."""

    path: str
    disk: str
    mtime: int = 0


class BufferClashed(Passing, frozen=True):
    """The disk moved away from under unsaved edits, or came back to where they started."""

    path: str
    clash: bool


class BufferActivated(Lasting, frozen=True):
    """Another open file is in front."""

    path: str


class BufferClosed(Lasting, frozen=True):
    """An open file was closed; what was not saved is gone, by the person's own word."""

    path: str


AnyLasting = (
    SessionStarted
    | SessionRenamed
    | SessionForked
    | ModelChosen
    | NoticeGiven
    | MessageQueued
    | QueueChanged
    | TurnStarted
    | PlanMade
    | ActionsAdded
    | AttemptEnded
    | FallbackTaken
    | QuestionAnswered
    | DecisionsKept
    | MatchChosen
    | ActionReopened
    | FileLoaded
    | UploadsEnded
    | FilesLeftOut
    | DirectoryListed
    | ConversationBegun
    | SummaryMade
    | MemoryEdited
    | MemoryBuilt
    | InstructionsRead
    | RequestSent
    | ReplyRead
    | ReplyLeftOff
    | UsageCounted
    | TurnEnded
    | TodosChanged
    | TodosAdded
    | TodoChanged
    | TodoRemoved
    | TodoMoved
    | SubTasksProposed
    | SubTaskMoved
    | SubTaskChanged
    | SubTaskRemoved
    | SubTasksWanted
    | SubTaskGivenBack
    | SubTaskEnded
    | ChangeProposed
    | ChangeMoved
    | ChangeReworked
    | CheckpointMade
    | CheckpointCommitted
    | CheckpointUndone
    | ModelOwesNews
    | FreshnessChanged
    | KnownFileEdited
    | FileTouched
    | KnownFilesDropped
    | BufferOpened
    | BufferSaved
    | BufferActivated
    | BufferClosed
)
AnyGrowing = LayoutChanged | DraftChanged | ReplyGrew | BufferEdited | CursorMoved | BufferScrolled
AnyKept = AnyLasting | AnyGrowing
