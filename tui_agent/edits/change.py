"""A proposed change to one file: base text, new text, state, and individually applicable hunks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from tui_agent.edits.lines import changes, split
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode

ChangeKind = Literal["edit", "create", "delete", "rename"]
ChangeState = Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
HunkState = Literal["pending", "applied", "skipped"]

UNNAMED = "(no file)"
#: Lines around the hunks of a patch.
_CONTEXT = 3
#: How the place of an edit was found, by `rung`; nothing is to be said of an exact match.
PLACED = {
    "line-endings": "placed despite other line endings",
    "trailing-space": "placed despite other spaces at line ends",
    "line-numbers": "placed despite line numbers in the edit",
    "indentation": "placed despite another indentation",
    "look-alikes": "placed despite look-alike characters",
    "anchored": "placed by the lines around it",
    "near": "placed by similarity",
}

OPEN_STATES: frozenset[ChangeState] = frozenset({"pending", "merged"})


class Comment(Struct, frozen=True):
    """`hunk` is the number of a hunk, from 0; None for the whole change."""

    text: str
    hunk: int | None = None


class Change(Struct, frozen=True):
    """`base` and `new` are hashes of texts in the blob store, empty without a file. `hunks` holds a state
    for each hunk. `rung` is the matching step that located the edit. `written` is the file's hash after
    the last apply. `ask` is the reason why only an explicit choice of the user applies it. `by_hand`: the
    user edited the new text. Each of the `comments` is sent once. `tasks` are the contributing sub-tasks;
    `rival` is a conflicting change of the file.
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
    checks: tuple[str, ...] = ()
    asked: int = 0
    #: Dropped lines of a long file, if that is the reason for `ask`.
    drops: int = 0
    #: New executable bit; `None`: unchanged.
    executable: bool | None = None

    @property
    def called(self) -> str:
        """Begins a sentence to the model."""
        if self.tasks:
            return f"The change of {', '.join(self.tasks)} to {self.path}"
        return f"Your change to {self.path}"

    @property
    def version(self) -> str:
        """Identifies the pair of texts, and thus the hunks."""
        return f"{self.base}:{self.new}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def waits(self) -> bool:
        return self.is_open or self.state == "conflict"


class Hunk(Struct, frozen=True):
    """Replaces base lines from `start` (counted from 0). Lines have their endings."""

    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Diff(Struct, frozen=True):
    path: str
    base: tuple[str, ...]
    hunks: tuple[Hunk, ...]


class Pick(Struct, frozen=True, omit_defaults=True):
    """A change, or a hunk. `seen` is the version on the screen; in others the hunk may have another number."""

    change: str
    hunk: int | None = None
    seen: str = ""


class Checkpoint(Struct, frozen=True):
    """An undoable apply of `picks`. `takes_back`: it removed applied hunks.
    `folders` were created by the last apply or redo.
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
    """Hashes before and after, empty without a file. `mode` and `mode_after` are permission bits."""

    path: str
    before: str
    after: str
    mode: int | None = None
    mode_after: int | None = None

    @property
    def reversed(self) -> FileStep:
        return FileStep(self.path, self.after, self.before, self.mode_after, self.mode)


def text_under(blobs: Blobs, key: str) -> str | None:
    return decode(blobs.get(key)).text if key else None


def texts_under(blobs: Blobs, before: str, after: str) -> tuple[str | None, str | None]:
    return text_under(blobs, before), text_under(blobs, after)


def hunks_under(blobs: Blobs, before: str, after: str) -> tuple[Hunk, ...]:
    base, new = texts_under(blobs, before, after)
    return hunks(base or "", new or "")


def proposing_tasks(change: Change, changes: Sequence[Change]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rival = next((other for other in changes if other.id == change.rival), None)
    return change.tasks, rival.tasks if rival is not None else ()


def hunks(base: str, new: str) -> tuple[Hunk, ...]:
    """At least one equal line separates them."""
    return _hunks(split(base), split(new))


def _hunks(old: list[str], new: list[str]) -> tuple[Hunk, ...]:
    return tuple(
        Hunk(start, tuple(old[start:end]), tuple(new[at:to])) for start, end, at, to in changes(old, new)
    )


def same_hunk(hunk: Hunk, others: Sequence[Hunk]) -> int | None:
    """Returns the number of the only other hunk with the same lines."""
    does = (hunk.removed, hunk.added)
    found = [number for number, other in enumerate(others) if (other.removed, other.added) == does]
    return found[0] if len(found) == 1 else None


def compose(base: str, parts: Sequence[Hunk], chosen: Collection[int]) -> str:
    lines = split(base)
    result: list[str] = []
    at = 0
    for number, hunk in enumerate(parts):
        result.extend(lines[at : hunk.start])
        at = hunk.start + len(hunk.removed)
        result.extend(hunk.added if number in chosen else hunk.removed)
    result.extend(lines[at:])
    return "".join(result)


def diff_of(path: str, base: str, new: str) -> Diff:
    old = split(base)
    return Diff(path, tuple(old), _hunks(old, split(new)))


def counts(parts: Sequence[Hunk]) -> tuple[int, int]:
    return sum(len(hunk.added) for hunk in parts), sum(len(hunk.removed) for hunk in parts)


def unified(diff: Diff) -> str:
    """Returns a patch for `git apply`; empty without hunks."""
    if not diff.hunks:
        return ""
    old = f"a/{diff.path}" if diff.base else "/dev/null"
    parts = [f"--- {old}\n+++ b/{diff.path}\n"]
    moved = 0
    groups = [[diff.hunks[0]]]
    for hunk in diff.hunks[1:]:
        if hunk.start - _end(groups[-1][-1]) > 2 * _CONTEXT:
            groups.append([])
        groups[-1].append(hunk)
    for group in groups:
        first = max(0, group[0].start - _CONTEXT)
        last = min(len(diff.base), _end(group[-1]) + _CONTEXT)
        length, more = last - first, sum(len(hunk.added) - len(hunk.removed) for hunk in group)
        grown = length + more
        parts.append(f"@@ -{first + (length > 0)},{length} +{first + moved + (grown > 0)},{grown} @@\n")
        at = first
        for hunk in group:
            parts += _marked(" ", diff.base[at : hunk.start])
            parts += _marked("-", hunk.removed)
            parts += _marked("+", hunk.added)
            at = _end(hunk)
        parts += _marked(" ", diff.base[at:last])
        moved += more
    return "".join(parts)


def _end(hunk: Hunk) -> int:
    return hunk.start + len(hunk.removed)


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n"
