"""Repairs writes left incomplete by a killed process, when any session of the workspace opens."""

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
from tui_agent.files.operating_system import read_start, sentence
from tui_agent.log import directory
from tui_agent.log.directory import SessionLock
from tui_agent.log.log import events_of
from tui_agent.log.snapshot import read_state
from tui_agent.store.events import fold
from tui_agent.store.files import BuffersSlice
from tui_agent.store.state import ReviewSlice, State

#: A batch's journal and a save's note, in the session folder.
BATCH, SAVE = "batch.json", "save.json"


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
