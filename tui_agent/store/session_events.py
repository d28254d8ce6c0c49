"""Events of the session itself: what it is, the folder it is in, and what the person types."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from tui_agent.settings.schema import Effort
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.state import LayoutSlice


class SessionStarted(Lasting, frozen=True):
    """A session began in a workspace, maybe with a recording to answer from; so many of the events after this one
    were copied from another session."""

    id: str
    workspace: str
    replay: str = ""
    rehearsal: bool = False
    version: str = ""
    copied: int = 0


class SessionOpened(Passing, frozen=True):
    """A session was opened by this process; `not_kept` says why nothing can be written, if so."""

    trusted: bool = False
    read_only: bool = False
    not_kept: str = ""


class KeepingChanged(Passing, frozen=True):
    """The log refuses to be written, for this reason; or (with none) it is written again, with all that waited."""

    not_kept: str = ""


class WaitingChanged(Passing, frozen=True):
    """Something takes long that the person waits for, the disk say; empty where nothing does any more."""

    waits_for: str = ""


class SessionRenamed(Lasting, frozen=True):
    """The person (or the first request) gave the session a name."""

    name: str


class SessionForked(Lasting, frozen=True):
    """The session goes on where the session `source` stood after a turn; `text` says how files differ, if they do."""

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
    #: The kind of a local server, and how many requests it works on at once (0 where nobody knows).
    server: str = ""
    slots: int = 0


class EffortChosen(Lasting, frozen=True):
    """The person chose how much a model thinks, from the next request on."""

    model: str
    effort: Effort


class ModelStatusChanged(Passing, frozen=True):
    """The process that reaches the model is starting, ready, or has failed."""

    status: Literal["idle", "starting", "ready", "failed"]


class NoticeGiven(Lasting, frozen=True):
    """The program has something to say that does not belong to the conversation. `in_chat`: it stays there as a note,
    since it is told nowhere else."""

    level: Literal["info", "warning", "error"]
    text: str
    in_chat: bool = False


class LayoutChanged(Growing, frozen=True):
    """The person moved between panes, zoomed, hid or resized one."""

    layout: LayoutSlice

    @property
    def key(self) -> str:
        return "layout"


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
    marks: dict[str, str] = field(default_factory=dict)


class DraftChanged(Growing, frozen=True):
    """The text in the chat's input is now this."""

    text: str

    @property
    def key(self) -> str:
        return "draft"


class TypingChanged(Growing, frozen=True):
    """The text at a place other than the chat's input and the editor is now this: a comment on a hunk, say. Empty
    where it is given up, or was put to its use."""

    place: str
    text: str

    @property
    def key(self) -> str:
        return f"typing:{self.place}"


class PasteKept(Lasting, frozen=True):
    """A long text was pasted into the chat's input: it is a blob, and `line` is written in its place."""

    line: str
    blob: str


class MessageQueued(Lasting, frozen=True):
    """A message was sent while a turn was running: it waits for that turn to end."""

    text: str


class QueueChanged(Lasting, frozen=True):
    """The person edited, reordered or emptied the messages that wait."""

    queue: tuple[str, ...]
