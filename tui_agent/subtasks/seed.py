"""What a sub-task starts from: the folder as it is, unsaved text included, and what it builds on as reviewed so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tui_agent.context.known import MAX_BYTES
from tui_agent.edits.change import Change, text_under
from tui_agent.edits.rebase import remaining
from tui_agent.errors import FileError, PathRefused
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate, read, read_for_person
from tui_agent.files.replace import replace
from tui_agent.files.text import decode, encode
from tui_agent.store.graph import SubTask, needed_by
from tui_agent.store.state import State

#: The text that each file begins with, None for one that is not there.
Texts = dict[str, str | None]


def why_blocked(state: State, task: SubTask) -> str:
    """What a sub-task waits for although all before it is done (`a decision in a.py`); empty where it can begin."""
    wanted = _paths_before(state, task)
    for change in state.review.changes:
        if change.state == "conflict" and change.path in wanted:
            return f"a decision in {change.path}"
    return ""


def overlay(state: State, task: SubTask, blobs: Blobs) -> Texts:
    """What the files are to be in the sub-task's copy where that is not as on disk. Blocking.

    Unsaved buffers, and what the tasks before it changed and nobody has decided about: without the hunks that the
    person skipped, and as edited by hand. What was applied is on disk.
    """
    texts: Texts = {buffer.path: buffer.text for buffer in state.buffers.open if buffer.unsaved}
    wanted = _paths_before(state, task)
    for change in state.review.open:
        if change.path in wanted:
            texts |= _outcome(change, blobs)
    return texts


def lay_over(gate: Gate, texts: Mapping[str, str | None]) -> None:
    """Write the texts into a copy, each stored as its file is there. Blocking. Raises `FileError`, `PathRefused`."""
    for path, text in texts.items():
        if text is None:
            replace(gate, path, None, None)
            continue
        try:
            data = encode(decode(read_for_person(gate, path, MAX_BYTES), path), text)
        except FileError:
            data = text.encode("utf-8", "surrogatepass")
        replace(gate, path, data, None)


def take_bytes(theirs: Gate, ours: Gate, paths: Sequence[str]) -> None:
    """Give the copy these files to the byte, where git's rules for line endings made them other ones. Blocking."""
    for path in paths:
        try:
            data = read(ours, path, MAX_BYTES)
            if read_for_person(theirs, path, MAX_BYTES) != data:
                replace(theirs, path, data, None)
        except (FileError, PathRefused):
            continue  # not there yet, outside, or nothing that a model could read


def _outcome(change: Change, blobs: Blobs) -> Texts:
    text = remaining(change, partial(text_under, blobs))
    if change.rename_to:
        return {change.path: None, change.rename_to: text}
    return {change.path: text}


def _paths_before(state: State, task: SubTask) -> set[str]:
    before = needed_by(task, state.subtasks.tasks)
    return {step.path for other in before for step in other.changed}
