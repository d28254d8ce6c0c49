"""Atomic, durable writes of files whose contents are as expected: one, or several with a journal before the
first byte, and rollback on failure.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import FileError, Outdated, PathRefused, TuiAgentError
from tui_agent.files import staging
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, PathHandle, open_checked
from tui_agent.files.journal import (
    BatchEntry,
    BatchJournal,
    begin,
    entry_of,
    forget,
    innermost_first,
    keep,
    noted,
    remove_folders,
    roll_back,
)
from tui_agent.files.names import display_path, without_case
from tui_agent.files.operating_system import (
    AT_ONCE,
    as_file_error,
    file_error,
    read_start,
    several_at_once,
    stamp_of,
    sync_and_close,
    wait_for_writers,
    writing,
)
from tui_agent.files.staging import FileState
from tui_agent.files.text import md5


def write_file(
    gate: Gate,
    path: str,
    data: bytes | None,
    expected: str | None,
    *,
    mode: int | None = None,
    note: Path | None = None,
) -> str:
    """Writes `data` to a file (None: removes it) and returns the new hash ("" if removed).

    `expected` is the required current hash, "" for a missing file, None for any. `mode` are permission
    bits; by default a file keeps its own. Creates missing folders, and writes through links inside the
    workspace. With a `note` (a path in our data folder), `journal.clear` can remove leftovers of a kill.

    Raises Outdated, PathRefused, or FileError; the file is then unchanged.
    """
    with gate.find(path, "write") as spot, as_file_error(path, "written" if data is not None else "removed"):
        if data is None:
            refuse_link(spot)
            with writing(spot.folder):
                seen = check_expected(spot, expected)
                if seen.md5:
                    staging.check_writable(spot)
                    staging.remove(spot, seen)
            return ""
        entry = entry_of(spot, "", md5(data))
        with noted(note, gate, entry), staging.made_parents(spot), writing(spot.folder):
            staging.sweep(spot.folder)
            return write_at(spot, data, expected, entry.temporary, mode)


def mode_on_disk(gate: Gate, path: str) -> int | None:
    """Returns permission bits; None if missing."""
    with gate.find(path, "read") as spot:
        return None if spot.status is None else stat.S_IMODE(spot.status.st_mode)


def write_at(
    spot: PathHandle, data: bytes, expected: str | None, temporary: str, mode: int | None = None
) -> str:
    """Like `write_file`, in an existing and locked folder."""
    seen = check_expected(spot, expected)
    staging.check_writable(spot)
    staging.stage(spot, temporary, data, seen.status, mode)
    try:
        staging.rename_into_place(spot, temporary, seen)
    except BaseException:
        staging.discard(spot.folder, temporary)
        raise
    return md5(data)


def check_expected(spot: PathHandle, expected: str | None) -> FileState:
    """Raises Outdated."""
    found = FileState("") if len(spot.missing) > 1 else staging.read_state(spot)
    if expected is None or found.md5 == expected:
        return found
    if not found.md5:
        raise Outdated(f"{display_path(spot.path)} no longer exists", "search for it under another name")
    if not expected:
        raise Outdated(f"{display_path(spot.path)} already exists", "read it first, then change it")
    raise Outdated(
        f"{display_path(spot.path)} has changed since it was read", "read it again, then change it"
    )


def refuse_link(spot: PathHandle) -> None:
    """Raises PathRefused for a link: removing it or its target would be a guess."""
    if spot.is_link:
        raise PathRefused(
            f"{display_path(spot.path)} is a link and was not removed",
            f"name the file itself, {display_path(spot.real)}",
        )


#: Merge retries for a file that another program keeps writing; maximum wait for its next save, in seconds.
TRIED_AGAIN, NEXT_SAVE = 3, 0.1
#: Maximum wait for an editor's save, in seconds.
LONGEST_SAVE = 2.0


class Step(Struct, frozen=True):
    """One file of a batch: new content (None: removal) and required current hash (see `write_file`).

    `merged` merges the new content with another program's write (None: conflict); without it such a file
    is `Outdated`. A new file copies owner, attributes and permissions from `like`. `mode` (permission
    bits) overrides them; `executable` changes them.
    """

    path: str
    data: bytes | None
    expected: str | None
    mode: int | None = None
    merged: Callable[[bytes], bytes | None] | None = None
    like: str = ""
    executable: bool | None = None


class BatchResult(Struct, frozen=True):
    """The final steps, and the created folders, innermost first."""

    steps: tuple[Step, ...]
    folders: tuple[str, ...]


def write_batch(
    gate: Gate,
    journal: Path,
    blobs: Blobs,
    steps: Sequence[Step],
    *,
    name: str = "",
    leaves: Iterable[str] = (),
    written: Callable[[BatchResult], None] | None = None,
    record: Callable[[], None] | None = None,
    waits: Callable[[str], None] = lambda words: None,
) -> list[str]:
    """Writes every step or none. Returns the new hashes, in order (empty: removed).

    Before the first write, the old contents are in `blobs` and the journal is on disk. After the last
    write calls `written`, then `record`, which must durably store for `heal` that `name` is complete. If
    either raises, everything is rolled back.

    `leaves` are folders to remove if empty. `waits` receives descriptions of disk waits. Raises as
    `write_file` does, and FileError if the rollback fails: the journal then stays for `heal`.
    """
    if journal.exists():
        raise FileError(
            "An earlier batch of writes is unfinished", "free some space or give permission, then try again"
        )
    waits("waiting for the disk: journal")
    batch = _Batch(gate, journal, blobs, name, steps, innermost_first(leaves))
    batch.begin()
    try:
        batch.write(waits)
        if written is not None:
            written(BatchResult(tuple(batch.steps), batch.plan.made))
        if record is None:
            remove_folders(gate, batch.plan.leaves)
            with as_file_error(journal, "removed"):
                forget(journal)
        else:
            record()
    except BaseException as error:
        try:
            roll_back(gate, blobs, batch.plan)
            forget(journal)
        except (TuiAgentError, OSError) as failure:
            raise FileError(
                f"A batch of writes failed ({error}) and could not be undone ({failure})",
                "free some space or give permission, then try again: it is undone first",
            ) from error
        raise
    if record is not None:
        remove_folders(gate, batch.plan.leaves)
        try:
            os.unlink(journal)  # If it reappears, it is harmless.
        except OSError:
            pass
    return ["" if step.data is None else md5(step.data) for step in batch.steps]


class StillWritten(Outdated):
    """Another program won every race."""


class WrittenInPlace(Outdated):
    """Another program's write in place conflicts."""


class _Batch:
    def __init__(
        self,
        gate: Gate,
        journal: Path,
        blobs: Blobs,
        name: str,
        steps: Sequence[Step],
        leaves: tuple[str, ...],
    ) -> None:
        self.gate, self.journal, self.blobs = gate, journal, blobs
        self.steps = list(steps)
        entries = tuple(self._entry(at) for at in range(len(steps)))
        self.plan = BatchJournal(name, entries, os.fsencode(gate.root), leaves)
        names = [without_case(entry.path) if gate.ignore_case else entry.path for entry in entries]
        for name, step in zip(names, steps, strict=True):
            if names.count(name) > 1:
                raise FileError(
                    f"{display_path(step.path)} is twice in one batch", "give each file one change"
                )

    def begin(self) -> None:
        try:
            begin(self.journal, self.plan, self.blobs)
        except BaseException as error:
            self.journal.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise file_error(error, self.journal, "written") from error
            raise

    def keep(self, sync: bool = True) -> None:
        with as_file_error(self.journal, "written"):
            keep(self.journal, self.plan, sync=sync)

    def _replan(self, at: int, entry: BatchEntry) -> None:
        self.plan = replace(self.plan, entries=(*self.plan.entries[:at], entry, *self.plan.entries[at + 1 :]))
        self.keep(sync=False)

    def write(self, waits: Callable[[str], None]) -> None:
        """Stages all files first, so that a full disk shows before the first change; then moves, then
        removes. Syncs after staging and after the moves. Frees the old files before the second sync,
        several at once, because some disks take milliseconds for each.
        """
        order = sorted(range(len(self.steps)), key=lambda at: self.steps[at].data is None)
        staged = [at for at in order if self.steps[at].data is not None]
        swept: set[str] = set()
        for at in staged:
            self._stage(at, sync=False, swept=swept)
        waits("waiting for the disk: file contents")
        self._in_folders(staged, lambda folder, entry: staging.sync_staged(folder, entry.temporary))
        for at in order:
            self._move_into_place(at)
        waits("waiting for the disk: renaming files")
        self._in_folders(order, lambda folder, entry: staging.discard(folder, entry.aside))
        folders = list({os.path.dirname(self.plan.entries[at].path): at for at in order}.values())
        self._in_folders(folders, lambda folder, _: staging.sync_folder(folder))

    def _in_folders(self, chosen: list[int], work: Callable[[int, BatchEntry], object]) -> None:
        by_folder: dict[str, list[BatchEntry]] = {}
        for at in chosen:
            entry = self.plan.entries[at]
            by_folder.setdefault(os.path.dirname(entry.path), []).append(entry)
        size = -(-len(chosen) // AT_ONCE)
        parts = [all_[at : at + size] for all_ in by_folder.values() for at in range(0, len(all_), size)]

        def go(part: list[BatchEntry]) -> None:
            entry = part[0]
            try:
                with self.gate.find(entry.path, "write") as spot:
                    for entry in part:
                        work(spot.folder, entry)
            except OSError as error:
                raise file_error(error, entry.path, "written") from error

        several_at_once(go, parts)

    def _entry(self, at: int, in_journal: bool = False) -> BatchEntry:
        """Stores the current content in the blobs, or `in_journal`, which saves a sync."""
        step = self.steps[at]
        with self.gate.find(step.path, "write") as spot:
            with as_file_error(step.path, "read"):
                seen = self._current_state(at, spot, step.expected)
                step = self.steps[at]
                staging.check_writable(spot)
                if step.data is None:
                    refuse_link(spot)
                there = staging.content(spot) if seen.md5 else None
                if (
                    there is not None
                    and (md5(there) if in_journal else self.blobs.put_unsynced(there)) != seen.md5
                ):
                    raise Outdated(
                        f"{display_path(step.path)} is being changed by another program", "try again"
                    )
            after = "" if step.data is None else md5(step.data)
            return entry_of(spot, seen.md5, after, there if in_journal else None)

    def _current_state(self, at: int, spot: PathHandle, expected: str | None) -> FileState:
        """Merges the step with unexpected content. Raises Outdated."""
        step = self.steps[at]
        try:
            return check_expected(spot, expected)
        except Outdated:
            if step.merged is None or spot.status is None:
                raise
            descriptor = open_checked(spot)
            try:
                wait_for_writers(descriptor, LONGEST_SAVE)
            finally:
                os.close(descriptor)
            if not (found := staging.read_state(spot)).md5:
                raise
            there = staging.content(spot)
            data = step.merged(there)
            if data is None or md5(there) != found.md5:
                raise
        self.steps[at] = replace(step, data=data, expected=found.md5)
        return found

    def _stage(self, at: int, sync: bool = True, swept: set[str] | None = None) -> None:
        entry, step = self.plan.entries[at], self.steps[at]
        with as_file_error(entry.path, "written"), self.gate.find(entry.path, "write") as spot:
            spot.make_parents()
            folder = os.path.dirname(entry.path)
            if swept is not None and folder not in swept:
                swept.add(folder)
                staging.sweep(spot.folder)
            with self.gate.find(step.like, "write") if step.like else nullcontext() as source:
                staging.stage(
                    spot,
                    entry.temporary,
                    step.data or b"",
                    spot.status,
                    step.mode,
                    sync=sync,
                    source=source,
                    executable=step.executable,
                )

    def _move_into_place(self, at: int) -> None:
        """Merges and retries if another program wrote first. After a lost race against periodic saves, the
        longest free interval begins right after the next save. A sync would use it up, so it follows the
        move; a kill in between loses nothing.
        """
        for attempt in range(TRIED_AGAIN + 1):
            try:
                self._land_once(at)
                break
            except WrittenInPlace:
                raise
            except Outdated as error:
                path = self.plan.entries[at].path
                if self.steps[at].merged is None:
                    raise
                if attempt == TRIED_AGAIN:
                    raise StillWritten(
                        f"{display_path(path)} was written by another program at each of {attempt + 1} tries",
                        "wait until that is done, then try again",
                    ) from error
                place, deadline = self.gate.root / path, time.monotonic() + NEXT_SAVE
                before = stamp_of(place)
                while stamp_of(place) == before and time.monotonic() < deadline:
                    time.sleep(0.0005)
                old = self.plan.entries[at]
                new = replace(
                    self._entry(at, in_journal=True),
                    temporary=old.temporary,
                    aside=old.aside,
                    folders=old.folders,
                )
                with self.gate.find(old.path, "write") as spot:
                    staging.discard(spot.folder, old.temporary)
                self._replan(at, new)
                self._stage(at, sync=False)
        if attempt:
            entry = self.plan.entries[at]
            with as_file_error(entry.path, "written"), self.gate.find(entry.path, "write") as spot:
                sync_and_close(open_checked(spot))
            if entry.content is not None:
                self.blobs.put(entry.content)
            self.keep()

    def _land_once(self, at: int) -> None:
        entry = self.plan.entries[at]
        with (
            as_file_error(entry.path, "written"),
            self.gate.find(entry.path, "write") as spot,
            writing(spot.folder),
        ):
            if entry.before:
                staging.set_aside(spot, entry.aside)
            seen = check_expected(spot, entry.before)
            old = open_checked(spot) if seen.md5 else None
            try:
                if entry.after:
                    staging.rename_into_place(spot, entry.temporary, seen, sync=False)
                elif seen.md5:
                    staging.remove(spot, seen, sync=False)
                if old is not None:
                    self._look_back(at, spot, old, seen)
            finally:
                if old is not None:
                    os.close(old)

    def _look_back(self, at: int, spot: PathHandle, old: int, seen: FileState) -> None:
        """Merges data that an editor wrote through its open descriptor of the old file. Raises
        WrittenInPlace on conflict, after restoring the editor's version.
        """
        wait_for_writers(old, LONGEST_SAVE)
        there = os.pread(old, os.fstat(old).st_size, 0)
        if md5(there) == seen.md5:
            return
        step, entry = self.steps[at], self.plan.entries[at]
        data = None if step.merged is None or step.data is None else step.merged(there)
        after = entry.after if data is None else md5(data)
        new = replace(entry, before=md5(there), after=after, content=there, landed=entry.after)
        self._replan(at, new)
        if data is None:
            raise WrittenInPlace(
                f"{display_path(entry.path)} was written by another program while it was replaced",
                "try again",
            )
        ours = staging.read_state(spot)
        staging.stage(spot, entry.temporary, data, ours.status, step.mode)
        staging.rename_into_place(spot, entry.temporary, ours, sync=False)
        self.blobs.put_unsynced(there)
        self.steps[at] = replace(step, data=data, expected=md5(there))


def heal(gate: Gate, journal: Path, blobs: Blobs, *, recorded: Collection[str] = ()) -> list[str]:
    """Completes or rolls back batches after a crash. Returns a sentence for each action.

    Batches in `recorded` are complete; others are rolled back, except for files changed since. Raises
    FileError; the journal then stays.
    """
    try:
        plan = BatchJournal.decode(read_start(journal))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise file_error(error, journal, "read") from error
    except ValueError:
        aside = journal.with_name(f"{journal.name}.damaged")
        os.replace(journal, aside)
        return [f"The journal of an unfinished batch is damaged; it was saved as {aside}."]
    with as_file_error(journal, "settled"):
        if plan.name and plan.name in recorded:
            remove_folders(gate, plan.leaves)
            said = []
        else:
            names = ", ".join(display_path(entry.path) for entry in plan.entries)
            untouched = f"A batch was interrupted before it changed a file: {names}."
            said = roll_back(gate, blobs, plan) or [untouched]
        forget(journal)
    return said
