"""A change on a newer text than the one it was made against: merged three ways, or in conflict."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.edits.hunks import counts, hunks
from tui_agent.edits.merge import Merged, merge

MERGED = "merged with what changed since the model saw it"
THERE_ALREADY = "the file is so already"

_Merge = Callable[[str, str, str], Merged]


def rebased(
    change: Change,
    base: str,
    new: str,
    now: str | None,
    now_hash: str,
    put_text: Callable[[str], str],
    merge_by: _Merge = merge,
) -> Change:
    """The open change as it is on the text `now` (None: the file is gone), which lies under `now_hash`.

    `base` and `new` are the change's own two texts. Blocking where a merge is needed. What does not merge is in
    the state `conflict` and keeps its base; what was found below "exact" waits for the person's own pick.
    """
    if now is None:
        return replace(change, state="conflict", reason="the file is no longer there")
    if change.kind == "create":
        return _onto_another(change, new, now, now_hash)
    if change.kind == "delete":
        return replace(change, state="conflict", reason="the file has changed since it was to be deleted")
    merged = merge_by(base, now, new)
    if merged.conflicts:
        return replace(change, state="conflict", reason="the same lines have changed since the model saw it")
    if merged.text == now and change.kind == "edit":
        return replace(change, state="applied", reason=THERE_ALREADY, hunks=("applied",) * len(change.hunks))
    return reworked(change, now, now_hash, merged.text, put_text, MERGED)


def followed(change: Change, path: str) -> Change:
    """The change of a file that was renamed to `path` since; a rename to there leaves only the rest of it to do."""
    if change.rename_to != path:
        return replace(change, path=path)
    rest = replace(change, path=path, kind="edit", rename_to="")
    return rest if rest.hunks else replace(rest, state="applied", reason=THERE_ALREADY)


def reworked(
    change: Change, base: str, base_hash: str, new: str, put_text: Callable[[str], str], reason: str
) -> Change:
    """The change with other texts, every hunk open again; marked `merged`."""
    parts = hunks(base, new)
    added, removed = counts(parts)
    guess = change.rung not in ("", "exact") and not change.by_hand
    ask = f"found by {change.rung} in a version that has changed since" if guess else change.ask
    return replace(
        change,
        state="merged",
        base=base_hash,
        new=put_text(new),
        hunks=("pending",) * len(parts),
        added=added,
        removed=removed,
        reason=reason,
        ask=ask,
    )


def _onto_another(change: Change, new: str, now: str, now_hash: str) -> Change:
    if now == new:
        return replace(change, state="applied", reason=THERE_ALREADY, hunks=("applied",) * len(change.hunks))
    return replace(change, state="conflict", reason="another file is there by now")
