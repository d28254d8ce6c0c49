"""Events of the session: identity, workspace, user input, known files, open files."""

from __future__ import annotations

from typing import Literal

from msgspec import field
from msgspec.structs import replace

from tui_agent.context.known_files import Freshness, KnownFile, Touch
from tui_agent.files.text import Encoding
from tui_agent.settings.schema import Effort, Mode
from tui_agent.store.conversation import ServerToolsSlice
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.store.state import (
    ChatMessage,
    LayoutSlice,
    Notice,
    NoticesSlice,
    OtherSession,
    SessionSlice,
    State,
)

NOTICES_KEPT = 50


class SessionStarted(Lasting, frozen=True):
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
    """`not_kept` is why it cannot be stored, or ""."""

    trusted: bool = False
    not_kept: str = ""

    def apply(self, state: State) -> State:
        session = replace(state.session, trusted=self.trusted, not_kept=self.not_kept)
        checks = replace(state.checks, running=(), outdated="the session was reopened")
        return replace(state, session=session, checks=checks if state.checks.results else state.checks)


class KeepingChanged(Passing, frozen=True):
    """Why the log is unwritable, or ""."""

    not_kept: str = ""

    def apply(self, state: State) -> State:
        return replace(state, session=replace(state.session, not_kept=self.not_kept))


class OthersSeen(Passing, frozen=True):
    sessions: tuple[OtherSession, ...] = ()

    def apply(self, state: State) -> State:
        return replace(state, others=self.sessions)


class WaitingChanged(Passing, frozen=True):
    """The slow operation that blocks the user, or ""."""

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
        words = f"This session is a fork of {self.source}. {self.text}".rstrip()
        level = "warning" if self.text else "info"
        return state.with_message(ChatMessage(0, "note", state.turn.number, words, level=level))


class ModelChosen(Lasting, frozen=True):
    name: str
    planner: str = ""
    protocol: Literal["", "tools", "structured"] = ""
    window: int = 0
    window_known: bool = False
    takes_schema: bool = False
    priced: bool = True
    #: Kind of a local server, and its parallel requests (0: unknown).
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
    """ "" if reached or given up."""

    goal: str

    def apply(self, state: State) -> State:
        return replace(state, input=replace(state.input, goal=self.goal))


class ModelStatusChanged(Passing, frozen=True):
    status: Literal["idle", "starting", "ready", "failed"]

    def apply(self, state: State) -> State:
        return replace(state, model=replace(state.model, status=self.status))


class SkillsListed(Lasting, frozen=True):
    skills: tuple[tuple[str, str], ...]

    def apply(self, state: State) -> State:
        return replace(state, skills=self.skills)


class AgentsListed(Lasting, frozen=True):
    agents: tuple[tuple[str, str], ...]

    def apply(self, state: State) -> State:
        return replace(state, agents=self.agents)


class ServerToolsListed(Lasting, frozen=True):
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
    question: str
    answer: str

    def apply(self, state: State) -> State:
        return state.with_message(
            ChatMessage(0, "note", state.turn.number, self.answer, summary=f"Side question: {self.question}")
        )


class LayoutChanged(Growing, frozen=True):
    layout: LayoutSlice

    @property
    def key(self) -> str:
        return "layout"

    def apply(self, state: State) -> State:
        return replace(state, layout=self.layout)


class IndexChanged(Passing, frozen=True):
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
    watching: Literal["starting", "watching", "polling", "failed"]

    def apply(self, state: State) -> State:
        return replace(state, workspace=replace(state.workspace, watching=self.watching))


class GitStatusRead(Passing, frozen=True):
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
    """Of an input other than the chat's."""

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


class FreshnessChanged(Lasting, frozen=True):
    """`by_agent`: by an applied change, `undone`: by an undo."""

    path: str
    freshness: Freshness
    renamed_to: str = ""
    at: float = 0.0
    by_agent: bool = False
    undone: bool = False

    def apply(self, state: State) -> State:
        entry = state.known.files.get(self.path)
        if entry is None:
            return state
        now = replace(entry, freshness=self.freshness, renamed_to=self.renamed_to)
        kind = "edited" if self.by_agent else "undone" if self.undone else "changed outside"
        touch = Touch(self.path, state.turn.number, kind, "", not now.stale, at=self.at)
        return replace(state, known=state.known.with_file(now).with_touch(touch))


class KnownFileEdited(Lasting, frozen=True):
    """An apply, or with `undone` an undo, gave the file this content. `as_proposed`: exactly the proposed
    text, which the model knows.
    """

    file: KnownFile
    as_proposed: bool = False
    at: float = 0.0
    undone: bool = False

    def apply(self, state: State) -> State:
        file = self.file
        seen = file.md5 if file.freshness == "fresh" else file.written if self.as_proposed else ""
        known = state.known.with_file(replace(file, written_known=self.as_proposed))
        if self.undone:
            touch = Touch(file.path, state.turn.number, "undone", seen, at=self.at)
            return replace(state, known=known.with_touch(touch))
        touch = Touch(file.path, file.modified_turn, "edited", seen, at=self.at)
        unbundled = tuple(dict.fromkeys((*state.conversation.unbundled, file.path)))
        conversation = replace(state.conversation, unbundled=unbundled)
        return replace(state, known=known.with_touch(touch), conversation=conversation)


class FileTouched(Lasting, frozen=True):
    touch: Touch

    def apply(self, state: State) -> State:
        return replace(state, known=state.known.with_touch(self.touch))


class KnownFilesDropped(Lasting, frozen=True):
    paths: tuple[str, ...]

    def apply(self, state: State) -> State:
        files = {path: entry for path, entry in state.known.files.items() if path not in self.paths}
        dropped = (*state.known.dropped, *(path for path in self.paths if path not in state.known.dropped))
        return replace(state, known=replace(state.known, files=files, dropped=dropped))


class BufferOpened(Lasting, frozen=True):
    path: str

    def apply(self, state: State) -> State:
        opened = state.buffers.open
        if state.buffers.get(self.path) is None:
            opened = (*opened, Buffer(self.path))
        return replace(state, buffers=BuffersSlice(opened, self.path))


class BufferLoaded(Passing, frozen=True):
    path: str
    text: str
    disk: str
    note: str = ""
    mtime: int = 0
    encoding: Encoding = "utf-8"
    mark: bytes = b""

    def apply(self, state: State) -> State:
        return state.on_buffer(
            self.path,
            lambda buffer: replace(
                buffer,
                text=self.text,
                disk=self.disk,
                note=self.note,
                mtime=self.mtime,
                encoding=self.encoding,
                mark=self.mark,
                unsaved=False,
                clash=False,
                revision=buffer.revision + 1,
            ),
        )


class BufferEdited(Growing, frozen=True):
    """`disk` is the hash of the base file."""

    path: str
    text: str
    disk: str
    cursor: tuple[int, int] = (0, 0)
    anchor: tuple[int, int] = (0, 0)
    #: False if the text equals the file on disk again.
    unsaved: bool = True
    #: True if the editor must reload it.
    from_outside: bool = False

    @property
    def key(self) -> str:
        return f"buffer:{self.path}"

    def apply(self, state: State) -> State:
        return state.on_buffer(
            self.path,
            lambda buffer: replace(
                buffer,
                text=self.text,
                disk=self.disk,
                unsaved=self.unsaved,
                cursor=self.cursor,
                anchor=self.anchor,
                revision=buffer.revision + self.from_outside,
            ),
        )


class CursorMoved(Growing, frozen=True):
    path: str
    cursor: tuple[int, int]
    anchor: tuple[int, int]

    @property
    def key(self) -> str:
        return f"cursor:{self.path}"

    def apply(self, state: State) -> State:
        return state.on_buffer(
            self.path, lambda buffer: replace(buffer, cursor=self.cursor, anchor=self.anchor)
        )


class BufferScrolled(Growing, frozen=True):
    """First visible line and column; None follows the cursor."""

    path: str
    scroll: tuple[int, int] | None

    @property
    def key(self) -> str:
        return f"scroll:{self.path}"

    def apply(self, state: State) -> State:
        return state.on_buffer(self.path, lambda buffer: replace(buffer, scroll=self.scroll))


class BufferSaved(Lasting, frozen=True):
    path: str
    disk: str
    mtime: int = 0
    text: str = ""

    def apply(self, state: State) -> State:
        return state.on_buffer(
            self.path,
            lambda buffer: replace(
                buffer,
                disk=self.disk,
                mtime=self.mtime,
                unsaved=not buffer.holds(self.text),
                clash=False,
            ),
        )


class BufferClashed(Passing, frozen=True):
    path: str
    clash: bool

    def apply(self, state: State) -> State:
        return state.on_buffer(self.path, lambda buffer: replace(buffer, clash=self.clash))


class BufferActivated(Lasting, frozen=True):
    path: str

    def apply(self, state: State) -> State:
        return replace(state, buffers=replace(state.buffers, active=self.path))


class BufferClosed(Lasting, frozen=True):
    path: str

    def apply(self, state: State) -> State:
        paths = [buffer.path for buffer in state.buffers.open]
        opened = tuple(buffer for buffer in state.buffers.open if buffer.path != self.path)
        active = state.buffers.active
        if active == self.path:
            place = min(paths.index(active), len(opened) - 1) if opened else 0
            active = opened[place].path if opened else ""
        return replace(state, buffers=BuffersSlice(opened, active))
