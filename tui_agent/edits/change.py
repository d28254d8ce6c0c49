"""A change to one file that somebody proposed: what it starts from, what it makes, how far it has come."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode

ChangeKind = Literal["edit", "create", "delete", "rename"]
ChangeState = Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
HunkState = Literal["pending", "applied", "skipped"]

#: Stands for the path of a change that was refused and does not say which file it is about.
UNNAMED = "(a change that names no file)"

#: States in which a change still waits for the person.
OPEN_STATES: frozenset[ChangeState] = frozenset({"pending", "merged"})


class Comment(Struct, frozen=True):
    """What the person said about a change, or about one hunk of it (from 0; None is the whole)."""

    text: str
    hunk: int | None = None


class Change(Struct, frozen=True):
    """One file's change, from proposal to its end.

    `base` and `new` are content hashes (md5, hexadecimal) of texts in the blob store; `base` is empty for a
    file that did not exist, `new` is empty for one that goes. `hunks` holds a state for each hunk of the diff
    between the two, in order; the diff itself is computed from the texts. `state` is `merged` for a pending
    change that was rebased onto a newer file without a conflict. `rung` names the step of the ladder that
    found its places. `written` is the hash of what the last apply left on disk. `ask` says why nothing but the
    person's own pick may apply it, never "all" without a screen; it is empty for most. `by_hand` says that the
    person edited the new text; `comments` are the person's words about hunks, each told to the model once.
    `tasks` are the sub-tasks whose work it holds; `rival` is the change to the same file that it conflicts with.
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
    #: Checks that it did not pass in the tree of the sub-task that made it.
    checks: tuple[str, ...] = ()
    #: How often the model was asked again for it, because what it proposed before conflicted.
    asked: int = 0
    #: How many lines it drops of a long file, where that is why it is asked about; else 0.
    drops: int = 0
    #: Whether its file becomes executable, or ceases to be; None where that stays as it is.
    executable: bool | None = None

    @property
    def called(self) -> str:
        """How the model is told of it, at the beginning of a sentence."""
        if self.tasks:
            return f"The change of {', '.join(self.tasks)} to {self.path}"
        return f"Your change to {self.path}"

    @property
    def version(self) -> str:
        """Tells its two texts, and with them its hunks, from those that it had before or will have."""
        return f"{self.base}:{self.new}"

    @property
    def is_open(self) -> bool:
        """Whether the person has yet to decide about it, or about some of its hunks."""
        return self.state in OPEN_STATES

    @property
    def waits(self) -> bool:
        """Whether it could still be applied: it is open, or in a conflict that can be settled."""
        return self.is_open or self.state == "conflict"


class Hunk(Struct, frozen=True):
    """A run of lines that differ: lines `start` to `start + len(removed)` of the base give way to `added`.

    Lines keep their endings. `start` counts from 0.
    """

    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Diff(Struct, frozen=True):
    """A change as it can be shown: the base's lines, and the hunks that turn them into the new text."""

    path: str
    base: tuple[str, ...]
    hunks: tuple[Hunk, ...]


class Pick(Struct, frozen=True, omit_defaults=True):
    """What a decision is about: a change, or one hunk of it (`hunk` counts from 0; None is the whole).

    `seen` is the version of the change that the person saw: in another the hunk may have another number, or be gone.
    """

    change: str
    hunk: int | None = None
    seen: str = ""


class Checkpoint(Struct, frozen=True):
    """One apply that can be undone: for each path, the hash before and after (empty: no such file).

    `picks` are the decisions it carried out, so that undoing it opens them again; with `takes_back` it carried
    out the opposite: those hunks were applied before and were taken out again. `folders` were made for its files, by
    the apply or when it was last done again: they go, where they are empty, with the files.
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
    """One file of a checkpoint: its content hash before and after; an empty hash means that it is not there.

    `mode` are its permission bits before, `mode_after` those afterwards; None where there is no file, and where they
    are those that any new file has.
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
    """The text that is kept under a hash; None for the empty hash, which means that there is no file."""
    return decode(blobs.get(key)).text if key else None
