"""Several files written all or nothing: a journal before the first byte, taken back where it breaks off."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.errors import FileError, Outdated, TuiAgentError
from tui_agent.files import staging
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, open_checked
from tui_agent.files.journal import (
    BatchEntry,
    BatchJournal,
    begin,
    entry_of,
    forget,
    innermost_first,
    keep,
    remove_folders,
    take_back,
)
from tui_agent.files.names import shown, without_case
from tui_agent.files.replace import refuse_link, seen_as_expected
from tui_agent.files.staging import FileFound
from tui_agent.files.systems import file_error, several_at_once, stamp_of, wait_for_writers, writing
from tui_agent.files.text import md5
from tui_agent.files.walk import Spot

#: How often a file that another program wrote meanwhile is merged and tried again, and how long its next save is
#: waited for, in seconds.
TRIED_AGAIN, NEXT_SAVE = 3, 0.1
#: How long an editor that writes a file in place is waited for, in seconds.
LONGEST_SAVE = 2.0


class Step(Struct, frozen=True):
    """One file of a batch: its new content (None: it goes) and the hash that must be there (see `replace`).

    `merged` makes another new content of what another program wrote meanwhile, None where both do not go together;
    without it such a file is `Outdated`. A new file takes owner, attributes and permissions of the one at `like`, if
    that is given; `mode` (permission bits) overrides, and `executable` changes them.
    """

    path: str
    data: bytes | None
    expected: str | None
    mode: int | None = None
    merged: Callable[[bytes], bytes | None] | None = None
    like: str = ""
    executable: bool | None = None


class BatchResult(Struct, frozen=True):
    """What a batch wrote: the steps as they were in the end, and the folders that were made, the innermost first."""

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
    """Write every step or none, and return the hash that each file has now, in order (empty: gone).

    Old contents are in `blobs`, and the journal (a path in our own data folder) is on disk, before the first byte
    is written. When all is written `written` is told what, and `record` is called before the journal goes: what it
    makes durable under `name` tells `heal` that the batch was finished. If either raises, all is taken back.
    `leaves` are folders that go too, where they are empty then. `waits` is told what the disk is waited for. Raises
    as `replace` does; FileError too where taking back failed: then the journal stays, for `heal`.
    """
    if journal.exists():
        raise FileError(
            "an earlier batch was not finished", "free some space or give permission, then try again"
        )
    waits("waiting for the disk to take a note of what will be written")
    batch = _Batch(gate, journal, blobs, name, steps, innermost_first(leaves))
    batch.begin()
    try:
        batch.write(waits)
        if written is not None:
            written(BatchResult(tuple(batch.steps), batch.plan.made))
        if record is None:
            remove_folders(gate, batch.plan.leaves)
            _forget(journal)
        else:
            record()
    except BaseException as error:
        _undo(gate, journal, blobs, batch.plan, error)
        raise
    if record is not None:
        remove_folders(gate, batch.plan.leaves)
        _forget_recorded(journal)
    return ["" if step.data is None else md5(step.data) for step in batch.steps]


def _forget(journal: Path) -> None:
    try:
        forget(journal)
    except OSError as error:
        raise file_error(error, journal, "removed") from error


def _forget_recorded(journal: Path) -> None:
    try:
        os.unlink(journal)  # a power cut may bring it back, to no effect: nobody waits for the disk
    except OSError:
        pass  # the record says that it is done: the next `heal` removes it


class StillWritten(Outdated):
    """Another program was faster at every try."""


class WrittenInPlace(Outdated):
    """Another program wrote into the old file while it was replaced, in lines that were changed."""


class _Batch:
    """A batch on its way: its steps, and the journal's entry of each."""

    def __init__(
        self,
        gate: Gate,
        journal: Path,
        blobs: Blobs,
        name: str,
        steps: Sequence[Step],
        leaves: tuple[str, ...],
    ) -> None:
        """Check every step before anything is touched, and keep what is there now."""
        self.gate, self.journal, self.blobs = gate, journal, blobs
        self.steps = list(steps)
        entries = tuple(self._entry(at) for at in range(len(steps)))
        self.plan = BatchJournal(name, entries, os.fsencode(gate.root), leaves)
        names = [without_case(entry.path) if gate.ignore_case else entry.path for entry in entries]
        for name, step in zip(names, steps, strict=True):
            if names.count(name) > 1:
                raise FileError(f"{shown(step.path)} is twice in one batch", "give each file one change")

    def begin(self) -> None:
        """Have the journal on disk, and what was there before."""
        try:
            begin(self.journal, self.plan, self.blobs)
        except BaseException as error:
            self.journal.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise file_error(error, self.journal, "written") from error
            raise

    def keep(self, sync: bool = True) -> None:
        """Put the journal in its place as it is now."""
        try:
            keep(self.journal, self.plan, sync=sync)
        except OSError as error:
            raise file_error(error, self.journal, "written") from error

    def write(self, waits: Callable[[str], None]) -> None:
        """Stage everything, so that a full disk shows before the first file changes; then contents, then removals.

        The disk is waited for once when all is staged, and once when all is in its place.
        """
        order = sorted(range(len(self.steps)), key=lambda at: self.steps[at].data is None)
        staged = [at for at in order if self.steps[at].data is not None]
        swept: set[str] = set()
        for at in staged:
            self._stage(at, sync=False, swept=swept)
        waits("waiting for the disk to take what the files will hold")
        several_at_once(self._sync_staged, staged)
        for at in order:
            self._land(at)
        folders = list({os.path.dirname(self.plan.entries[at].path): at for at in order}.values())
        waits("waiting for the disk to keep the files in their places")
        several_at_once(self._sync_folder, folders)

    def _entry(self, at: int, in_journal: bool = False) -> BatchEntry:
        """What the journal says of a step. What is there now is kept in the blobs, or with `in_journal` there, which
        is one write to wait for instead of two."""
        step = self.steps[at]
        with self.gate.find(step.path, "write") as spot:
            try:
                seen = self._seen(at, spot, step.expected)
                step = self.steps[at]
                staging.check_writable(spot)
                if step.data is None:
                    refuse_link(spot, "removed")
                there = staging.content(spot) if seen.md5 else None
                if (
                    there is not None
                    and (md5(there) if in_journal else self.blobs.put_soon(there)) != seen.md5
                ):
                    raise Outdated(f"{shown(step.path)} is being changed by somebody else", "try again")
            except OSError as error:
                raise file_error(error, step.path, "read") from error
            after = "" if step.data is None else md5(step.data)
            return entry_of(spot, seen.md5, after, there if in_journal else None)

    def _seen(self, at: int, spot: Spot, expected: str | None) -> FileFound:
        """What is at a spot; where it is not as expected, the step is made to fit it. Raises Outdated."""
        step = self.steps[at]
        try:
            return seen_as_expected(spot, expected)
        except Outdated:
            if step.merged is None or spot.status is None:
                raise
            descriptor = open_checked(spot)
            try:
                wait_for_writers(descriptor, LONGEST_SAVE)  # half a save is nothing to merge
            finally:
                os.close(descriptor)
            if not (found := staging.look(spot)).md5:
                raise
            there = staging.content(spot)
            data = step.merged(there)
            if data is None or md5(there) != found.md5:
                raise
        self.steps[at] = replace(step, data=data, expected=found.md5)
        return found

    def _stage(self, at: int, sync: bool = True, swept: set[str] | None = None) -> None:
        """Write the new content beside its place. A folder that is not among the `swept` ones is swept first."""
        entry, step = self.plan.entries[at], self.steps[at]
        try:
            with self.gate.find(entry.path, "write") as spot:
                spot.make_parents()
                folder = os.path.dirname(entry.path)
                if swept is not None and folder not in swept:
                    swept.add(folder)
                    staging.sweep(spot.folder)
                like = staging.look(spot).status
                with self.gate.find(step.like, "write") if step.like else nullcontext() as source:
                    staging.stage(
                        spot,
                        entry.temporary,
                        step.data or b"",
                        like,
                        step.mode,
                        sync=sync,
                        source=source,
                        executable=step.executable,
                    )
        except OSError as error:
            raise file_error(error, entry.path, "written") from error

    def _sync_staged(self, at: int) -> None:
        entry = self.plan.entries[at]
        try:
            with self.gate.find(entry.path, "write") as spot:
                staging.sync_staged(spot, entry.temporary)
        except OSError as error:
            raise file_error(error, entry.path, "written") from error

    def _sync_folder(self, at: int) -> None:
        entry = self.plan.entries[at]
        try:
            with self.gate.find(entry.path, "write") as spot:
                staging.sync_folder(spot.folder)
        except OSError as error:
            raise file_error(error, entry.path, "written") from error

    def _land(self, at: int) -> None:
        """Move a file to its place. One that another program was faster with is merged and tried again.

        A program that saves at a steady rate has just saved when the race is lost: behind its next save there is the
        whole time until the one after that. Waiting for the disk would use it up, so the disk is waited for when the
        file has landed: a kill finds everything it needs in any case.
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
                        f"{shown(path)} was written by another program at each of {attempt + 1} tries",
                        "wait until that is done, then try again",
                    ) from error
                _wait_for_change(self.gate.root / path)
                self._fit(at)
        if attempt:
            self._make_durable(at)

    def _land_once(self, at: int) -> None:
        entry = self.plan.entries[at]
        try:
            with self.gate.find(entry.path, "write") as spot, writing(spot.folder):
                if entry.before:
                    staging.keep_aside(spot, entry.aside)
                seen = seen_as_expected(spot, entry.before)
                old = open_checked(spot) if seen.md5 else None
                try:
                    if entry.after:
                        staging.land(spot, entry.temporary, seen, sync=False)
                    elif seen.md5:
                        staging.remove(spot, seen, sync=False)
                    if old is not None:
                        self._look_back(at, spot, old, seen)
                finally:
                    if old is not None:
                        os.close(old)
                staging.discard(spot.folder, entry.aside)
        except OSError as error:
            raise file_error(error, entry.path, "written") from error

    def _look_back(self, at: int, spot: Spot, old: int, seen: FileFound) -> None:
        """What an editor wrote into the old file, which it had open while that was replaced, is merged in.

        Raises WrittenInPlace where both do not go together: what the editor wrote is put back then.
        """
        wait_for_writers(old, LONGEST_SAVE)
        there = os.pread(old, os.fstat(old).st_size, 0)
        if md5(there) == seen.md5:
            return
        step, entry = self.steps[at], self.plan.entries[at]
        data = None if step.merged is None or step.data is None else step.merged(there)
        after = entry.after if data is None else md5(data)
        new = replace(entry, before=md5(there), after=after, content=there, landed=entry.after)
        self.plan = replace(self.plan, entries=(*self.plan.entries[:at], new, *self.plan.entries[at + 1 :]))
        self.keep(sync=False)
        if data is None:
            raise WrittenInPlace(
                f"{shown(entry.path)} was written by another program while it was replaced", "try again"
            )
        ours = staging.look(spot)
        staging.stage(spot, entry.temporary, data, ours.status, step.mode)
        staging.land(spot, entry.temporary, ours, sync=False)
        self.blobs.put_soon(there)
        self.steps[at] = replace(step, data=data, expected=md5(there))

    def _fit(self, at: int) -> None:
        """Merge a step with what is there by now; the journal knows of both contents before the next try."""
        old = self.plan.entries[at]
        new = replace(
            self._entry(at, in_journal=True),
            temporary=old.temporary,
            aside=old.aside,
            folders=old.folders,
        )
        with self.gate.find(old.path, "write") as spot:
            staging.discard(spot.folder, old.temporary)
        entries = (*self.plan.entries[:at], new, *self.plan.entries[at + 1 :])
        self.plan = replace(self.plan, entries=entries)
        self.keep(sync=False)
        self._stage(at, sync=False)

    def _make_durable(self, at: int) -> None:
        entry = self.plan.entries[at]
        try:
            with self.gate.find(entry.path, "write") as spot:
                staging.sync_file(spot)
        except OSError as error:
            raise file_error(error, entry.path, "written") from error
        if entry.content is not None:
            self.blobs.put(entry.content)
        self.keep()


def _wait_for_change(path: Path) -> None:
    before, deadline = stamp_of(path), time.monotonic() + NEXT_SAVE
    while stamp_of(path) == before and time.monotonic() < deadline:
        time.sleep(0.0005)


def _undo(gate: Gate, journal: Path, blobs: Blobs, plan: BatchJournal, cause: BaseException) -> None:
    try:
        take_back(gate, blobs, plan)
        forget(journal)
    except (TuiAgentError, OSError) as error:
        raise FileError(
            f"a batch failed ({cause}) and could not be taken back ({error})",
            "free some space or give permission, then try again: it is settled first",
        ) from cause


def heal(gate: Gate, journal: Path, blobs: Blobs, *, recorded: Collection[str] = ()) -> list[str]:
    """Settle what a crash left, and say what was done, a sentence each (none: there was nothing to settle).

    A batch whose name is among `recorded` was finished: only its traces go. Any other is taken back, except for
    files that somebody has changed since. Raises FileError where that fails; the journal stays then.
    """
    plan, damaged = _read(journal)
    if plan is None:
        return damaged
    try:
        if plan.name and plan.name in recorded:
            remove_folders(gate, plan.leaves)
            said = []
        else:
            said = take_back(gate, blobs, plan) or [_untouched(plan)]
        forget(journal)
    except OSError as error:
        raise file_error(error, journal, "settled") from error
    return said


def _untouched(plan: BatchJournal) -> str:
    names = ", ".join(shown(entry.path) for entry in plan.entries)
    return f"A batch was cut off before it changed a file: {names}."


def _read(journal: Path) -> tuple[BatchJournal | None, list[str]]:
    """The journal, or why there is none; one that is damaged never got as far as a first byte."""
    try:
        return BatchJournal.decode(journal.read_bytes()), []
    except FileNotFoundError:
        return None, []
    except OSError as error:
        raise file_error(error, journal, "read") from error
    except ValueError:
        aside = journal.with_name(f"{journal.name}.damaged")
        os.replace(journal, aside)
        return None, [f"The journal of an unfinished batch is damaged; it was kept as {aside}."]
