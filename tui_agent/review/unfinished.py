"""What a killed process left half done in a workspace: settled at the next start there, whichever session opens."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tui_agent.edits.change import Checkpoint
from tui_agent.errors import Damaged, SessionError, TuiAgentError
from tui_agent.files.batch import heal
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate
from tui_agent.files.journal import BatchJournal, clear
from tui_agent.files.systems import sentence
from tui_agent.log import directory
from tui_agent.log.lock import SessionLock
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import read_state
from tui_agent.store.files import BuffersSlice
from tui_agent.store.state import ReviewSlice, State
from tui_agent.store.store import fold

#: The journal of a batch, and the note of a save that is on its way, in the folder of their session.
BATCH, SAVE = "batch.json", "save.json"


def recorded_names(review: ReviewSlice) -> list[str]:
    """The names of all batches that were finished: each apply, and the last move of each."""
    moves = [batch_name(point, point.undone) for point in review.checkpoints]
    return [*(point.id for point in review.checkpoints), *moves]


def batch_name(point: Checkpoint, undone: bool) -> str:
    """What the batch is called that undoes an apply, or does it again."""
    return f"{point.id}-{'undone' if undone else 'redone'}"


def settle_others(data: Path, root: Path, own: Path) -> list[str]:
    """Settle what other sessions left in the workspace `root`, and say what was done, a sentence each. Blocking.

    A session that is open somewhere is left alone: what it does there is not half done, it is on its way.
    """
    said: list[str] = []
    for folder in directory.folders(data):
        if folder == own or not any((folder / name).exists() for name in (BATCH, SAVE)):
            continue
        try:
            with SessionLock.take(folder):
                done = _settle(folder, data, root)
                said += [f"{line.rstrip('.')} (session {folder.name})" for line in done]
        except SessionError:
            continue  # it runs
    return said


def clear_save(gate: Gate, folder: Path, buffers: BuffersSlice) -> list[str]:
    """Remove the temporary file of a save that was cut off, of one of the open files; a sentence if there was one.
    Blocking."""
    among = [buffer.path for buffer in buffers.open]
    try:
        return clear(gate, folder / SAVE, among) if (folder / SAVE).exists() else []
    except OSError as error:
        return [f"What a save left behind could not be removed, {sentence(error)[0]}"]


def _settle(folder: Path, data: Path, root: Path) -> list[str]:
    said: list[str] = []
    for name in (SAVE, BATCH):
        place = _root_of(folder, name)
        if place is None or not _overlap(place, root):
            continue
        gate = Gate(place)
        try:
            if name == SAVE:
                said += clear_save(gate, folder, _state(folder / directory.LOG).buffers)
            else:
                names = recorded_names(_state(folder / directory.LOG).review)
                said += heal(gate, folder / name, Blobs(data / "blobs"), recorded=names)
        except (TuiAgentError, sqlite3.Error) as error:
            said.append(f"An unfinished batch could not be settled: {error}")
    return said


def _state(log: Path) -> State:
    """What was recorded of changes and open files; of a damaged log what its pages still hold."""
    try:
        return read_state(log).state
    except Damaged:
        return fold(events_of(log))


def _root_of(folder: Path, name: str) -> Path | None:
    """The workspace that a journal is about; None where there is no journal, or its workspace is gone."""
    try:
        journal = BatchJournal.decode((folder / name).read_bytes())
    except OSError:
        return None
    except ValueError:
        journal = BatchJournal("", ())
    entry = None if journal.root else directory.read_entry(folder)
    root = Path(os.fsdecode(journal.root)) if journal.root else Path(entry.workspace) if entry else None
    return root if root is not None and root.is_absolute() and root.is_dir() else None


def _overlap(one: Path, other: Path) -> bool:
    """Whether they are one folder, or one lies in the other."""
    one, other = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    return one.is_relative_to(other) or other.is_relative_to(one)
