"""Events of a turn: the plan, the chains of patterns as they are tried, and how it ended."""

from __future__ import annotations

from typing import Literal

from tui_agent.answers.plans import DirectoryAction, FileAction
from tui_agent.context.known import KnownFile
from tui_agent.files.disclosure import SecretChoice
from tui_agent.planning.chain import Attempt
from tui_agent.settings.schema import Effort
from tui_agent.store.event import Lasting, Passing
from tui_agent.store.state import Decision, Phase
from tui_agent.store.tool_calls import PermissionDecision

#: Why a file does not go with a request.
OutReason = Literal["room", "limit", "unreadable", "secret", "denied"]


class TurnStarted(Lasting, frozen=True):
    """The person asked for something; `queued` says that it was the first in the queue, and `effort` is for this turn
    alone (None: that of the model)."""

    turn: int
    request: str
    queued: bool = False
    attachments: tuple[str, ...] = ()
    effort: Effort | None = None
    #: Nobody asked for it: it goes on with a batch, on the allowance of the turn before.
    unasked: bool = False


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
    #: Words of its own, where the question is not which file is meant.
    question: str = ""


class SecretDecided(Lasting, frozen=True):
    """The person said what becomes of a file that holds a secret, or looks as if it did, with exactly these bytes.

    `digest` is their SHA-256, hexadecimal; `action` is the one under which it was asked.
    """

    path: str
    digest: str
    choice: SecretChoice
    action: str = ""


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


class FilesLeftOut(Lasting, frozen=True):
    """Files that do not go with a request, and why; `action` is empty where none asked for them.

    `loaded` says that they were loaded already and had to make room; `before` are their entries in the registry
    as they were until then.
    """

    action: str
    paths: tuple[str, ...]
    why: str
    reason: OutReason = "room"
    loaded: bool = False
    before: tuple[KnownFile, ...] = ()


class DirectoryListed(Lasting, frozen=True):
    """A folder was listed for the model; `entries` are (name, type, size in bytes), the first of so many in `total`."""

    path: str
    entries: tuple[tuple[str, str, int], ...] = ()
    error: str = ""
    filter: str = ""
    recursive: bool = False
    total: int = 0


class PermissionAsked(Passing, frozen=True):
    """The turn waits for the person to allow a call of a tool; `preview` is exactly what would happen."""

    call: str
    tool: str
    shown: str
    preview: str
    digest: str


class PermissionDecided(Lasting, frozen=True):
    """It was decided whether a call of a tool is done."""

    decision: PermissionDecision


class PermissionRevoked(Lasting, frozen=True):
    """The person took an approval back: the same call is asked about again."""

    digest: str


class CallStarted(Passing, frozen=True):
    """A call of a tool is being done; `shown` says what it is about."""

    id: str
    name: str
    shown: str = ""


class CallEnded(Lasting, frozen=True):
    """A call of a tool was answered. `arguments` are as much of them as is told, `text` is what the model reads of it
    beside files, and `details` what the person reads who opens it, where that is something else."""

    id: str
    name: str
    arguments: str = ""
    shown: str = ""
    ok: bool = True
    seconds: float = 0.0
    amount: str = ""
    text: str = ""
    details: str = ""


class TurnEnded(Lasting, frozen=True):
    """The turn is over. `error` is the sentence why it failed; `stopped` that the person ended it."""

    turn: int
    ok: bool
    error: str = ""
    kind: str = ""
    stopped: bool = False
    seconds: float = 0.0
    #: The limit that ended it; empty where none did.
    limit: str = ""
