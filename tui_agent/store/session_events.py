"""Events of the session itself: what it is, the folder it is in, and what the person types."""

from __future__ import annotations

from typing import Literal

from msgspec import field
from msgspec.structs import replace

from tui_agent.settings.schema import Effort
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.state import ChatMessage, LayoutSlice, Notice, NoticesSlice, SessionSlice, State

NOTICES_KEPT = 50


class SessionStarted(Lasting, frozen=True):
    """A session began in a workspace, maybe with a recording to answer from; so many of the events after this one
    were copied from another session."""

    id: str
    workspace: str
    replay: str = ""
    rehearsal: bool = False
    version: str = ""
    copied: int = 0

    def apply(self, state: State) -> State:
        session = SessionSlice(
            id=self.id, workspace=self.workspace, replay=self.replay, rehearsal=self.rehearsal
        )
        return replace(state, session=session)


class SessionOpened(Passing, frozen=True):
    """A session was opened by this process; `not_kept` says why nothing can be written, if so."""

    trusted: bool = False
    read_only: bool = False
    not_kept: str = ""

    def apply(self, state: State) -> State:
        session = replace(
            state.session, trusted=self.trusted, read_only=self.read_only, not_kept=self.not_kept
        )
        # nobody saw what became of the folder meanwhile
        checks = replace(state.checks, running=(), outdated="the session was opened again")
        return replace(state, session=session, checks=checks if state.checks.results else state.checks)


class KeepingChanged(Passing, frozen=True):
    """The log refuses to be written, for this reason; or (with none) it is written again, with all that waited."""

    not_kept: str = ""

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, not_kept=self.not_kept))


class WaitingChanged(Passing, frozen=True):
    """Something takes long that the person waits for, the disk say; empty where nothing does any more."""

    waits_for: str = ""

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, waits_for=self.waits_for))


class SessionRenamed(Lasting, frozen=True):
    """The person (or the first request) gave the session a name."""

    name: str

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, name=self.name))


class SessionForked(Lasting, frozen=True):
    """The session goes on where the session `source` stood after a turn; `text` says how files differ, if they do."""

    source: str
    text: str

    def apply(self, state: State) -> State:
        words = f"This session is a copy of {self.source}. {self.text}".rstrip()
        level = "warning" if self.text else "info"
        return state.said(ChatMessage(0, "note", state.turn.number, words, level=level))


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

    def apply(self, state: State) -> State:
        model = replace(
            state.model,
            name=self.name,
            planner=self.planner,
            protocol=self.protocol,
            window=self.window,
            window_known=self.window_known,
            takes_schema=self.takes_schema,
            priced=self.priced,
            server=self.server,
            slots=self.slots,
        )
        return replace(state, model=model)


class EffortChosen(Lasting, frozen=True):
    """The person chose how much a model thinks, from the next request on."""

    model: str
    effort: Effort

    def apply(self, state: State) -> State:
        efforts = {**state.model.efforts, self.model: self.effort}
        return replace(state, model=replace(state.model, efforts=efforts))


class ModelStatusChanged(Passing, frozen=True):
    """The process that reaches the model is starting, ready, or has failed."""

    status: Literal["idle", "starting", "ready", "failed"]

    def apply(self, state: State) -> State:
        return replace(state, model=replace(state.model, status=self.status))


class NoticeGiven(Lasting, frozen=True):
    """The program has something to say that does not belong to the conversation. `in_chat`: it stays there as a note,
    since it is told nowhere else."""

    level: Literal["info", "warning", "error"]
    text: str
    in_chat: bool = False

    def apply(self, state: State) -> State:
        total = state.notices.total + 1
        items = (*state.notices.items, Notice(total, self.level, self.text))[-NOTICES_KEPT:]
        state = replace(state, notices=NoticesSlice(items, total))
        if not self.in_chat:
            return state
        return state.said(ChatMessage(0, "note", state.turn.number, self.text, level=self.level))


class LayoutChanged(Growing, frozen=True):
    """The person moved between panes, zoomed, hid or resized one."""

    layout: LayoutSlice

    @property
    def key(self) -> str:
        return "layout"

    def apply(self, state: State) -> State:
        return replace(state, layout=self.layout)


class IndexChanged(Passing, frozen=True):
    """The list of files was made or has changed; `complete` once the first listing is through."""

    files: int
    complete: bool = True

    def apply(self, state: State) -> State:
        workspace = replace(
            state.workspace,
            files=self.files,
            indexing=not self.complete,
            revision=state.workspace.revision + 1,
        )
        return replace(state, workspace=workspace)


class WatchChanged(Passing, frozen=True):
    """Changes on disk are seen by events, by polling, or not at all."""

    watching: Literal["starting", "watching", "polling", "failed"]

    def apply(self, state: State) -> State:
        return replace(state, workspace=replace(state.workspace, watching=self.watching))


class GitStatusRead(Passing, frozen=True):
    """git told the branch, its distance from upstream, and a two-letter mark for each changed path."""

    is_repository: bool
    branch: str = ""
    ahead: int = 0
    behind: int = 0
    marks: dict[str, str] = field(default_factory=dict)

    def apply(self, state: State) -> State:
        workspace = replace(
            state.workspace,
            is_repository=self.is_repository,
            branch=self.branch,
            ahead=self.ahead,
            behind=self.behind,
            marks=self.marks,
        )
        return state if workspace == state.workspace else replace(state, workspace=workspace)


class DraftChanged(Growing, frozen=True):
    """The text in the chat's input is now this."""

    text: str

    @property
    def key(self) -> str:
        return "draft"

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, draft=self.text))


class TypingChanged(Growing, frozen=True):
    """The text at a place other than the chat's input and the editor is now this: a comment on a hunk, say. Empty
    where it is given up, or was put to its use."""

    place: str
    text: str

    @property
    def key(self) -> str:
        return f"typing:{self.place}"

    def apply(self, state: State) -> State:
        typed = {place: text for place, text in state.input.typed.items() if place != self.place}
        if self.text:
            typed[self.place] = self.text
        return replace(state, input=replace(state.input, typed=typed))


class PasteKept(Lasting, frozen=True):
    """A long text was pasted into the chat's input: it is a blob, and `line` is written in its place."""

    line: str
    blob: str

    def apply(self, state: State) -> State:
        pastes = {**state.input.pastes, self.line: self.blob}
        return replace(state, input=replace(state.input, pastes=pastes))


class MessageQueued(Lasting, frozen=True):
    """A message was sent while a turn was running: it waits for that turn to end."""

    text: str

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, queue=(*state.input.queue, self.text)))


class QueueChanged(Lasting, frozen=True):
    """The person edited, reordered or emptied the messages that wait."""

    queue: tuple[str, ...]

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, queue=self.queue))
