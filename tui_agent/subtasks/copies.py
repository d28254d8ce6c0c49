"""Folders of work copies, their initial files, and copies left by a crash."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

from tui_agent.context.known_files import MAX_BYTES
from tui_agent.edits.change import text_under
from tui_agent.edits.merge import remaining
from tui_agent.errors import ChildFailed, FileError, PathRefused, SessionError
from tui_agent.files.batch import write_file
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, read, read_for_person
from tui_agent.files.names import plain
from tui_agent.files.text import decode, encode
from tui_agent.log import directory
from tui_agent.log.directory import SessionLock
from tui_agent.processes.child import ChildProcess
from tui_agent.store.graph import SubTask, needed_by
from tui_agent.store.state import State

FOLDER = "worktrees"


def folder_for(data: Path, session: str, name: str) -> Path:
    """The lock of `session` protects the copy. Raises `SessionError` for an invalid id."""
    return data / FOLDER / directory.folder_of(data, session).name / plain(name)


def folder_of_run(data: Path, kept: Path, name: str) -> Path:
    """A sub-task has no lock, so its copies belong to the enclosing session."""
    sessions = data / "sessions"
    way = kept.relative_to(sessions).parts if kept.is_relative_to(sessions) else (kept.name,)
    return folder_for(data, way[0], "/".join((*way[1:], name)))


async def clear(data: Path, session: str, child: ChildProcess) -> None:
    folder = data / FOLDER / session
    if session and await asyncio.to_thread(folder.is_dir):
        await _remove(folder, child)


async def clear_leftovers(data: Path, child: ChildProcess) -> None:
    """Removes copies of sessions that no process has open, with their git registrations. The next start
    retries.
    """
    for folder in await asyncio.to_thread(_folders, data):
        lock = await asyncio.to_thread(_lock_of, data, folder.name)
        if lock is not None:
            with lock:
                await _remove(folder, child)


async def _remove(folder: Path, child: ChildProcess) -> None:
    with suppress(ChildFailed, FileError):
        await child.ask("git_worktrees_remove", {"folder": str(folder)})


def _folders(data: Path) -> list[Path]:
    try:
        with os.scandir(data / FOLDER) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _lock_of(data: Path, session: str) -> AbstractContextManager[object] | None:
    try:
        folder = directory.folder_of(data, session)
        return SessionLock.take(folder) if folder.is_dir() else nullcontext()
    except SessionError:
        return None


#: By path; None for a missing file.
Texts = dict[str, str | None]


def why_blocked(state: State, task: SubTask) -> str:
    wanted = _paths_before(state, task)
    for change in state.review.changes if wanted else ():
        if change.state == "conflict" and change.path in wanted:
            return f"a decision in {change.path}"
    return ""


def overlay(state: State, task: SubTask, blobs: Blobs) -> Texts:
    """Returns unsaved buffers, and undecided changes of dependencies as the user edited them. Blocking."""
    texts: Texts = {buffer.path: buffer.text for buffer in state.buffers.open if buffer.unsaved}
    wanted = _paths_before(state, task)
    for change in state.review.open:
        if change.path in wanted:
            text = remaining(change, partial(text_under, blobs))
            texts |= {change.path: None, change.rename_to: text} if change.rename_to else {change.path: text}
    return texts


def write_texts(gate: Gate, texts: Mapping[str, str | None]) -> None:
    """Blocking. Raises `FileError` and `PathRefused`."""
    for path, data in encoded(gate, texts).items():
        write_file(gate, path, data, None)


def encoded(gate: Gate, texts: Mapping[str, str | None]) -> dict[str, bytes | None]:
    """Blocking. Raises `PathRefused`."""
    found: dict[str, bytes | None] = {}
    for path, text in texts.items():
        found[path] = None
        if text is None:
            continue
        try:
            found[path] = encode(decode(read_for_person(gate, path, MAX_BYTES), path), text)
        except FileError:
            found[path] = text.encode("utf-8", "surrogatepass")
    return found


def copy_exact_bytes(theirs: Gate, ours: Gate, paths: Sequence[str]) -> None:
    """Copies files that git's line-ending conversion changed. Blocking."""
    for path in paths:
        try:
            data = read(ours, path, MAX_BYTES)
            if read_for_person(theirs, path, MAX_BYTES) != data:
                write_file(theirs, path, data, None)
        except (FileError, PathRefused):
            continue


def _paths_before(state: State, task: SubTask) -> set[str]:
    before = needed_by(task, state.subtasks.tasks)
    return {step.path for other in before for step in other.changed}
