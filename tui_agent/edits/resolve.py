"""What a decision means for a file on disk: pure functions from texts to what is to be written, or a conflict.

Whoever applies reads the disk, asks here, and writes what comes out only if the disk still is what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeState, FileStep, HunkState, Pick
from tui_agent.edits.hunks import compose, hunks
from tui_agent.edits.merge import Merged, merge
from tui_agent.errors import EditFailed

Merge = Callable[[str, str, str], Merged]


class OnDisk(Struct, frozen=True):
    """A file as it is now: text and content hash; None and "" where there is none."""

    text: str | None = None
    hash: str = ""


class Write(Struct, frozen=True):
    """What is to be written to `path` if its hash still is `expected` ("" for: not there).

    `text` None removes the file; `rename_to` takes the text instead of `path`, which then goes. `merged` says
    that the file had moved on and both were brought together. `needed` is false where the disk already is so.
    `state` and `hunks` are the change's once it is written.
    """

    path: str
    expected: str
    text: str | None
    rename_to: str = ""
    merged: bool = False
    needed: bool = True
    state: ChangeState = "applied"
    hunks: tuple[HunkState, ...] = ()


class Conflict(Struct, frozen=True):
    """Both sides changed the same place. `marked` is the merge with git's markers, where there is one."""

    path: str
    reason: str
    base: str = ""
    yours: str | None = None
    theirs: str | None = None
    marked: str = ""


def picked(change: Change, picks: Sequence[Pick]) -> frozenset[int]:
    """The numbers of the waiting hunks that `picks` mean; no pick, or the change as a whole, means all."""
    mine = [pick for pick in picks if pick.change == change.id]
    waiting = {number for number, state in enumerate(change.hunks) if state == "pending"}
    if not picks or any(pick.hunk is None for pick in mine):
        return frozenset(waiting)
    return frozenset(pick.hunk for pick in mine if pick.hunk in waiting)


def place(change: Change) -> str:
    """Where the file of a change is now: a rename that was applied has moved it."""
    return change.rename_to if change.kind == "rename" and change.written else change.path


def apply(
    change: Change,
    base: str | None,
    new: str | None,
    disk: OnDisk,
    picks: Sequence[Pick] = (),
    merge_by: Merge = merge,
) -> Write | Conflict:
    """Apply what `picks` mean of a change to the file as it is on disk.

    `base` and `new` are its two texts (None where there is no file). Blocking where a merge is needed. Raises
    `EditFailed` where nothing of it waits.
    """
    chosen = picked(change, picks)
    whole = not change.hunks and change.is_open
    if not chosen and not whole:
        raise EditFailed(
            f"nothing of the change to {change.path} waits to be applied", "choose a hunk that does"
        )
    match change.kind:
        case "delete":
            return _delete(change, base or "", disk)
        case "create":
            return _create(change, new or "", disk)
        case _:
            return _edit(change, base or "", new or "", disk, chosen, merge_by)


def _all_applied(change: Change) -> tuple[HunkState, ...]:
    return ("applied",) * len(change.hunks)


def _delete(change: Change, base: str, disk: OnDisk) -> Write | Conflict:
    if disk.text is not None and disk.text != base:
        return Conflict(change.path, "the file has changed since it was to be deleted", base, disk.text, None)
    needed = disk.text is not None
    return Write(change.path, disk.hash, None, needed=needed, hunks=_all_applied(change))


def _create(change: Change, new: str, disk: OnDisk) -> Write | Conflict:
    if disk.text is not None and disk.text not in (new, ""):
        return Conflict(change.path, "another file is there by now", "", disk.text, new)
    return Write(
        change.path,
        disk.hash,
        new,
        needed=disk.text != new,
        merged=disk.text == "",
        hunks=_all_applied(change),
    )


def _edit(
    change: Change, base: str, new: str, disk: OnDisk, chosen: Collection[int], merge_by: Merge
) -> Write | Conflict:
    here = place(change)
    moves = change.rename_to if here == change.path else ""
    if disk.text is None:
        return Conflict(here, "the file is no longer there", base, None, new)
    parts = hunks(base, new)
    done = _applied(change.hunks)
    before = compose(base, parts, done)
    wanted = compose(base, parts, done | set(chosen))
    merged = merge_by(before, disk.text, wanted)
    if merged.conflicts:
        return Conflict(here, "the same lines were changed on disk", before, disk.text, wanted, merged.text)
    states = after(change.hunks, chosen, "applied")
    return Write(
        here,
        disk.hash,
        merged.text,
        rename_to=moves,
        merged=disk.text != before,
        needed=bool(moves) or merged.text != disk.text or change.executable is not None,
        state=settled(states, change.state),
        hunks=states,
    )


def after(states: Sequence[HunkState], chosen: Collection[int], to: HunkState) -> tuple[HunkState, ...]:
    """The states of all hunks once the chosen ones are `to`."""
    return tuple(to if number in chosen else state for number, state in enumerate(states))


def settled(states: Sequence[HunkState], before: ChangeState = "pending") -> ChangeState:
    """The state of a change whose hunks have these: it waits while one does."""
    if "pending" in states:
        return before if before in ("pending", "merged") else "pending"
    return "applied" if "applied" in states or not states else "skipped"


def skip(change: Change, picks: Sequence[Pick] = ()) -> tuple[ChangeState, tuple[HunkState, ...]]:
    """The states of a change and its hunks once what `picks` mean is skipped."""
    if not change.hunks:
        return "skipped", ()
    states = after(change.hunks, picked(change, picks), "skipped")
    return settled(states, change.state), states


def is_skipped(change: Change, picks: Sequence[Pick]) -> bool:
    """Whether all that `picks` mean of a change was skipped by the person; one that was replaced was not."""
    if change.reason.startswith("replaced by"):
        return False
    if not change.hunks:
        return change.state == "skipped"
    mine = [change.hunks[number] for number in _meant(change, picks)]
    return "skipped" in mine and "applied" not in mine


def unskipped(change: Change, picks: Sequence[Pick]) -> tuple[ChangeState, tuple[HunkState, ...]]:
    """The states once what `picks` mean waits again."""
    skipped = {number for number in _meant(change, picks) if change.hunks[number] == "skipped"}
    return "pending", after(change.hunks, skipped, "pending")


def _meant(change: Change, picks: Sequence[Pick]) -> set[int]:
    """The numbers of the hunks that `picks` mean, whatever their states."""
    mine = [pick.hunk for pick in picks if pick.change == change.id]
    every = range(len(change.hunks))
    return set(every) if None in mine else {number for number in every if number in mine}


def reopened(change: Change, picks: Sequence[Pick]) -> tuple[ChangeState, tuple[HunkState, ...]]:
    """The states once an apply of `picks` was undone: those hunks wait again; without any left, `undone`."""
    chosen = {number for number in _meant(change, picks) if change.hunks[number] == "applied"}
    states = after(change.hunks, chosen, "pending")
    return ("pending" if "applied" in states else "undone"), states


def take_back(
    change: Change,
    base: str | None,
    new: str | None,
    disk: OnDisk,
    picks: Sequence[Pick],
    merge_by: Merge = merge,
) -> Write | Conflict:
    """Take applied hunks of a change out of the file again; what was written since stays.

    The texts are those of the change. Blocking where a merge is needed. Raises `EditFailed` where none of what
    `picks` mean was applied. The write's `hunks` and `state` are the change's once it is written.
    """
    state, states = reopened(change, picks)
    if states == change.hunks and (change.hunks or change.state != "applied"):
        raise EditFailed(f"nothing of the change to {change.path} is applied there", "choose a hunk that is")
    match change.kind:
        case "delete":
            done = undo(FileStep(change.path, change.base, ""), base, None, disk, merge_by)
        case "create":
            done = undo(FileStep(change.path, "", change.written), None, new, disk, merge_by)
        case _:
            done = _without(change, base or "", new or "", disk, states, merge_by)
    return replace(done, state=state, hunks=states) if isinstance(done, Write) else done


def _without(
    change: Change, base: str, new: str, disk: OnDisk, states: Sequence[HunkState], merge_by: Merge
) -> Write | Conflict:
    here = place(change)
    if disk.text is None:
        return Conflict(here, "the file is no longer there", new, None, base)
    parts = hunks(base, new)
    before = compose(base, parts, _applied(change.hunks))
    wanted = compose(base, parts, _applied(states))
    merged = merge_by(before, disk.text, wanted)
    if merged.conflicts:
        why = "the same lines were changed since"
        return Conflict(here, why, before, disk.text, wanted, merged.text)
    back = change.path if here != change.path and "applied" not in states else ""
    return Write(
        here,
        disk.hash,
        merged.text,
        rename_to=back,
        merged=disk.text != before,
        needed=bool(back) or merged.text != disk.text or change.executable is not None,
    )


def _applied(states: Sequence[HunkState]) -> set[int]:
    return {number for number, state in enumerate(states) if state == "applied"}


def undo(
    step: FileStep, before: str | None, after_text: str | None, disk: OnDisk, merge_by: Merge = merge
) -> Write | Conflict:
    """Take one file of a checkpoint back; what was written since stays. The texts are those of its hashes.

    Doing it again is the same with the two texts (and hashes) swapped. Blocking where a merge is needed.
    """
    if disk.text == before:
        return Write(step.path, disk.hash, before, needed=False)
    if disk.text == after_text:
        return Write(step.path, disk.hash, before)
    if disk.text is None or before is None or after_text is None:
        return Conflict(step.path, _undo_reason(disk, before), after_text or "", disk.text, before)
    merged = merge_by(after_text, disk.text, before)
    if merged.conflicts:
        why = "the same lines were changed since"
        return Conflict(step.path, why, after_text, disk.text, before, merged.text)
    return Write(step.path, disk.hash, merged.text, merged=True, needed=merged.text != disk.text)


def _undo_reason(disk: OnDisk, before: str | None) -> str:
    if disk.text is None:
        return "the file is no longer there"
    return "the file has changed since it was made" if before is None else "another file is there by now"
