"""Writing what was decided: to disk all or nothing, or into the text of a buffer that is not saved (E5, E8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from tui_agent.edits.change import FileStep
from tui_agent.errors import FileError
from tui_agent.files.batch import Step, heal, write_batch
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import read
from tui_agent.files.text import TextFile, decode, encode, md5
from tui_agent.session.editing import Editing
from tui_agent.session.journal import Journal
from tui_agent.store.events import Event
from tui_agent.turn.reading import MAX_BYTES
from tui_agent.workspace.workspace import Workspace

JOURNAL = "batch.json"


class Current(Struct, frozen=True):
    """A file as it is now: its newest text (None: there is no such file), its hash, and how it is stored.

    `unsaved` says that the text is that of an open buffer, which the disk does not have; `disk` is the hash there.
    """

    path: str
    text: str | None
    md5: str
    stored: TextFile
    unsaved: bool = False
    disk: str = ""


class Target(Struct, frozen=True):
    """What a file is to become: a text, or None where it goes."""

    now: Current
    text: str | None

    @property
    def after(self) -> str:
        """The hash that it will have; empty where it goes."""
        return "" if self.text is None else md5(encode(self.now.stored, self.text))


class Writing:
    """Reads what files are now, and writes what they are to become."""

    def __init__(
        self, journal: Journal, workspace: Workspace, blobs: Blobs, editing: Editing, folder: Path
    ) -> None:
        self._journal = journal
        self._workspace = workspace
        self._blobs = blobs
        self._editing = editing
        self._batch = folder / JOURNAL

    async def current(self, path: str) -> Current:
        """A file as it is now. Raises `FileError` for one that cannot be read, `PathRefused` for one that may not."""
        place = self._workspace.gate.place(path, "write")
        if not place.exists:
            return Current(path, None, "", TextFile(""))
        data = await asyncio.to_thread(read, self._workspace.gate, path, MAX_BYTES)
        stored = decode(data, path)
        buffer = self._journal.store.state.buffers.get(path)
        if buffer is None or not buffer.unsaved:
            return Current(path, stored.text, md5(data), stored, disk=md5(data))
        newer = encode(stored, buffer.text)
        await asyncio.to_thread(self._blobs.put, newer)
        return Current(path, buffer.text, md5(newer), stored, unsaved=True, disk=md5(data))

    async def write(
        self, name: str, targets: Sequence[Target], events: Callable[[tuple[FileStep, ...]], Sequence[Event]]
    ) -> None:
        """Make every file what it is to become, or none, and record `events(steps)` before anybody is told.

        Raises `Outdated` where a file moved since it was looked at, `FileError` where it cannot be written.
        """
        steps = tuple(FileStep(target.now.path, target.now.md5, target.after) for target in targets)
        for target in targets:
            if target.text is not None:
                await asyncio.to_thread(self._blobs.put, encode(target.now.stored, target.text))
        loop = asyncio.get_running_loop()

        def record() -> None:
            asyncio.run_coroutine_threadsafe(self._journal.record(*events(steps)), loop).result()

        await asyncio.to_thread(self._write, name, targets, record)
        for target in targets:
            if target.now.unsaved and target.text is not None:
                self._editing.take_text(target.now.path, target.text)
            else:
                await self._editing.look_again(target.now.path)

    @property
    def unfinished(self) -> bool:
        """Whether a batch broke off, or left its journal behind."""
        return self._batch.exists()

    async def heal(self, recorded: Sequence[str]) -> list[str]:
        """Settle a batch that broke off; sentences on what was done."""
        try:
            return await asyncio.to_thread(
                heal, self._workspace.gate, self._batch, self._blobs, recorded=recorded
            )
        except FileError as error:
            return [str(error)]

    def _write(self, name: str, targets: Sequence[Target], record: Callable[[], None]) -> None:
        on_disk = [
            Step(
                target.now.path,
                None if target.text is None else encode(target.now.stored, target.text),
                target.now.disk,
            )
            for target in targets
            if not target.now.unsaved or target.text is None
        ]
        if not on_disk:
            record()
            return
        write_batch(self._workspace.gate, self._batch, self._blobs, on_disk, name=name, record=record)
