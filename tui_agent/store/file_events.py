"""Events of known files and of files open in the editor."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.context.known_files import Freshness, KnownFile, Touch
from tui_agent.files.text import Encoding
from tui_agent.store.event import Growing, Lasting, Passing
from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.store.state import State


class FreshnessChanged(Lasting, frozen=True):
    """Or is again as the model saw it. `by_agent`: by an applied change, `undone`: by an undo."""

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
    """An apply gave the file the content `file.written`; an `undone` one that content, or `file.md5` if
    fresh. `as_proposed`: exactly the proposed text, which the model knows."""

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
    """Files left the full registry, least recently seen first."""

    paths: tuple[str, ...]

    def apply(self, state: State) -> State:
        files = {path: entry for path, entry in state.known.files.items() if path not in self.paths}
        dropped = (*state.known.dropped, *(path for path in self.paths if path not in state.known.dropped))
        return replace(state, known=replace(state.known, files=files, dropped=dropped))


class BufferOpened(Lasting, frozen=True):
    """Its text is read from disk, also after a resume."""

    path: str

    def apply(self, state: State) -> State:
        opened = state.buffers.open
        if state.buffers.get(self.path) is None:
            opened = (*opened, Buffer(self.path))
        return replace(state, buffers=BuffersSlice(opened, self.path))


class BufferLoaded(Passing, frozen=True):
    """From disk, replacing unsaved edits."""

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
    #: False if the text equals the file on disk again, for example after an undo.
    unsaved: bool = True
    #: True if the text did not originate in the editor, which must reload it.
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
    """`anchor` differs from the cursor during a selection."""

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
    """`text` is the hash of the saved text; "" in logs of older versions."""

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
    """The disk diverged from the base of unsaved edits, or matches it again."""

    path: str
    clash: bool

    def apply(self, state: State) -> State:
        return state.on_buffer(self.path, lambda buffer: replace(buffer, clash=self.clash))


class BufferActivated(Lasting, frozen=True):
    path: str

    def apply(self, state: State) -> State:
        return replace(state, buffers=replace(state.buffers, active=self.path))


class BufferClosed(Lasting, frozen=True):
    """The user discarded unsaved edits."""

    path: str

    def apply(self, state: State) -> State:
        paths = [buffer.path for buffer in state.buffers.open]
        opened = tuple(buffer for buffer in state.buffers.open if buffer.path != self.path)
        active = state.buffers.active
        if active == self.path:
            place = min(paths.index(active), len(opened) - 1) if opened else 0
            active = opened[place].path if opened else ""
        return replace(state, buffers=BuffersSlice(opened, active))
