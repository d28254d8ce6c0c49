"""Initial files of a sub-task: the folder with unsaved text, and the reviewed results of its dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tui_agent.context.known_files import MAX_BYTES
from tui_agent.edits.change import text_under
from tui_agent.edits.rebase import remaining
from tui_agent.errors import FileError, PathRefused
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, read, read_for_person
from tui_agent.files.text import decode, encode
from tui_agent.files.write_file import write_file
from tui_agent.store.graph import SubTask, needed_by
from tui_agent.store.state import State

#: Initial text by path; None for a missing file.
Texts = dict[str, str | None]


def why_blocked(state: State, task: SubTask) -> str:
    """The reason a task with completed dependencies cannot start (`a decision in a.py`), or ""."""
    wanted = _paths_before(state, task)
    for change in state.review.changes:
        if change.state == "conflict" and change.path in wanted:
            return f"a decision in {change.path}"
    return ""


def overlay(state: State, task: SubTask, blobs: Blobs) -> Texts:
    """Differences between the sub-task's copy and the disk. Blocking.

    Contains unsaved buffers and the undecided changes of its dependencies, without skipped hunks and with
    manual edits.
    """
    texts: Texts = {buffer.path: buffer.text for buffer in state.buffers.open if buffer.unsaved}
    wanted = _paths_before(state, task)
    for change in state.review.open:
        if change.path in wanted:
            text = remaining(change, partial(text_under, blobs))
            if change.rename_to:
                outcome = {change.path: None, change.rename_to: text}
            else:
                outcome = {change.path: text}
            texts |= outcome
    return texts


def write_texts(gate: Gate, texts: Mapping[str, str | None]) -> None:
    """Writes the texts to a copy, with each file's own encoding. Blocking. Raises `FileError` and
    `PathRefused`."""
    for path, text in texts.items():
        if text is None:
            write_file(gate, path, None, None)
            continue
        try:
            data = encode(decode(read_for_person(gate, path, MAX_BYTES), path), text)
        except FileError:
            data = text.encode("utf-8", "surrogatepass")
        write_file(gate, path, data, None)


def copy_exact_bytes(theirs: Gate, ours: Gate, paths: Sequence[str]) -> None:
    """Copies the exact bytes of files that git's line-ending conversion changed. Blocking."""
    for path in paths:
        try:
            data = read(ours, path, MAX_BYTES)
            if read_for_person(theirs, path, MAX_BYTES) != data:
                write_file(theirs, path, data, None)
        except (FileError, PathRefused):
            continue  # Missing, outside the workspace, or unreadable.


def _paths_before(state: State, task: SubTask) -> set[str]:
    before = needed_by(task, state.subtasks.tasks)
    return {step.path for other in before for step in other.changed}
