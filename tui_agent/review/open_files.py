"""Open files: texts and unsaved edits. Saved only on request, never over a newer version on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tui_agent.edits.lines import matches, split
from tui_agent.edits.merge import ConflictView, Region, Side, merged_with_choices, regions
from tui_agent.errors import FileError, Outdated, SessionError, TooLarge, TuiAgentError, Undecodable
from tui_agent.files.batch import write_file as replace_file
from tui_agent.files.gate import read_for_person
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import has_other_names
from tui_agent.files.text import TextFile, decode, encode, md5
from tui_agent.log.core import Core
from tui_agent.store import events as e
from tui_agent.store.files import Buffer, hash_of_text
from tui_agent.store.state import State

#: A save's note, in the session folder.
SAVE = "save.json"

#: Larger files would block the keyboard.
MAX_BYTES = 8 * 1024 * 1024
NEW_FILE = ""


class _Version(NamedTuple):
    text: str
    stored: TextFile | None
    disk: str


class OpenFiles:
    def __init__(self, core: Core) -> None:
        self._journal = core.journal
        self._workspace = core.workspace
        self._note_of_save = core.storage.folder / SAVE
        self._one_save = asyncio.Lock()
        #: Held while files are written or hashed until the result is recorded, so that readers never see
        #: partial updates.
        self.files_at_rest = asyncio.Lock()
        self._stored: dict[str, TextFile] = {}
        #: Versions before and after the last merge with the disk, by path.
        self._merges: dict[str, tuple[_Version, _Version]] = {}

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def open(self, path: str, line: int = 0, last_line: int = 0) -> None:
        """`line` counts from 1; `last_line` ends a selection."""
        place = self._workspace.gate.place(path, "read")
        known = self.state.buffers.get(place.path)
        if known is None:
            await self._journal.record(e.BufferOpened(place.path))
            await self.load(place.path)
        elif self.state.buffers.active != place.path:
            await self._journal.record(e.BufferActivated(place.path))
        if line:
            start = end = (line - 1, 0)
            if last_line > line:
                buffer = self.state.buffers.get(place.path)
                lines = buffer.text.splitlines()[:last_line] if buffer else []
                end = (len(lines) - 1, len(lines[-1])) if lines else (0, 0)
            self._journal.grow(e.CursorMoved(place.path, end, start))
            self.scroll(place.path, None)

    async def load(self, path: str) -> None:
        """Discards unsaved text; a non-text file shows a note."""
        if await self._take_from_disk(path):
            self._journal.forget([f"buffer:{path}"])

    async def _take_from_disk(self, path: str, over_unsaved: bool = True) -> bool:
        """Without `over_unsaved`, text typed during the read is kept and clashes with the disk."""
        try:
            stored, disk, mtime = await asyncio.to_thread(self._read, path)
        except Undecodable:
            self._note(path, "it is not UTF-8 text, and not shown")
        except TooLarge:
            self._note(path, f"it is larger than {MAX_BYTES // 2**20} MiB, and not shown")
        except FileError as error:
            self._note(path, str(error))
        else:
            buffer = self.state.buffers.get(path)
            if buffer is not None and buffer.unsaved and not over_unsaved:
                self._journal.publish(e.BufferClashed(path, True))
                return False
            self._stored[path] = stored
            how = {"encoding": stored.encoding, "mark": stored.mark}
            self._journal.publish(e.BufferLoaded(path, stored.text, disk, "", mtime, **how))
            return True
        return False

    async def restore(self) -> None:
        active = self.state.buffers.active
        for buffer in self.state.buffers.open:
            await self._take_from_disk(buffer.path)
            stored = self._stored.get(buffer.path)
            if buffer.unsaved and stored is not None and stored.text == buffer.text:
                self._journal.forget([f"buffer:{buffer.path}"])
            elif buffer.unsaved:
                if stored is None:  # A deleted file can be saved again.
                    self._journal.publish(e.BufferLoaded(buffer.path, "", buffer.disk))
                now = self.state.buffers.get(buffer.path)
                moved = stored is None or (now is not None and now.disk != buffer.disk)
                where = (buffer.cursor, buffer.anchor, True)
                edited = e.BufferEdited(buffer.path, buffer.text, buffer.disk, *where, from_outside=True)
                self._journal.publish(edited)
                if moved:
                    self._journal.publish(e.BufferClashed(buffer.path, True))
            self._journal.publish(e.CursorMoved(buffer.path, buffer.cursor, buffer.anchor))
        if active and self.state.buffers.active != active:
            await self._journal.record(e.BufferActivated(active))

    def edit(self, path: str, text: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        buffer = self._buffer(path)
        for version in self._merges.get(path, ()):
            if version.text == text and version.disk != buffer.disk:
                return self._go_to(path, version, cursor, anchor)
        stored = self._stored.get(path)
        unsaved = stored is None or stored.text != text
        self._journal.grow(e.BufferEdited(path, text, buffer.disk, cursor, anchor, unsaved))
        if not unsaved:
            self._journal.forget([f"buffer:{path}"])

    def move_cursor(self, path: str, cursor: tuple[int, int], anchor: tuple[int, int]) -> None:
        buffer = self.state.buffers.get(path)
        if buffer is not None and (buffer.cursor, buffer.anchor) != (cursor, anchor):
            self._journal.grow(e.CursorMoved(path, cursor, anchor))

    def scroll(self, path: str, scroll: tuple[int, int] | None) -> None:
        buffer = self.state.buffers.get(path)
        if buffer is not None and buffer.scroll != scroll:
            self._journal.grow(e.BufferScrolled(path, scroll))

    def hash_of(self, buffer: Buffer) -> str:
        return md5(encode(self._stored.get(buffer.path) or TextFile(buffer.text), buffer.text))

    def with_text(self, path: str, text: str) -> e.BufferEdited:
        buffer = self._buffer(path)
        return e.BufferEdited(path, text, buffer.disk, buffer.cursor, buffer.anchor, True, from_outside=True)

    async def save(self, path: str, overwrite: bool = False) -> None:
        """Raises `Outdated` if the disk has changed, unless `overwrite`."""
        buffer = self._buffer(path)
        if buffer.note:
            raise SessionError(f"{path} is not open as text", "it cannot be saved from here")
        stored = self._stored.get(path) or TextFile(buffer.text)
        data = encode(stored, buffer.text)
        expected = None if overwrite else buffer.disk
        linked = await asyncio.to_thread(has_other_names, self._workspace.root / path)
        try:
            async with self._one_save:
                with self._journal.waits.on(f"waiting for the disk to save {display_path(path)}"):
                    written = await asyncio.to_thread(
                        replace_file, self._workspace.gate, path, data, expected, note=self._note_of_save
                    )
        except Outdated as error:
            self._journal.publish(e.BufferClashed(path, True))
            raise Outdated(error.what, "merge it, reload it, or save over it") from error
        self._stored[path] = decode(data)
        self._merges.pop(path, None)
        mtime = await asyncio.to_thread(self._mtime, path)
        text_hash = await asyncio.to_thread(hash_of_text, buffer.text)
        await self._journal.record(e.BufferSaved(path, written, mtime, text_hash))
        if linked:
            words = (
                f"{path} was a hard link: its other names keep the old text. Copy it to them if they need it"
            )
            await self._journal.record(e.NoticeGiven("warning", words))
        now = self.state.buffers.get(path)
        if now is not None and now.unsaved:
            self.edit(path, now.text, now.cursor, now.anchor)

    async def close(self, path: str, discard: bool = False) -> None:
        """Raises `SessionError` if it has unsaved text, unless `discard`."""
        buffer = self._buffer(path)
        if buffer.unsaved and not discard:
            raise SessionError(f"{path} has unsaved text", "save it, or close it and give the text up")
        self._stored.pop(path, None)
        self._merges.pop(path, None)
        await self._journal.record(e.BufferClosed(path))

    async def clash(self, path: str) -> ConflictView:
        """Unsaved text is `yours`, the disk `theirs`. Raises `SessionError` if the file is gone, and
        `FileError`.
        """
        view, _ = await self._clash(path)
        return view

    async def resolve(self, path: str, sides: Sequence[Side], by_hand: Mapping[int, str], seen: str) -> None:
        """One side per clash; the result is unsaved. Raises `SessionError` if either has changed since
        `seen`.
        """
        buffer = self._buffer(path)
        view, disk = await self._clash(path)
        merged = (
            await asyncio.to_thread(merged_with_choices, view.regions, sides, by_hand)
            if view.now == seen
            else ""
        )
        now = self._buffer(path)
        if view.now != seen or now.text != buffer.text:
            raise SessionError(f"{path} has changed meanwhile", "look at the differences again")
        before = _Version(buffer.text, self._stored.get(path), buffer.disk)
        self._merges[path] = before, disk._replace(text=merged)
        self._go_to(path, self._merges[path][1], now.cursor, now.anchor, from_outside=True)

    async def _clash(self, path: str) -> tuple[ConflictView, _Version]:
        buffer = self._buffer(path)
        try:
            disk, found, _ = await asyncio.to_thread(self._read, path)
        except Undecodable:
            raise
        except FileError as error:
            raise SessionError(f"{path} is no longer on disk", "save it again, or close it") from error
        base = self._stored.get(path)
        known = base is not None and md5(encode(base, base.text)) == buffer.disk
        began = base.text if base is not None and known else None
        parts = await asyncio.to_thread(_merge, began, buffer.text, disk.text)
        seen = f"{found} {hash_of_text(buffer.text)}"
        view = ConflictView(path, "changed on disk", parts, False, False, seen, "you", "the disk")
        return view, _Version(disk.text, disk, found)

    def _go_to(
        self,
        path: str,
        version: _Version,
        cursor: tuple[int, int],
        anchor: tuple[int, int],
        from_outside: bool = False,
    ) -> None:
        before, _ = self._merges[path]
        if version.stored is None:
            self._stored.pop(path, None)
        else:
            self._stored[path] = version.stored
        unsaved = version.stored is None or version.stored.text != version.text
        edited = e.BufferEdited(path, version.text, version.disk, cursor, anchor, unsaved, from_outside)
        self._journal.grow(edited)
        self._journal.publish(e.BufferClashed(path, version is before))
        if not unsaved:
            self._journal.forget([f"buffer:{path}"])
        self._journal.flush()

    async def reload_changed(self, path: str) -> None:
        """Reports a clash with unsaved text."""
        if self.state.buffers.get(path) is None:
            return
        try:
            gate = self._workspace.gate
            disk = await asyncio.to_thread(lambda: md5(read_for_person(gate, path, MAX_BYTES)))
        except TuiAgentError:
            disk = NEW_FILE
        buffer = self.state.buffers.get(path)
        if buffer is None:
            return
        if disk == buffer.disk:
            if buffer.clash:
                self._journal.publish(e.BufferClashed(path, False))
        elif buffer.unsaved or disk == NEW_FILE:
            self._journal.publish(e.BufferClashed(path, True))
        elif await self._take_from_disk(path, over_unsaved=False):
            self._journal.forget([f"buffer:{path}"])

    def _buffer(self, path: str) -> Buffer:
        buffer = self.state.buffers.get(path)
        if buffer is None:
            raise SessionError(f"{path} is not open", "open it first")
        return buffer

    def _note(self, path: str, note: str) -> None:
        self._journal.publish(e.BufferLoaded(path, "", "", note))

    def _read(self, path: str) -> tuple[TextFile, str, int]:
        data = read_for_person(self._workspace.gate, path, MAX_BYTES)
        return decode(data, path), md5(data), self._mtime(path)

    def _mtime(self, path: str) -> int:
        try:
            return int((self._workspace.root / path).lstat().st_mtime)
        except OSError:
            return 0


def _merge(base: str | None, yours: str, theirs: str) -> tuple[Region, ...]:
    if base is None:
        lines = split(yours)
        common = matches(lines, split(theirs))
        base = "".join("".join(lines[at : at + length]) for at, _, length in common)
    return regions(base, yours, theirs)
