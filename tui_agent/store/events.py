"""Everything that can happen, in the past tense: the only way in which the state changes.

The vocabulary in one place, as everybody uses it; each group of events has a module of its own.
"""

from __future__ import annotations

from tui_agent.store.command_events import (
    CheckEnded,
    ChecksOffered,
    ChecksOutdated,
    ChecksRefused,
    ChecksStarted,
    CommandEnded,
    CommandPrinted,
    CommandStarted,
)
from tui_agent.store.conversation_events import (
    ConversationBegun,
    InstructionsRead,
    MemoryBuilt,
    MemoryEdited,
    ModelOwesNews,
    PromptRead,
    ReplyGrew,
    ReplyLeftOff,
    ReplyRead,
    ReplyStreamed,
    RequestSent,
    RequestWithdrawn,
    RetryCounted,
    SummaryMade,
    UploadsEnded,
    UsageCounted,
)
from tui_agent.store.event import Event as Event
from tui_agent.store.event import Growing as Growing
from tui_agent.store.event import Lasting as Lasting
from tui_agent.store.event import Passing as Passing
from tui_agent.store.file_events import (
    BufferActivated,
    BufferClashed,
    BufferClosed,
    BufferEdited,
    BufferLoaded,
    BufferOpened,
    BufferSaved,
    BufferScrolled,
    CursorMoved,
    FileTouched,
    FreshnessChanged,
    KnownFileEdited,
    KnownFilesDropped,
)
from tui_agent.store.review_events import (
    ChangeMoved,
    ChangeProposed,
    ChangeReworked,
    CheckpointCommitted,
    CheckpointMade,
    CheckpointUndone,
)
from tui_agent.store.session_events import (
    DraftChanged,
    EffortChosen,
    GitStatusRead,
    IndexChanged,
    KeepingChanged,
    LayoutChanged,
    MessageQueued,
    ModelChosen,
    ModelStatusChanged,
    NoticeGiven,
    PasteKept,
    QueueChanged,
    SessionForked,
    SessionOpened,
    SessionRenamed,
    SessionStarted,
    TypingChanged,
    WaitingChanged,
    WatchChanged,
)
from tui_agent.store.task_events import (
    SubTaskChanged,
    SubTaskEnded,
    SubTaskGivenBack,
    SubTaskMoved,
    SubTaskProgressed,
    SubTaskRemoved,
    SubTasksProposed,
    SubTasksWanted,
    TodoChanged,
    TodoMoved,
    TodoRemoved,
    TodosAdded,
    TodosChanged,
)
from tui_agent.store.turn_events import (
    ActionReopened,
    ActionsAdded,
    AttemptEnded,
    AttemptStarted,
    CallEnded,
    CallStarted,
    DecisionsKept,
    DirectoryListed,
    FallbackTaken,
    FileLoaded,
    FilesLeftOut,
    MatchChosen,
    PermissionAsked,
    PermissionDecided,
    PermissionRevoked,
    PhaseChanged,
    PlanMade,
    QuestionAnswered,
    QuestionAsked,
    SecretDecided,
    TurnEnded,
    TurnStarted,
)

AnyLasting = (
    SessionStarted
    | SessionRenamed
    | SessionForked
    | ModelChosen
    | EffortChosen
    | NoticeGiven
    | PasteKept
    | MessageQueued
    | QueueChanged
    | TurnStarted
    | PlanMade
    | ActionsAdded
    | AttemptEnded
    | FallbackTaken
    | QuestionAnswered
    | SecretDecided
    | DecisionsKept
    | MatchChosen
    | ActionReopened
    | FileLoaded
    | UploadsEnded
    | FilesLeftOut
    | DirectoryListed
    | CallEnded
    | PermissionDecided
    | PermissionRevoked
    | ConversationBegun
    | SummaryMade
    | MemoryEdited
    | MemoryBuilt
    | InstructionsRead
    | RequestSent
    | RequestWithdrawn
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
    | CommandStarted
    | CommandEnded
    | ChecksStarted
    | CheckEnded
    | ChecksRefused
)
AnyGrowing = (
    LayoutChanged | DraftChanged | TypingChanged | ReplyGrew | BufferEdited | CursorMoved | BufferScrolled
)
AnyKept = AnyLasting | AnyGrowing
#: Never kept.
AnyPassing = (
    SessionOpened
    | KeepingChanged
    | WaitingChanged
    | ModelStatusChanged
    | IndexChanged
    | WatchChanged
    | GitStatusRead
    | PhaseChanged
    | AttemptStarted
    | CallStarted
    | PermissionAsked
    | QuestionAsked
    | PromptRead
    | RetryCounted
    | ReplyStreamed
    | SubTaskProgressed
    | BufferLoaded
    | BufferClashed
    | CommandPrinted
    | ChecksOutdated
    | ChecksOffered
)
AnyEvent = AnyKept | AnyPassing
