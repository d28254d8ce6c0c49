"""Folding files: those that the model knows, and those that are open in the editor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from tui_agent.context.known import KnownFile, Touch, following
from tui_agent.files.text import md5
from tui_agent.store import events as e
from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.store.fold_turn import on_action
from tui_agent.store.state import State

#: The timeline that is kept in memory; the whole of it is in the log.
TOUCHES_KEPT = 2000


def _know(state: State, entry: KnownFile) -> State:
    files = {**state.known.files, entry.path: entry}
    dropped = state.known.dropped
    if entry.path in dropped:
        dropped = tuple(path for path in dropped if path != entry.path)
    return replace(state, known=replace(state.known, files=files, dropped=dropped))


def _touch(state: State, touch: Touch) -> State:
    before = next((past for past in reversed(state.known.touches) if past.path == touch.path), None)
    touches = (*state.known.touches, following(touch, before))[-TOUCHES_KEPT:]
    return replace(state, known=replace(state.known, touches=touches))


def _loaded(state: State, event: e.FileLoaded) -> State:
    file = event.file
    if file.loaded_by == "mention":
        state = _touch(state, Touch(file.path, file.seen_turn, "mentioned", "", at=event.at))
    state = _touch(_know(state, file), Touch(file.path, file.seen_turn, "read", file.md5, at=event.at))
    return on_action(
        state,
        event.action,
        lambda slot: replace(slot, state="loaded", loaded=(*slot.loaded, event.file.path)),
    )


def _edited(state: State, event: e.KnownFileEdited) -> State:
    file = event.file
    seen = file.md5 if file.freshness == "fresh" else file.written if event.as_proposed else ""
    state = _know(state, replace(file, written_known=event.as_proposed))
    if event.undone:
        return _touch(state, Touch(file.path, state.turn.number, "undone", seen, at=event.at))
    unbundled = tuple(dict.fromkeys((*state.conversation.unbundled, file.path)))
    state = replace(state, conversation=replace(state.conversation, unbundled=unbundled))
    return _touch(state, Touch(file.path, file.modified_turn, "edited", seen, at=event.at))


def _freshness(state: State, event: e.FreshnessChanged) -> State:
    entry = state.known.files.get(event.path)
    if entry is None:
        return state
    now = replace(entry, freshness=event.freshness, renamed_to=event.renamed_to)
    kind = "edited" if event.by_agent else "undone" if event.undone else "changed outside"
    touch = Touch(event.path, state.turn.number, kind, "", not now.stale, at=event.at)
    return _touch(_know(state, now), touch)


def _dropped(state: State, event: e.KnownFilesDropped) -> State:
    files = {path: entry for path, entry in state.known.files.items() if path not in event.paths}
    dropped = (*state.known.dropped, *(path for path in event.paths if path not in state.known.dropped))
    return replace(state, known=replace(state.known, files=files, dropped=dropped))


def _touched(state: State, event: e.FileTouched) -> State:
    return _touch(state, event.touch)


def _on_buffer(state: State, path: str, change: Callable[[Buffer], Buffer]) -> State:
    opened = tuple(change(buffer) if buffer.path == path else buffer for buffer in state.buffers.open)
    return replace(state, buffers=replace(state.buffers, open=opened))


def _opened(state: State, event: e.BufferOpened) -> State:
    opened = state.buffers.open
    if state.buffers.get(event.path) is None:
        opened = (*opened, Buffer(event.path))
    return replace(state, buffers=BuffersSlice(opened, event.path))


def _text_loaded(state: State, event: e.BufferLoaded) -> State:
    return _on_buffer(
        state,
        event.path,
        lambda buffer: replace(
            buffer,
            text=event.text,
            disk=event.disk,
            note=event.note,
            mtime=event.mtime,
            encoding=event.encoding,
            mark=event.mark,
            unsaved=False,
            clash=False,
            revision=buffer.revision + 1,
        ),
    )


def _text_edited(state: State, event: e.BufferEdited) -> State:
    return _on_buffer(
        state,
        event.path,
        lambda buffer: replace(
            buffer,
            text=event.text,
            disk=event.disk,
            unsaved=event.unsaved,
            cursor=event.cursor,
            anchor=event.anchor,
            revision=buffer.revision + event.from_outside,
        ),
    )


def _cursor(state: State, event: e.CursorMoved) -> State:
    return _on_buffer(
        state, event.path, lambda buffer: replace(buffer, cursor=event.cursor, anchor=event.anchor)
    )


def _scrolled(state: State, event: e.BufferScrolled) -> State:
    return _on_buffer(state, event.path, lambda buffer: replace(buffer, scroll=event.scroll))


def holds(buffer: Buffer, saved: e.BufferSaved) -> bool:
    """Whether the buffer still holds the text that was written, and nothing was typed since.

    While a log is read the buffers hold no text: what was kept of it comes last.
    """
    return not buffer.revision or not saved.text or hash_of_text(buffer.text) == saved.text


@lru_cache(1)  # a save asks three times, and 10 MB take 20 ms
def hash_of_text(text: str) -> str:
    """The hash of a text as an editor holds it, whatever the encoding of its file."""
    return md5(text.encode("utf-8", "surrogatepass"))


def _saved(state: State, event: e.BufferSaved) -> State:
    return _on_buffer(
        state,
        event.path,
        lambda buffer: replace(
            buffer, disk=event.disk, mtime=event.mtime, unsaved=not holds(buffer, event), clash=False
        ),
    )


def _clashed(state: State, event: e.BufferClashed) -> State:
    return _on_buffer(state, event.path, lambda buffer: replace(buffer, clash=event.clash))


def _activated(state: State, event: e.BufferActivated) -> State:
    return replace(state, buffers=replace(state.buffers, active=event.path))


def _closed(state: State, event: e.BufferClosed) -> State:
    paths = [buffer.path for buffer in state.buffers.open]
    opened = tuple(buffer for buffer in state.buffers.open if buffer.path != event.path)
    active = state.buffers.active
    if active == event.path:
        place = min(paths.index(active), len(opened) - 1) if opened else 0
        active = opened[place].path if opened else ""
    return replace(state, buffers=BuffersSlice(opened, active))


FOLDS = {
    e.FileLoaded: _loaded,
    e.KnownFileEdited: _edited,
    e.FreshnessChanged: _freshness,
    e.FileTouched: _touched,
    e.KnownFilesDropped: _dropped,
    e.BufferOpened: _opened,
    e.BufferLoaded: _text_loaded,
    e.BufferEdited: _text_edited,
    e.CursorMoved: _cursor,
    e.BufferScrolled: _scrolled,
    e.BufferSaved: _saved,
    e.BufferClashed: _clashed,
    e.BufferActivated: _activated,
    e.BufferClosed: _closed,
}
