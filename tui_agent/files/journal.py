"""The journal of a batch: what it will do to which files, kept until it is done, and how to take it back."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from tui_agent.errors import PathRefused
from tui_agent.files import staging
from tui_agent.files.blobs import Blobs, sync_path, write_durably
from tui_agent.files.failures import file_error
from tui_agent.files.gate import Gate
from tui_agent.files.locks import writing
from tui_agent.files.names import shown
from tui_agent.files.walk import Spot


class Entry(Struct, frozen=True):
    """One file of a batch. `raw` are the bytes of its path, `before` and `after` its hashes (empty: not there).

    New content is staged under `temporary`; `mode` are the permission bits before; `folders` are those that were
    made for it, the innermost first.
    """

    raw: bytes
    before: str
    after: str
    temporary: str
    mode: int | None = None
    folders: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return os.fsdecode(self.raw)


class Journal(Struct, frozen=True):
    """A batch on its way. `name` is what the log calls it once it is done."""

    name: str
    entries: tuple[Entry, ...]

    @staticmethod
    def decode(data: bytes) -> Journal:
        """Raises ValueError (msgspec's are such) for anything but a whole journal."""
        return msgspec.json.decode(data, type=Journal)


def keep(path: Path, journal: Journal) -> None:
    """Put the journal on disk. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(path, msgspec.json.encode(journal))


def forget(path: Path) -> None:
    """The batch is settled. Raises OSError while the journal is there."""
    os.unlink(path)
    try:
        sync_path(path.parent)
    except OSError:
        pass  # only a power cut could bring it back now, and then hashes decide


def take_back(gate: Gate, blobs: Blobs, journal: Journal) -> list[str]:
    """Put every file back that still is as the batch left it, the last first; say what was done.

    Can be broken off and begun again at any point. Raises FileError where a file cannot be put back.
    """
    said = []
    for entry in reversed(journal.entries):
        sentence = _take_back(gate, blobs, entry)
        if sentence:
            said.append(sentence)
    for entry in journal.entries:
        for folder in entry.folders:
            _remove_folder(gate, folder)
    return said


def _take_back(gate: Gate, blobs: Blobs, entry: Entry) -> str:
    name = shown(entry.path)
    try:
        with gate.find(entry.path, "write") as spot:
            if len(spot.missing) > 1:  # not even its folder was made
                return ""
            with writing(spot.folder):
                return _restore(spot, blobs, entry)
    except PathRefused as error:
        return f"{name} could not be put back: {error}"
    except OSError as error:
        raise file_error(error, entry.path, "put back") from error


def _restore(spot: Spot, blobs: Blobs, entry: Entry) -> str:
    name = shown(entry.path)
    staging.discard(spot.folder, entry.temporary)
    seen = staging.look(spot)
    if seen.md5 == entry.before:
        return ""
    if seen.md5 != entry.after:
        return f"{name} was changed by somebody else during an unfinished batch; it stays as it is."
    if not entry.before:
        staging.remove(spot, seen)
        return f"{name} was taken away again: the batch that made it was not finished."
    data = blobs.get(entry.before)
    staging.stage(spot, entry.temporary, data, seen.status, entry.mode)
    staging.land(spot, entry.temporary, seen)
    return f"{name} has its earlier content again: the batch that changed it was not finished."


def _remove_folder(gate: Gate, path: str) -> None:
    """Remove a folder that the batch made, if nobody put anything into it."""
    try:
        with gate.find(path, "list") as spot:
            if spot.status is not None:
                os.rmdir(spot.name, dir_fd=spot.folder)
    except (PathRefused, OSError):
        pass  # it is in use, or was never made
