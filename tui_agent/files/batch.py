"""Several files written all or nothing (E5): a journal before the first byte, taken back where it breaks off."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import FileError, Outdated, TuiAgentError
from tui_agent.files import staging
from tui_agent.files.blobs import Blobs
from tui_agent.files.failures import file_error
from tui_agent.files.gate import Gate
from tui_agent.files.journal import Entry, Journal, forget, keep, take_back
from tui_agent.files.locks import writing
from tui_agent.files.names import shown, without_case
from tui_agent.files.replace import refuse_link, seen_as_expected
from tui_agent.files.text import md5


class Step(Struct, frozen=True):
    """One file of a batch: its new content (None: it goes) and the hash that must be there (see `replace`)."""

    path: str
    data: bytes | None
    expected: str | None
    mode: int | None = None


def write_batch(
    gate: Gate,
    journal: Path,
    blobs: Blobs,
    steps: Sequence[Step],
    *,
    name: str = "",
    record: Callable[[], None] | None = None,
) -> list[str]:
    """Write every step or none, and return the hash that each file has now, in order (empty: gone).

    Old contents are in `blobs`, and the journal (a path in our own data folder) is on disk, before the first byte
    is written. `record` is called when all is written and before the journal goes: what it makes durable under
    `name` tells `heal` that the batch was finished. If it raises, all is taken back. Raises as `replace` does;
    FileError too where taking back failed: then the journal stays, for `heal`.
    """
    if journal.exists():
        raise FileError("an earlier batch was not finished", "make room or give permission, then try again")
    plan = Journal(name=name, entries=_planned(gate, blobs, steps))
    try:
        keep(journal, plan)
    except OSError as error:
        raise file_error(error, journal, "written") from error
    try:
        _write(gate, plan, steps)
        if record is None:
            _forget(journal)
        else:
            record()
    except BaseException as error:
        _undo(gate, journal, blobs, plan, error)
        raise
    if record is not None:
        _forget_recorded(journal)
    return ["" if step.data is None else md5(step.data) for step in steps]


def _forget(journal: Path) -> None:
    try:
        forget(journal)
    except OSError as error:
        raise file_error(error, journal, "removed") from error


def _forget_recorded(journal: Path) -> None:
    try:
        forget(journal)
    except OSError:
        pass  # the record says that it is done: the next `heal` removes it


def _planned(gate: Gate, blobs: Blobs, steps: Sequence[Step]) -> tuple[Entry, ...]:
    """Check every step before anything is touched, and keep what is there now."""
    entries: dict[str, Entry] = {}
    for step in steps:
        entry = _entry(gate, blobs, step)
        name = without_case(entry.path) if gate.ignore_case else entry.path
        if name in entries:
            raise FileError(f"{shown(step.path)} stands twice in one batch", "give each file one change")
        entries[name] = entry
    return tuple(entries.values())


def _entry(gate: Gate, blobs: Blobs, step: Step) -> Entry:
    with gate.find(step.path, "write") as spot:
        try:
            seen = seen_as_expected(spot, step.expected)
            staging.check_writable(spot)
            if step.data is None:
                refuse_link(spot, "removed")
            if seen.md5 and blobs.put(staging.content(spot)) != seen.md5:
                raise Outdated(f"{shown(step.path)} is being changed by somebody else", "try again")
        except OSError as error:
            raise file_error(error, step.path, "read") from error
        return Entry(
            raw=os.fsencode(spot.real),
            before=seen.md5,
            after="" if step.data is None else md5(step.data),
            temporary=staging.temporary_name(),
            mode=None if seen.status is None else seen.status.st_mode & 0o7777,
            folders=tuple("/".join(spot.parts[:-up]) for up in range(1, len(spot.missing))),
        )


def _write(gate: Gate, plan: Journal, steps: Sequence[Step]) -> None:
    """Stage everything, so that a full disk shows before the first file changes; then contents, then removals."""
    pairs = list(zip(plan.entries, steps, strict=True))
    for entry, step in pairs:
        if step.data is not None:
            _stage(gate, entry, step.data, step.mode)
    for entry, _ in sorted(pairs, key=lambda pair: not pair[0].after):
        _land(gate, entry)


def _stage(gate: Gate, entry: Entry, data: bytes, mode: int | None) -> None:
    try:
        with gate.find(entry.path, "write") as spot:
            spot.make_parents()
            seen = seen_as_expected(spot, entry.before)
            staging.stage(spot, entry.temporary, data, seen.status, mode)
    except OSError as error:
        raise file_error(error, entry.path, "written") from error


def _land(gate: Gate, entry: Entry) -> None:
    try:
        with gate.find(entry.path, "write") as spot, writing(spot.folder):
            seen = seen_as_expected(spot, entry.before)
            if entry.after:
                staging.land(spot, entry.temporary, seen)
            elif seen.md5:
                staging.remove(spot, seen)
    except OSError as error:
        raise file_error(error, entry.path, "written") from error


def _undo(gate: Gate, journal: Path, blobs: Blobs, plan: Journal, cause: BaseException) -> None:
    try:
        take_back(gate, blobs, plan)
        forget(journal)
    except (TuiAgentError, OSError) as error:
        raise FileError(
            f"a batch failed ({cause}) and could not be taken back ({error})",
            "make room or give permission, then try again: it is settled first",
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
            said = []
        else:
            said = take_back(gate, blobs, plan)
        forget(journal)
    except OSError as error:
        raise file_error(error, journal, "settled") from error
    return said


def _read(journal: Path) -> tuple[Journal | None, list[str]]:
    """The journal, or why there is none; one that is damaged never got as far as a first byte."""
    try:
        return Journal.decode(journal.read_bytes()), []
    except FileNotFoundError:
        return None, []
    except OSError as error:
        raise file_error(error, journal, "read") from error
    except ValueError:
        aside = journal.with_name(f"{journal.name}.damaged")
        os.replace(journal, aside)
        return None, [f"The journal of an unfinished batch is damaged; it was kept as {aside}."]
