"""The effect of decisions on files: pure functions from texts to a write or a conflict."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeState, FileStep, HunkState, Pick, compose, hunks
from tui_agent.edits.merge import merge
from tui_agent.errors import EditFailed


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
    path: str
    reason: str


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
    change: Change, base: str | None, new: str | None, disk: OnDisk, picks: Sequence[Pick] = ()
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
                return Conflict(change.path, "the file has changed since its deletion was proposed")
            written, merged = None, False
        case "create":
            if disk.text not in (None, new or "", ""):
                return Conflict(change.path, "another file now has this path")
            written, merged = new or "", disk.text == ""
        case _:
            states = states_with(change.hunks, chosen, "applied")
            moves = change.rename_to if place(change) == change.path else ""
            clash = "the same lines were changed on disk"
            done = _rewritten(change, base or "", new or "", disk, states, moves, clash)
            if isinstance(done, Conflict):
                return done
            return replace(done, state=overall_state(states, change.state), hunks=states)
    needed = disk.text != written
    hunk_states: tuple[HunkState, ...] = ("applied",) * len(change.hunks)
    return Write(change.path, disk.hash, written, needed=needed, merged=merged, hunks=hunk_states)


def _rewritten(
    change: Change,
    base: str,
    new: str,
    disk: OnDisk,
    states: Sequence[HunkState],
    rename_to: str,
    clash: str,
) -> Write | Conflict:
    here = place(change)
    if disk.text is None:
        return Conflict(here, "the file no longer exists")
    parts = hunks(base, new)
    before, wanted = (
        compose(base, parts, {number for number, state in enumerate(each) if state == "applied"})
        for each in (change.hunks, states)
    )
    merged = merge(before, disk.text, wanted)
    if merged.conflicts:
        return Conflict(here, clash)
    return Write(
        here,
        disk.hash,
        merged.text,
        rename_to=rename_to,
        merged=disk.text != before,
        needed=bool(rename_to) or merged.text != disk.text or change.executable is not None,
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
    change: Change, base: str | None, new: str | None, disk: OnDisk, picks: Sequence[Pick]
) -> Write | Conflict:
    """Keeps later edits. Blocking if a merge is necessary. Raises `EditFailed` if no picked hunk is applied."""
    state, states = taken_back(change, picks)
    if states == change.hunks and (change.hunks or change.state != "applied"):
        raise EditFailed(f"nothing of the change to {change.path} is applied there", "choose lines that are")
    match change.kind:
        case "delete":
            done = undo(FileStep(change.path, change.base, ""), base, None, disk)
        case "create":
            done = undo(FileStep(change.path, "", change.written), None, new, disk)
        case _:
            moved = place(change) != change.path and "applied" not in states
            back, clash = change.path if moved else "", "the same lines were changed since"
            done = _rewritten(change, base or "", new or "", disk, states, back, clash)
    return replace(done, state=state, hunks=states) if isinstance(done, Write) else done


def undo(step: FileStep, before: str | None, after_text: str | None, disk: OnDisk) -> Write | Conflict:
    """Keeps later edits. The texts are those of the step's hashes; redo swaps them. Blocking if a merge is
    necessary.
    """
    if disk.text == before:
        return Write(step.path, disk.hash, before, needed=False)
    if disk.text == after_text:
        return Write(step.path, disk.hash, before)
    if disk.text is None:
        return Conflict(step.path, "the file no longer exists")
    if before is None:
        return Conflict(step.path, "the file has changed since it was made")
    if after_text is None:
        return Conflict(step.path, "another file now has this path")
    merged = merge(after_text, disk.text, before)
    if merged.conflicts:
        return Conflict(step.path, "the same lines were changed since")
    return Write(step.path, disk.hash, merged.text, merged=True, needed=merged.text != disk.text)
