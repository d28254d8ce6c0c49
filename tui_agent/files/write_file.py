"""Atomic, durable replacement of one file, if its content is as expected.

`batch.write_batch` has the same steps for several: `check_expected`, `staging.stage`,
`staging.rename_into_place`.
"""

from __future__ import annotations

import stat
from pathlib import Path

from tui_agent.errors import Outdated, PathRefused
from tui_agent.files import staging
from tui_agent.files.gate import Gate, PathHandle
from tui_agent.files.journal import entry_of, noted
from tui_agent.files.names import display_path
from tui_agent.files.operating_system import as_file_error, writing
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
