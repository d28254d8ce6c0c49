"""Proposed change to one file: base text, new text, state."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode

ChangeKind = Literal["edit", "create", "delete", "rename"]
ChangeState = Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
HunkState = Literal["pending", "applied", "skipped"]

#: Path of a refused change without a file name.
UNNAMED = "(a change that names no file)"

#: States in which a change awaits a decision.
OPEN_STATES: frozenset[ChangeState] = frozenset({"pending", "merged"})


class Comment(Struct, frozen=True):
    """User comment on a change, or on the hunk numbered from 0."""

    text: str
    hunk: int | None = None


class Change(Struct, frozen=True):
    """Change to one file.

    `base` and `new` are content hashes (md5, hexadecimal) of texts in the blob store, empty if the file
    does not exist before or after. `hunks` holds one state per hunk of the diff, which is computed from
    the texts. `state` is `merged` for a pending change that was rebased without a conflict. `rung` is the
    matching step that located the edit. `written` is the hash of the file after the last apply. A
    non-empty `ask` is the reason why only an explicit choice of the user applies the change, never "all"
    without a screen. `by_hand`: the user edited the new text. Each of the `comments` is sent to the model
    once. `tasks` are the contributing sub-tasks; `rival` is the conflicting change to the same file.
    """

    id: str
    turn: int
    path: str
    kind: ChangeKind
    state: ChangeState = "pending"
    base: str = ""
    new: str = ""
    rename_to: str = ""
    rung: str = ""
    hunks: tuple[HunkState, ...] = ()
    added: int = 0
    removed: int = 0
    reason: str = ""
    todo: str = ""
    written: str = ""
    ask: str = ""
    by_hand: bool = False
    comments: tuple[Comment, ...] = ()
    tasks: tuple[str, ...] = ()
    rival: str = ""
    #: Failed checks in the tree of the sub-task.
    checks: tuple[str, ...] = ()
    #: Number of repeated requests to the model after conflicts.
    asked: int = 0
    #: Number of dropped lines of a long file if that is the reason for `ask`.
    drops: int = 0
    #: New executable bit; `None` if unchanged.
    executable: bool | None = None

    @property
    def called(self) -> str:
        """Name of the change at the start of a sentence to the model."""
        if self.tasks:
            return f"The change of {', '.join(self.tasks)} to {self.path}"
        return f"Your change to {self.path}"

    @property
    def version(self) -> str:
        """Identifies the current pair of texts, and thus the hunks."""
        return f"{self.base}:{self.new}"

    @property
    def is_open(self) -> bool:
        """Whether the change or one of its hunks awaits a decision."""
        return self.state in OPEN_STATES

    @property
    def waits(self) -> bool:
        """Whether the change could still be applied: open, or in a solvable conflict."""
        return self.is_open or self.state == "conflict"


class Hunk(Struct, frozen=True):
    """Replacement of the base lines from `start` (counted from 0) by `added`. Lines keep their endings."""

    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Diff(Struct, frozen=True):
    """A change for display: base lines and hunks."""

    path: str
    base: tuple[str, ...]
    hunks: tuple[Hunk, ...]


class Pick(Struct, frozen=True, omit_defaults=True):
    """Target of a decision: a change, or one hunk of it, numbered from 0.

    `seen` is the version of the change on the screen; in other versions the hunk may have another number
    or none.
    """

    change: str
    hunk: int | None = None
    seen: str = ""


class Checkpoint(Struct, frozen=True):
    """One undoable apply: for each path the hashes before and after, empty for no file.

    Undo reopens the decisions in `picks`. With `takes_back` the checkpoint removed applied hunks instead.
    `folders` were created by the last apply or redo; undo removes them if they are empty.
    """

    id: str
    turn: int
    files: tuple[FileStep, ...]
    picks: tuple[Pick, ...]
    commit: str = ""
    undone: bool = False
    takes_back: bool = False
    folders: tuple[str, ...] = ()


class FileStep(Struct, frozen=True):
    """One file of a checkpoint: hashes before and after, empty for no file.

    `mode` and `mode_after` are permission bits; `None` for no file or default permissions.
    """

    path: str
    before: str
    after: str
    mode: int | None = None
    mode_after: int | None = None

    @property
    def reversed(self) -> FileStep:
        return FileStep(self.path, self.after, self.before, self.mode_after, self.mode)


def text_under(blobs: Blobs, key: str) -> str | None:
    """Returns the text with this hash, or `None` for the empty hash."""
    return decode(blobs.get(key)).text if key else None
