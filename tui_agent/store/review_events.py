"""Events of changes: proposed, decided about, written, taken back."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from tui_agent.edits.change import Change, Checkpoint, HunkState
from tui_agent.store.event import Lasting


class ChangeProposed(Lasting, frozen=True):
    """The model would change a file; an open change to the same path gives way to this one."""

    change: Change


class ChangeMoved(Lasting, frozen=True):
    """A change came to a new state. `reason` is for the person."""

    id: str
    state: Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
    hunks: tuple[HunkState, ...] = ()
    reason: str = ""
    written: str = ""


class ChangeReworked(Lasting, frozen=True):
    """A change that waits has other texts: edited by hand, settled where it conflicted, or given a comment."""

    change: Change


class CheckpointMade(Lasting, frozen=True):
    """Files were written, and this is how they were before and are now."""

    checkpoint: Checkpoint


class CheckpointCommitted(Lasting, frozen=True):
    """git keeps the work tree as it was after an apply, as a private commit."""

    id: str
    commit: str


class CheckpointUndone(Lasting, frozen=True):
    """A checkpoint was taken back, or (with `undone` false) done again. The hashes are those left on disk; `folders`
    were made for its files; `modes` are the permission bits that they had until then."""

    id: str
    undone: bool
    written: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    modes: dict[str, int] = field(default_factory=dict)
