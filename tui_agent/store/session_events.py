"""Events of the session: identity, workspace and user input."""

from __future__ import annotations

from typing import Literal

from msgspec import field
from msgspec.structs import replace

from tui_agent.settings.schema import Effort, Mode
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.state import (
    ChatMessage,
    LayoutSlice,
    Notice,
    NoticesSlice,
    OtherSession,
    SessionSlice,
    State,
)
from tui_agent.store.tool_calls import ServerToolsSlice

NOTICES_KEPT = 50


class SessionStarted(Lasting, frozen=True):
    """Optionally with a recording; `copied` events follow from another session."""

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
    """In this process. `not_kept` is the reason it cannot be stored, or ""."""

    trusted: bool = False
    not_kept: str = ""

    def apply(self, state: State) -> State:
        session = replace(state.session, trusted=self.trusted, not_kept=self.not_kept)
        # Changes of the folder were not observed.
        checks = replace(state.checks, running=(), outdated="the session was reopened")
        return replace(state, session=session, checks=checks if state.checks.results else state.checks)


class KeepingChanged(Passing, frozen=True):
    """The log became unwritable for this reason; "": writable again, with all pending events."""

    not_kept: str = ""

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, not_kept=self.not_kept))


class OthersSeen(Passing, frozen=True):
    """The running sessions of other processes."""

    sessions: tuple[OtherSession, ...] = ()

    def apply(self, state: State) -> State:
        return replace(state, others=self.sessions)


class WaitingChanged(Passing, frozen=True):
    """A slow operation that blocks the user; "" at its end."""

    waits_for: str = ""

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, waits_for=self.waits_for))


class SessionRenamed(Lasting, frozen=True):
    name: str

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, name=self.name))


class SessionForked(Lasting, frozen=True):
    """It continues `source` after a turn; `text` describes file differences."""

    source: str
    text: str

    def apply(self, state: State) -> State:
        words = f"This session is a copy of {self.source}. {self.text}".rstrip()
        level = "warning" if self.text else "info"
        return state.with_message(ChatMessage(0, "note", state.turn.number, words, level=level))


class ModelChosen(Lasting, frozen=True):
    """`window` is in tokens."""

    name: str
    planner: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    window: int = 0
    window_known: bool = False
    takes_schema: bool = False
    priced: bool = True
    #: Kind of a local server, and its number of parallel requests (0: unknown).
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
    """For later requests."""

    model: str
    effort: Effort

    def apply(self, state: State) -> State:
        efforts = {**state.model.efforts, self.model: self.effort}
        return replace(state, model=replace(state.model, efforts=efforts))


class ModeChosen(Lasting, frozen=True):
    mode: Mode

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, mode=self.mode))


class GoalSet(Lasting, frozen=True):
    """ "" if it was reached or given up."""

    goal: str

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, goal=self.goal))


class ModelStatusChanged(Passing, frozen=True):
    status: Literal["idle", "starting", "ready", "failed"]

    def apply(self, state: State) -> State:
        return replace(state, model=replace(state.model, status=self.status))


class SkillsListed(Lasting, frozen=True):
    """Fixed for all requests of the session."""

    skills: tuple[tuple[str, str], ...]

    def apply(self, state: State) -> State:
        return replace(state, skills=self.skills)


class AgentsListed(Lasting, frozen=True):
    """Fixed for all requests of the session."""

    agents: tuple[tuple[str, str], ...]

    def apply(self, state: State) -> State:
        return replace(state, agents=self.agents)


class ServerToolsListed(Lasting, frozen=True):
    """Fixed for all requests of the session."""

    listed: ServerToolsSlice

    def apply(self, state: State) -> State:
        return replace(state, server_tools=self.listed)


class NoticeGiven(Lasting, frozen=True):
    """Outside the conversation. `in_chat` keeps it in the chat as a note."""

    level: Literal["info", "warning", "error"]
    text: str
    in_chat: bool = False

    def apply(self, state: State) -> State:
        total = state.notices.total + 1
        items = (*state.notices.items, Notice(total, self.level, self.text))[-NOTICES_KEPT:]
        state = replace(state, notices=NoticesSlice(items, total))
        if not self.in_chat:
            return state
        return state.with_message(ChatMessage(0, "note", state.turn.number, self.text, level=self.level))


class AsideAnswered(Lasting, frozen=True):
    """It is not part of the conversation."""

    question: str
    answer: str

    def apply(self, state: State) -> State:
        return state.with_message(
            ChatMessage(
                0, "note", state.turn.number, self.answer, summary=f"Beside the conversation: {self.question}"
            )
        )


class LayoutChanged(Growing, frozen=True):
    layout: LayoutSlice

    @property
    def key(self) -> str:
        return "layout"

    def apply(self, state: State) -> State:
        return replace(state, layout=self.layout)


class IndexChanged(Passing, frozen=True):
    """`complete` after the first full listing."""

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
    """By events, by polling, or not at all."""

    watching: Literal["starting", "watching", "polling", "failed"]

    def apply(self, state: State) -> State:
        return replace(state, workspace=replace(state.workspace, watching=self.watching))


class GitStatusRead(Passing, frozen=True):
    """Branch, distance from upstream, and a two-letter mark per changed path."""

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
    text: str

    @property
    def key(self) -> str:
        return "draft"

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, draft=self.text))


class TypingChanged(Growing, frozen=True):
    """Of an input other than the chat's. "" after it was cancelled or used."""

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
    """Stored as a blob, with `line` as its placeholder."""

    line: str
    blob: str

    def apply(self, state: State) -> State:
        pastes = {**state.input.pastes, self.line: self.blob}
        return replace(state, input=replace(state.input, pastes=pastes))


class MessageQueued(Lasting, frozen=True):
    text: str

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, queue=(*state.input.queue, self.text)))


class QueueChanged(Lasting, frozen=True):
    queue: tuple[str, ...]

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, queue=self.queue))
