"""Writing what was decided: to disk all or nothing, or into the text of a buffer that is not saved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context.known import MAX_BYTES, KnownFile, Touch
from tui_agent.edits.change import FileStep
from tui_agent.edits.hunks import compose, hunks
from tui_agent.edits.merge import merge
from tui_agent.errors import FileError, Outdated, SessionError
from tui_agent.files.batch import BatchResult, Step, heal, write_batch
from tui_agent.files.gate import read_for_person
from tui_agent.files.replace import mode_on_disk
from tui_agent.files.staging import with_execution
from tui_agent.files.systems import inode_of
from tui_agent.files.text import TextFile, decode, encode, md5
from tui_agent.log.core import Core
from tui_agent.log.waits import Wait
from tui_agent.review.open_files import OpenFiles
from tui_agent.review.unfinished import BATCH, clear_save
from tui_agent.store.events import FileTouched, FreshnessChanged, Lasting
from tui_agent.store.files import KnownSlice


class Current(Struct, frozen=True):
    """A file as it is now: its newest text (None: there is no such file), its hash, and how it is stored.

    `unsaved` says that the text is that of an open buffer, which the disk does not have; `disk` is the hash there.
    `mode` are its permission bits.
    """

    path: str
    text: str | None
    md5: str
    stored: TextFile
    unsaved: bool = False
    disk: str = ""
    mode: int | None = None


class Target(Struct, frozen=True):
    """What a file is to become: a text, or None where it goes. `merged` says that another program wrote the file
    meanwhile, and that `now` and `text` have what it wrote. `mode` are the permission bits that it gets, None where it
    keeps its own or is new; `executable` changes them. `like` is the file that moves there."""

    now: Current
    text: str | None
    merged: bool = False
    mode: int | None = None
    executable: bool | None = None
    like: str = ""
    #: The hash that it will have, where that is worked out.
    hashed: str = ""

    @property
    def after(self) -> str:
        """The hash that it will have; empty where it goes."""
        return "" if self.text is None else self.hashed or md5(encode(self.now.stored, self.text))

    @property
    def step(self) -> FileStep:
        mode = self.now.mode if self.mode is None else self.mode
        if self.text is None:
            mode = None
        elif mode is not None and self.executable is not None:
            mode = with_execution(mode, self.executable)
        return FileStep(self.now.path, self.now.md5, self.after, self.now.mode, mode)

    @property
    def changes_mode(self) -> bool:
        return self.executable is not None or self.mode not in (None, self.now.mode)

    @property
    def in_buffer(self) -> bool:
        """Whether it becomes so in an open buffer that has unsaved text, and not on disk."""
        return self.now.unsaved and self.text is not None


class WriteOutcome(Struct, frozen=True):
    """What was written, and the folders that were made for it, the innermost first."""

    targets: tuple[Target, ...]
    folders: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[FileStep, ...]:
        return tuple(target.step for target in self.targets)

    @property
    def merged(self) -> frozenset[str]:
        """The paths of files that another program wrote meanwhile."""
        return frozenset(target.now.path for target in self.targets if target.merged)


def as_written(entry: KnownFile, target: Target, root: Path) -> KnownFile:
    """The entry of a file that has just become what it was to become."""
    text, after = target.text or "", target.after
    return replace(
        entry,
        written=entry.written if after == entry.md5 else after,
        freshness="fresh" if after == entry.md5 else "edited",
        renamed_to="",
        size=len(encode(target.now.stored, text)),
        lines=len(text.splitlines()),
        inode=inode_of(root / target.now.path),
    )


def outside(known: KnownSlice, target: Target, turn: int, base: str = "") -> list[Lasting]:
    """What another program had made of the file that was written, where nobody has said so yet.

    `base` is the hash that is expected of a file that is not known.
    """
    entry, now = known.files.get(target.now.path), time.time()
    seen = (entry.md5, entry.written) if entry else (base, "")
    if target.now.text is None or target.now.md5 in seen or (entry is not None and entry.stale):
        return []
    if entry is None:
        touch = Touch(target.now.path, turn, "changed outside", "", active=False, at=now)
        return [FileTouched(touch)] if base else []
    return [FreshnessChanged(entry.path, "buffer" if target.now.unsaved else "disk", at=now)]


#: From what was written to what happened.
Events = Callable[[WriteOutcome], Sequence[Lasting]]


class Writer:
    """Reads what files are now, and writes what they are to become."""

    def __init__(self, core: Core, open_files: OpenFiles) -> None:
        self._journal = core.journal
        self._workspace = core.workspace
        self._blobs = core.blobs
        self._open_files = open_files
        self._folder = core.storage.folder
        self._batch = self._folder / BATCH

    async def current(self, path: str) -> Current:
        """A file as it is now. Raises `FileError` for one that cannot be read, `PathRefused` for one that may not."""
        place = self._workspace.gate.place(path, "write")
        if not place.exists:
            return Current(path, None, "", TextFile(""))
        now = await asyncio.to_thread(self._read, path)
        buffer = self._journal.store.state.buffers.get(path)
        if buffer is None or not buffer.unsaved:
            return now
        newer = await asyncio.to_thread(self._blobs.put_soon, encode(now.stored, buffer.text))
        return replace(now, text=buffer.text, md5=newer, unsaved=True)

    def _read(self, path: str) -> Current:
        """A file as it is on disk. Blocking."""
        gate = self._workspace.gate
        data = read_for_person(gate, path, MAX_BYTES)
        stored, hashed = decode(data, path), md5(data)
        return Current(path, stored.text, hashed, stored, disk=hashed, mode=mode_on_disk(gate, path))

    async def on_disk(self, path: str) -> str:
        """The text of a file on disk, "" where it is not there. Raises as `current` does."""
        if not self._workspace.gate.place(path, "read").exists:
            return ""
        return decode(
            await asyncio.to_thread(read_for_person, self._workspace.gate, path, MAX_BYTES), path
        ).text

    async def write(
        self, name: str, targets: Sequence[Target], events: Events, leaves: Iterable[str] = ()
    ) -> None:
        """Make every file what it is to become, or none, and record `events` before anybody is told.

        `leaves` are folders that go too, where they are empty then. Raises `Outdated` where a file, or the text of
        an open buffer, moved since it was looked at, `FileError` where it cannot be written.
        """
        with self._journal.waits.on("waiting for the disk to write files") as wait:
            await self._write_and_say(wait, name, targets, events, leaves)
        for target in targets:
            if not target.in_buffer:
                await self._open_files.look_again(target.now.path)

    async def _write_and_say(
        self, wait: Wait, name: str, targets: Sequence[Target], events: Events, leaves: Iterable[str]
    ) -> None:
        targets = await asyncio.to_thread(lambda: [self._kept(target) for target in targets])
        loop = asyncio.get_running_loop()
        done = WriteOutcome(tuple(targets))

        def written(batch: BatchResult) -> None:
            nonlocal done
            done = self._outcome(targets, batch)

        def record() -> None:
            asyncio.run_coroutine_threadsafe(self._record(done, events), loop).result()

        def waits(words: str) -> None:
            loop.call_soon_threadsafe(wait.is_now, words)

        async with self._open_files.files_at_rest:
            await asyncio.to_thread(self._write, name, targets, written, record, leaves, waits)

    def _kept(self, target: Target) -> Target:
        """The target with its hash, its text kept. Blocking."""
        if target.text is None:
            return target
        return replace(target, hashed=self._blobs.put_soon(encode(target.now.stored, target.text)))

    def _outcome(self, targets: Sequence[Target], batch: BatchResult) -> WriteOutcome:
        """What came of the targets: what another program wrote meanwhile was merged in. Blocking."""
        written = {step.path: step for step in batch.steps}
        done = []
        for target in targets:
            step = written.get(target.now.path)
            if (
                step is not None
                and step.data is not None
                and target.executable
                and target.step.mode_after is None
            ):
                target = replace(target, mode=mode_on_disk(self._workspace.gate, step.path))
            if step is None or step.data is None or target.in_buffer or step.expected == target.now.disk:
                done.append(target)
                continue
            stored = decode(step.data, step.path)
            before = str(step.expected)
            now = replace(target.now, md5=before, disk=before, stored=stored)
            hashed = self._blobs.put_soon(step.data)
            done.append(replace(target, now=now, text=stored.text, merged=True, hashed=hashed))
        return WriteOutcome(tuple(done), batch.folders)

    async def _record(self, done: WriteOutcome, events: Events) -> None:
        """Give the open buffers their texts, if they are as they were looked at, and record what was done, in one
        transaction: after a kill there is all of it or nothing."""
        targets = done.targets
        for target in targets:
            self._check_buffer(target)
        in_buffers = [target for target in targets if target.in_buffer]
        texts = [self._open_files.with_text(target.now.path, target.text or "") for target in in_buffers]
        try:
            await self._journal.record_with(texts, *events(done))
        except SessionError:
            for target in in_buffers:
                self._journal.grow(self._open_files.with_text(target.now.path, target.now.text or ""))
            raise

    def _check_buffer(self, target: Target) -> None:
        """Raise Outdated where somebody typed since the file was looked at: that text is the newest."""
        buffer = self._journal.store.state.buffers.get(target.now.path)
        if buffer is None:
            return
        if buffer.unsaved if not target.now.unsaved else buffer.text != target.now.text:
            raise Outdated(f"{target.now.path} was typed in while it was about to be written", "try again")

    @property
    def root(self) -> Path:
        return self._workspace.gate.root

    @property
    def unfinished(self) -> bool:
        """Whether a batch broke off, or left its journal behind."""
        return self._batch.exists()

    async def heal(self, recorded: Sequence[str]) -> list[str]:
        """Settle a batch and a save that broke off; sentences on what was done."""
        gate, buffers = self._workspace.gate, self._journal.store.state.buffers
        said = await asyncio.to_thread(clear_save, gate, self._folder, buffers)
        try:
            return said + await asyncio.to_thread(heal, gate, self._batch, self._blobs, recorded=recorded)
        except FileError as error:
            return [*said, str(error)]

    def _write(
        self,
        name: str,
        targets: Sequence[Target],
        written: Callable[[BatchResult], None],
        record: Callable[[], None],
        leaves: Iterable[str],
        waits: Callable[[str], None],
    ) -> None:
        on_disk = [
            _step(replace(target, text=target.now.stored.text, hashed="") if target.in_buffer else target)
            for target in targets
            if not target.in_buffer or target.changes_mode
        ]
        if not on_disk:
            record()
            return
        where = (self._workspace.gate, self._batch, self._blobs)
        write_batch(*where, on_disk, name=name, leaves=leaves, written=written, record=record, waits=waits)


def _step(target: Target) -> Step:
    now, text = target.now, target.text
    if text is None:
        return Step(now.path, None, now.disk)
    base = now.stored.text if now.unsaved else now.text

    def merged(there: bytes) -> bytes | None:
        stored = decode(there, now.path)
        both = _both(base or "", stored.text, text)
        return None if both is None else encode(stored, both)

    return Step(
        now.path,
        encode(now.stored, text),
        now.disk,
        target.mode,
        None if base is None else merged,
        target.like,
        target.executable,
    )


def _both(base: str, one: str, other: str) -> str | None:
    """What both made of the base, None where they conflict. Where they do not touch no process is needed for it."""
    parts = sorted((*hunks(base, one), *hunks(base, other)), key=lambda part: part.start)
    if all(part.start + len(part.removed) < later.start for part, later in pairwise(parts)):
        return compose(base, parts, range(len(parts)))
    both = merge(base, one, other)
    return None if both.conflicts else both.text
