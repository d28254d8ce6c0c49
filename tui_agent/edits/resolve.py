"""The effect of decisions on files: pure functions from texts to a write or a conflict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeState, FileStep, HunkState, Pick, compose, hunks
from tui_agent.edits.merge import MergeResult, merge
from tui_agent.errors import EditFailed

Merge = Callable[[str, str, str], MergeResult]


class OnDisk(Struct, frozen=True):
    text: str | None = None
    hash: str = ""


class Write(Struct, frozen=True):
    """Valid if the hash of `path` is still `expected` ("" for no file).

    `text` `None` deletes the file; `rename_to` writes there and deletes `path`. `merged`: the file had
    changed. `needed` is false if the file already has the text. `state` and `hunks` are the change's
    after the write.
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
    """`marked` is a merge with git's markers, or ""."""

    path: str
    reason: str
    base: str = ""
    yours: str | None = None
    theirs: str | None = None
    marked: str = ""


def picked(change: Change, picks: Sequence[Pick]) -> frozenset[int]:
    mine = [pick for pick in picks if pick.change == change.id]
    waiting = {number for number, state in enumerate(change.hunks) if state == "pending"}
    if not picks or any(pick.hunk is None for pick in mine):
        return frozenset(waiting)
    return frozenset(pick.hunk for pick in mine if pick.hunk in waiting)


def place(change: Change) -> str:
    """Returns the current path, after an applied rename."""
    return change.rename_to if change.kind == "rename" and change.written else change.path


def apply(
    change: Change,
    base: str | None,
    new: str | None,
    disk: OnDisk,
    picks: Sequence[Pick] = (),
    merge_by: Merge = merge,
) -> Write | Conflict:
    """`base` and `new` are the change's texts (`None`: no file). Blocking if a merge is necessary. Raises
    `EditFailed` if nothing is pending.
    """
    chosen = picked(change, picks)
    whole = not change.hunks and change.is_open
    if not chosen and not whole:
        raise EditFailed(
            f"nothing of the change to {change.path} waits to be applied", "choose lines that do"
        )
    match change.kind:
        case "delete":
            if disk.text not in (None, base or ""):
                why = "the file has changed since its deletion was proposed"
                return Conflict(change.path, why, base or "", disk.text, None)
            written, merged = None, False
        case "create":
            if disk.text not in (None, new or "", ""):
                return Conflict(change.path, "another file now has this path", "", disk.text, new or "")
            written, merged = new or "", disk.text == ""
        case _:
            return _edit(change, base or "", new or "", disk, chosen, merge_by)
    needed = disk.text != written
    states: tuple[HunkState, ...] = ("applied",) * len(change.hunks)
    return Write(change.path, disk.hash, written, needed=needed, merged=merged, hunks=states)


def _edit(
    change: Change, base: str, new: str, disk: OnDisk, chosen: Collection[int], merge_by: Merge
) -> Write | Conflict:
    here = place(change)
    moves = change.rename_to if here == change.path else ""
    if disk.text is None:
        return Conflict(here, "the file no longer exists", base, None, new)
    parts = hunks(base, new)
    done = _applied(change.hunks)
    before = compose(base, parts, done)
    wanted = compose(base, parts, done | set(chosen))
    merged = merge_by(before, disk.text, wanted)
    if merged.conflicts:
        return Conflict(here, "the same lines were changed on disk", before, disk.text, wanted, merged.text)
    states = states_with(change.hunks, chosen, "applied")
    return Write(
        here,
        disk.hash,
        merged.text,
        rename_to=moves,
        merged=disk.text != before,
        needed=bool(moves) or merged.text != disk.text or change.executable is not None,
        state=overall_state(states, change.state),
        hunks=states,
    )


def states_with(states: Sequence[HunkState], chosen: Collection[int], to: HunkState) -> tuple[HunkState, ...]:
    return tuple(to if number in chosen else state for number, state in enumerate(states))


def overall_state(states: Sequence[HunkState], before: ChangeState = "pending") -> ChangeState:
    if "pending" in states:
        return before if before in ("pending", "merged") else "pending"
    return "applied" if "applied" in states or not states else "skipped"


def skip(change: Change, picks: Sequence[Pick] = ()) -> tuple[ChangeState, tuple[HunkState, ...]]:
    if not change.hunks:
        return "skipped", ()
    states = states_with(change.hunks, picked(change, picks), "skipped")
    return overall_state(states, change.state), states


def is_skipped(change: Change, picks: Sequence[Pick]) -> bool:
    if change.reason.startswith("replaced by"):
        return False
    if not change.hunks or change.state == "undone":
        return change.state in ("skipped", "undone")
    mine = [change.hunks[number] for number in _picked_hunks(change, picks)]
    return "skipped" in mine and "applied" not in mine


def unskipped(change: Change, picks: Sequence[Pick]) -> tuple[ChangeState, tuple[HunkState, ...]]:
    skipped = {number for number in _picked_hunks(change, picks) if change.hunks[number] == "skipped"}
    return "pending", states_with(change.hunks, skipped, "pending")


def _picked_hunks(change: Change, picks: Sequence[Pick]) -> set[int]:
    mine = [pick.hunk for pick in picks if pick.change == change.id]
    every = range(len(change.hunks))
    return set(every) if None in mine else {number for number in every if number in mine}


def taken_back(
    change: Change, picks: Sequence[Pick], to: HunkState = "skipped"
) -> tuple[ChangeState, tuple[HunkState, ...]]:
    """Returns states after undoing an apply of `picks`. An undo is a decision: its hunks are not pending, so that
    no later apply repeats them; undecided hunks stay pending."""
    chosen = {number for number in _picked_hunks(change, picks) if change.hunks[number] == "applied"}
    states = states_with(change.hunks, chosen, to)
    return ("pending" if "pending" in states else "applied" if "applied" in states else "undone"), states


def applied_again(change: Change, picks: Sequence[Pick]) -> tuple[ChangeState, tuple[HunkState, ...]]:
    states = states_with(change.hunks, _picked_hunks(change, picks), "applied")
    return overall_state(states), states


def revert(
    change: Change,
    base: str | None,
    new: str | None,
    disk: OnDisk,
    picks: Sequence[Pick],
    merge_by: Merge = merge,
) -> Write | Conflict:
    """Keeps later edits. Blocking if a merge is necessary. Raises `EditFailed` if no picked hunk is applied."""
    state, states = taken_back(change, picks)
    if states == change.hunks and (change.hunks or change.state != "applied"):
        raise EditFailed(f"nothing of the change to {change.path} is applied there", "choose lines that are")
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
        return Conflict(here, "the file no longer exists", new, None, base)
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
    """Keeps later edits. The texts are those of the step's hashes; redo swaps them. Blocking if a merge is
    necessary.
    """
    if disk.text == before:
        return Write(step.path, disk.hash, before, needed=False)
    if disk.text == after_text:
        return Write(step.path, disk.hash, before)
    if disk.text is None or before is None or after_text is None:
        if disk.text is None:
            why = "the file no longer exists"
        else:
            why = (
                "the file has changed since it was made"
                if before is None
                else "another file now has this path"
            )
        return Conflict(step.path, why, after_text or "", disk.text, before)
    merged = merge_by(after_text, disk.text, before)
    if merged.conflicts:
        why = "the same lines were changed since"
        return Conflict(step.path, why, after_text, disk.text, before, merged.text)
    return Write(step.path, disk.hash, merged.text, merged=True, needed=merged.text != disk.text)
