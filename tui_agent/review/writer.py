"""Writes decisions to disk, all or nothing, or to unsaved buffers; repairs writes of a killed process."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.context.known_files import MAX_BYTES, KnownFile, Touch
from tui_agent.edits.change import Checkpoint, FileStep, compose, hunks
from tui_agent.edits.merge import merge
from tui_agent.errors import Damaged, FileError, Outdated, SessionError, TuiAgentError
from tui_agent.files.batch import (
    LONGEST_SAVE,
    TRIED_AGAIN,
    BatchResult,
    Step,
    heal,
    mode_on_disk,
    write_batch,
)
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, open_checked, read_for_person
from tui_agent.files.journal import BatchJournal, clear
from tui_agent.files.operating_system import inode_of, read_start, sentence, wait_for_writers
from tui_agent.files.staging import content, with_execution
from tui_agent.files.text import TextFile, decode, encode, md5
from tui_agent.log import directory
from tui_agent.log.core import Core
from tui_agent.log.directory import SessionLock
from tui_agent.log.journal import Wait
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import read_state
from tui_agent.review.open_files import SAVE, OpenFiles
from tui_agent.store.events import FileTouched, FreshnessChanged, Lasting, fold
from tui_agent.store.files import BuffersSlice, KnownSlice
from tui_agent.store.state import ReviewSlice, State

#: A batch's journal, in the session folder.
BATCH = "batch.json"


class CurrentFile(Struct, frozen=True):
    """`text` is None for a missing file. `unsaved`: the text is from a buffer, and `disk` is the hash on
    disk. `mode` are the permission bits.
    """

    path: str
    text: str | None
    md5: str
    stored: TextFile
    unsaved: bool = False
    disk: str = ""
    mode: int | None = None


class WriteTarget(Struct, frozen=True):
    """`text` is None for a removal. `merged`: another program wrote the file concurrently, and `now` and
    `text` include its edits. `mode` None keeps the permission bits; `executable` changes them. `like` is
    the file that is moved here.
    """

    now: CurrentFile
    text: str | None
    merged: bool = False
    mode: int | None = None
    executable: bool | None = None
    like: str = ""
    hashed: str = ""

    @property
    def after(self) -> str:
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
    def in_buffer(self) -> bool:
        return self.now.unsaved and self.text is not None


class WriteOutcome(Struct, frozen=True):
    """`folders` were created, innermost first."""

    targets: tuple[WriteTarget, ...]
    folders: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[FileStep, ...]:
        return tuple(target.step for target in self.targets)

    @property
    def merged(self) -> frozenset[str]:
        return frozenset(target.now.path for target in self.targets if target.merged)


def as_written(entry: KnownFile, target: WriteTarget, root: Path) -> KnownFile:
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


def outside(known: KnownSlice, target: WriteTarget, turn: int, base: str = "") -> list[Lasting]:
    """Returns events for concurrent edits by another program, unless already reported. `base` is the
    expected hash of an unknown file.
    """
    entry, now = known.files.get(target.now.path), time.time()
    seen = (entry.md5, entry.written) if entry else (base, "")
    if target.now.text is None or target.now.md5 in seen or (entry is not None and entry.stale):
        return []
    if entry is None:
        touch = Touch(target.now.path, turn, "changed outside", "", active=False, at=now)
        return [FileTouched(touch)] if base else []
    return [FreshnessChanged(entry.path, "buffer" if target.now.unsaved else "disk", at=now)]


Events = Callable[[WriteOutcome], Sequence[Lasting]]


class Writer:
    def __init__(self, core: Core, open_files: OpenFiles) -> None:
        self._journal = core.journal
        self._workspace = core.workspace
        self._blobs = core.blobs
        self._open_files = open_files
        self._folder = core.storage.folder
        self._batch = self._folder / BATCH

    async def current(self, path: str) -> CurrentFile:
        """Raises `FileError` if unreadable, `PathRefused` if not permitted."""
        return await asyncio.to_thread(self.read_current, path)

    def read_current(self, path: str) -> CurrentFile:
        """Blocking form of `current`."""
        gate = self._workspace.gate
        if not gate.place(path, "write").exists:
            return CurrentFile(path, None, "", TextFile(""))
        data = read_for_person(gate, path, MAX_BYTES)
        stored, hashed = decode(data, path), md5(data)
        now = CurrentFile(path, stored.text, hashed, stored, disk=hashed, mode=mode_on_disk(gate, path))
        buffer = self._journal.store.state.buffers.get(path)
        if buffer is None or not buffer.unsaved:
            return now
        newer = self._blobs.put_unsynced(encode(now.stored, buffer.text))
        return replace(now, text=buffer.text, md5=newer, unsaved=True)

    async def on_disk(self, path: str) -> str:
        if not self._workspace.gate.place(path, "read").exists:
            return ""
        return decode(
            await asyncio.to_thread(read_for_person, self._workspace.gate, path, MAX_BYTES), path
        ).text

    async def write(
        self, name: str, targets: Sequence[WriteTarget], events: Events, leaves: Iterable[str] = ()
    ) -> list[str]:
        """Writes all or none, and records `events` before listeners are notified. `leaves` are folders to
        remove if empty. Merges a program's concurrent save of an earlier text; returns the paths where
        that conflicts, which keep the program's text. Raises `Outdated` if a file or buffer has changed
        since it was read, and `FileError`.
        """
        with self._journal.waits.on("waiting for the disk to write files") as wait:
            done = await self._write_and_say(wait, name, targets, events, leaves)
            lost: list[str] = []
            for attempt in range(TRIED_AGAIN + 1):
                steps, lost = await asyncio.to_thread(self._overwritten, done)
                if not steps:
                    break
                if attempt == TRIED_AGAIN:
                    lost += [step.path for step in steps]
                    break
                where = (self._workspace.gate, self._batch, self._blobs)
                async with self._open_files.files_at_rest:
                    with suppress(Outdated):
                        await asyncio.to_thread(write_batch, *where, steps)
        for target in targets:
            if not target.in_buffer:
                await self._open_files.reload_changed(target.now.path)
        return lost

    def _overwritten(self, done: WriteOutcome) -> tuple[list[Step], list[str]]:
        steps: list[Step] = []
        lost: list[str] = []
        for target in done.targets:
            path, before, after = target.now.path, target.now.text, target.text
            if target.in_buffer or before is None or after is None:
                continue
            try:
                with self._workspace.gate.find(path, "read") as spot:
                    descriptor = open_checked(spot)
                    try:
                        wait_for_writers(descriptor, LONGEST_SAVE)
                    finally:
                        os.close(descriptor)
                    there = content(spot)
                if md5(there) == target.after:
                    continue
                stored = decode(there, path)
                both = merge(before, stored.text, after)
            except (TuiAgentError, OSError):
                continue
            if both.conflicts and _lines(before, stored.text) <= _lines(after, stored.text):
                lost.append(path)
            elif not both.conflicts and is_overwritten(before, after, stored.text):
                steps.append(
                    replace(_step(target), data=encode(stored, both.text), expected=md5(there), mode=None)
                )
        return steps, lost

    async def _write_and_say(
        self, wait: Wait, name: str, targets: Sequence[WriteTarget], events: Events, leaves: Iterable[str]
    ) -> WriteOutcome:
        put = self._blobs.put_unsynced
        targets = await asyncio.to_thread(
            lambda: [
                target
                if target.text is None
                else replace(target, hashed=put(encode(target.now.stored, target.text)))
                for target in targets
            ]
        )
        loop = asyncio.get_running_loop()
        done = WriteOutcome(tuple(targets))

        def written(batch: BatchResult) -> None:
            nonlocal done
            done = self._outcome(targets, batch)

        def record() -> None:
            asyncio.run_coroutine_threadsafe(self._record(done, events), loop).result()

        def waits(words: str) -> None:
            loop.call_soon_threadsafe(wait.is_now, words)

        def write() -> None:
            on_disk = [
                _step(replace(target, text=target.now.stored.text, hashed="") if target.in_buffer else target)
                for target in targets
                if not target.in_buffer
                or target.executable is not None
                or target.mode not in (None, target.now.mode)
            ]
            if not on_disk:
                record()
                return
            where = (self._workspace.gate, self._batch, self._blobs)
            write_batch(
                *where, on_disk, name=name, leaves=leaves, written=written, record=record, waits=waits
            )

        async with self._open_files.files_at_rest:
            await asyncio.to_thread(write)
        return done

    def _outcome(self, targets: Sequence[WriteTarget], batch: BatchResult) -> WriteOutcome:
        written = {step.path: step for step in batch.steps}
        done = []
        for target in targets:
            step = written.get(target.now.path)
            if step is None or step.data is None:
                done.append(target)
                continue
            if target.executable and target.step.mode_after is None:
                target = replace(target, mode=mode_on_disk(self._workspace.gate, step.path))
            if target.in_buffer or step.expected == target.now.disk:
                done.append(target)
                continue
            stored = decode(step.data, step.path)
            before = str(step.expected)
            now = replace(target.now, md5=before, disk=before, stored=stored)
            hashed = self._blobs.put_unsynced(step.data)
            done.append(replace(target, now=now, text=stored.text, merged=True, hashed=hashed))
        return WriteOutcome(tuple(done), batch.folders)

    async def _record(self, done: WriteOutcome, events: Events) -> None:
        """Updates unchanged buffers in the same transaction, so that a kill leaves both or none."""
        targets = done.targets
        for target in targets:
            buffer = self._journal.store.state.buffers.get(target.now.path)
            if buffer is None:
                continue
            if buffer.unsaved if not target.now.unsaved else buffer.text != target.now.text:
                raise Outdated(f"You typed in {target.now.path} just before it was written", "try again")
        in_buffers = [target for target in targets if target.in_buffer]
        texts = [self._open_files.with_text(target.now.path, target.text or "") for target in in_buffers]
        try:
            await self._journal.record_with(texts, *events(done))
        except SessionError:
            for target in in_buffers:
                self._journal.grow(self._open_files.with_text(target.now.path, target.now.text or ""))
            raise

    @property
    def root(self) -> Path:
        return self._workspace.gate.root

    @property
    def unfinished(self) -> bool:
        return self._batch.exists()

    async def heal(self, recorded: Sequence[str]) -> list[str]:
        """Returns a sentence per repair."""
        gate, buffers = self._workspace.gate, self._journal.store.state.buffers
        said = await asyncio.to_thread(clear_save, gate, self._folder, buffers)
        try:
            return said + await asyncio.to_thread(heal, gate, self._batch, self._blobs, recorded=recorded)
        except FileError as error:
            return [*said, str(error)]


def _step(target: WriteTarget) -> Step:
    now, text = target.now, target.text
    if text is None:
        return Step(now.path, None, now.disk)
    base = now.stored.text if now.unsaved else now.text

    def merged(there: bytes) -> bytes | None:
        stored, before = decode(there, now.path), base or ""
        parts = sorted((*hunks(before, stored.text), *hunks(before, text)), key=lambda part: part.start)
        if all(part.start + len(part.removed) < later.start for part, later in pairwise(parts)):
            return encode(stored, compose(before, parts, range(len(parts))))  # without a process
        both = merge(before, stored.text, text)
        return None if both.conflicts else encode(stored, both.text)

    return Step(
        now.path,
        encode(now.stored, text),
        now.disk,
        target.mode,
        None if base is None else merged,
        target.like,
        target.executable,
    )


def is_overwritten(before: str, after: str, now: str) -> bool:
    """Whether `now` has nothing of the change from `before` to `after`."""
    return now != after and not set(hunks(before, now)).intersection(hunks(before, after))


def _lines(before: str, after: str) -> int:
    return sum(len(part.removed) + len(part.added) for part in hunks(before, after))


def recorded_names(review: ReviewSlice) -> list[str]:
    moves = [batch_name(point, point.undone) for point in review.checkpoints]
    return [*(point.id for point in review.checkpoints), *moves]


def batch_name(point: Checkpoint, undone: bool) -> str:
    return f"{point.id}-{'undone' if undone else 'redone'}"


def repair_others(data: Path, root: Path, own: Path) -> list[str]:
    """Returns a sentence per repair. Skips open sessions, whose writes are in progress. Blocking."""
    said: list[str] = []
    for folder in directory.folders(data):
        if folder == own or not any((folder / name).exists() for name in (BATCH, SAVE)):
            continue
        try:
            with SessionLock.take(folder):
                done = _settle(folder, data, root)
                said += [f"{line.rstrip('.')} (session {folder.name})" for line in done]
        except SessionError:
            continue
    return said


def clear_save(gate: Gate, folder: Path, buffers: BuffersSlice) -> list[str]:
    """Removes the temporary file of an interrupted save. Blocking."""
    among = [buffer.path for buffer in buffers.open]
    try:
        return clear(gate, folder / SAVE, among) if (folder / SAVE).exists() else []
    except OSError as error:
        return [f"What a save left behind could not be removed, {sentence(error)[0]}"]


def _settle(folder: Path, data: Path, root: Path) -> list[str]:
    said: list[str] = []
    for name in (SAVE, BATCH):
        try:
            journal = BatchJournal.decode(read_start(folder / name))
        except OSError:
            continue
        except ValueError:
            journal = BatchJournal("", ())
        entry = None if journal.root else directory.read_entry(folder)
        place = Path(os.fsdecode(journal.root) if journal.root else entry.workspace if entry else "")
        if not place.is_absolute() or not place.is_dir():
            continue
        here, there = Path(os.path.realpath(root)), Path(os.path.realpath(place))
        if not here.is_relative_to(there) and not there.is_relative_to(here):
            continue
        gate = Gate(place)
        try:
            if name == SAVE:
                said += clear_save(gate, folder, _state(folder / directory.LOG).buffers)
            else:
                names = recorded_names(_state(folder / directory.LOG).review)
                said += heal(gate, folder / name, Blobs(data / "blobs"), recorded=names)
        except (TuiAgentError, sqlite3.Error) as error:
            said.append(f"An unfinished batch could not be completed or undone: {error}")
    return said


def _state(log: Path) -> State:
    try:
        return read_state(log).state
    except Damaged:
        return fold(events_of(log))
