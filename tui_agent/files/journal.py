"""Journal of a batch: the planned changes, kept until completion, and the rollback."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import PathRefused
from tui_agent.files import staging
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, PathHandle
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import file_error, read_start, several_at_once, writing
from tui_agent.files.private import sync_folder, sync_new, write_private


class BatchEntry(Struct, frozen=True):
    """One file of a batch. `raw` are its path's bytes, `before` and `after` its hashes (empty: missing).

    New content is staged under `temporary`; `mode` are the previous permission bits; `folders` are folders
    created for it, innermost first.
    """

    raw: bytes
    before: str
    after: str
    temporary: str
    mode: int | None = None
    folders: tuple[str, ...] = ()
    #: Previous content, unless in the blobs.
    content: bytes | None = None
    #: Second name of the old file during its replacement: an editor may still write to it.
    aside: str = ""
    #: Hash of the batch's own content until `after`, with an editor's concurrent write, is in place.
    landed: str = ""

    @property
    def path(self) -> str:
        return os.fsdecode(self.raw)


class BatchJournal(Struct, frozen=True):
    """`name` identifies it in the log; `leaves` are folders to remove if empty, innermost first."""

    name: str
    entries: tuple[BatchEntry, ...]
    root: bytes = b""
    leaves: tuple[str, ...] = ()

    @property
    def made(self) -> tuple[str, ...]:
        folders = dict.fromkeys(folder for entry in self.entries for folder in entry.folders)
        return innermost_first(folders)

    @staticmethod
    def decode(data: bytes) -> BatchJournal:
        """Raises ValueError, also as a subclass of msgspec."""
        return msgspec.json.decode(data, type=BatchJournal)


def innermost_first(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(folders, key=lambda folder: -folder.count("/")))


def entry_of(spot: PathHandle, before: str, after: str, content: bytes | None = None) -> BatchEntry:
    return BatchEntry(
        raw=os.fsencode(spot.real),
        before=before,
        after=after,
        temporary=staging.temporary_name(),
        mode=None if spot.status is None else spot.status.st_mode & 0o7777,
        folders=tuple("/".join(spot.parts[:-up]) for up in range(1, len(spot.missing))),
        content=content,
        aside=staging.temporary_name(),
    )


def keep(path: Path, journal: BatchJournal, *, sync: bool = True) -> None:
    """Raises OSError."""
    write_private(path, msgspec.json.encode(journal), sync=sync)


def begin(path: Path, journal: BatchJournal, blobs: Blobs) -> None:
    """Raises OSError or FileError."""
    keep(path, journal, sync=False)
    several_at_once(lambda durable: durable(), [blobs.sync, lambda: sync_new(path)])


@contextmanager
def noted(path: Path | None, gate: Gate, entry: BatchEntry) -> Generator[None]:
    """Stores the temporary file's name in `path` during a replacement, for `clear` after a kill. Ignores
    errors.
    """
    if path is None:
        yield
        return
    note = BatchJournal("", (entry,), os.fsencode(gate.root))
    with suppress(OSError):
        keep(path, note, sync=False)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def forget(path: Path) -> None:
    """Raises OSError if it remains."""
    os.unlink(path)
    try:
        sync_folder(path.parent)
    except OSError:
        pass  # If a power failure restores it, hashes decide.


def clear(gate: Gate, path: Path, among: Iterable[str] = ()) -> list[str]:
    """Removes the temporary file and the new folders of an interrupted replacement; returns a sentence for
    each. If a power failure erased the note, searches next to the files in `among`. Raises OSError.
    """
    try:
        note = BatchJournal.decode(read_start(path))
    except ValueError:
        note = BatchJournal("", ())
        for one in among:
            with suppress(PathRefused, OSError), gate.find(one, "write") as spot:
                staging.sweep(spot.folder)
    said = []
    for entry in note.entries:
        with suppress(PathRefused), gate.find(entry.path, "write") as spot:
            if len(spot.missing) <= 1 and staging.discard(spot.folder, entry.temporary):
                said.append(
                    f"A save of {display_path(entry.path)} was interrupted: its temporary file was removed."
                )
    remove_folders(gate, note.made)
    forget(path)
    return said


def roll_back(gate: Gate, blobs: Blobs, journal: BatchJournal) -> list[str]:
    """Restores every file still in the batch's state, last first, and returns a report. Can be interrupted
    and repeated. Raises FileError.
    """
    for entry in journal.entries:  # Temporary files may fill the disk.
        with suppress(PathRefused, OSError), gate.find(entry.path, "write") as spot:
            if len(spot.missing) <= 1:
                staging.discard(spot.folder, entry.temporary)
    said = []
    for entry in reversed(journal.entries):
        try:
            with gate.find(entry.path, "write") as spot:
                if len(spot.missing) > 1:
                    continue
                with writing(spot.folder):
                    sentence = _restore(spot, blobs, entry)
        except PathRefused as error:
            sentence = f"{display_path(entry.path)} could not be restored: {error}"
        except OSError as error:
            raise file_error(error, entry.path, "put back") from error
        if sentence:
            said.append(sentence)
    remove_folders(gate, journal.made)
    return said


def _restore(spot: PathHandle, blobs: Blobs, entry: BatchEntry) -> str:
    name = display_path(entry.path)
    staging.discard(spot.folder, entry.temporary)
    seen = staging.read_state(spot)
    ours = seen.md5 in (entry.after, entry.landed or entry.after)
    if seen.md5 == entry.before or not ours:
        staging.discard(spot.folder, entry.aside)
        changed = f"{name} was changed by another program during an unfinished batch; it was not restored."
        return "" if seen.md5 == entry.before else changed
    if not entry.before:
        staging.remove(spot, seen)
        return f"{name} was removed: the batch that created it was not finished."
    if not staging.restore_aside(spot, entry.aside, seen):
        data = blobs.get(entry.before) if entry.content is None else entry.content
        staging.stage(spot, entry.temporary, data, seen.status, entry.mode)
        staging.rename_into_place(spot, entry.temporary, seen)
    return f"{name} was restored: the batch that changed it was not finished."


def remove_folders(gate: Gate, folders: Iterable[str]) -> None:
    for folder in folders:
        try:
            with gate.find(folder, "list") as spot:
                if spot.status is not None:
                    os.rmdir(spot.name, dir_fd=spot.folder)
        except (PathRefused, OSError):
            continue
