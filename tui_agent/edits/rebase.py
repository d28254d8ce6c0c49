"""A change on another text than the one it was made against, or with another change: merged, or in conflict."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeKind
from tui_agent.edits.hunks import compose, counts, hunks
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
        if now == new:
            return replace(
                change, state="applied", reason=THERE_ALREADY, hunks=("applied",) * len(change.hunks)
            )
        return replace(change, state="conflict", reason="another file is there by now")
    if change.kind == "delete":
        return replace(change, state="conflict", reason="the file has changed since it was to be deleted")
    merged = merge_by(base, now, new)
    if merged.conflicts:
        return replace(change, state="conflict", reason="the same lines have changed since the model saw it")
    if merged.text == now and change.kind == "edit" and change.executable is None:
        return replace(change, state="applied", reason=THERE_ALREADY, hunks=("applied",) * len(change.hunks))
    return reworked(change, now, now_hash, merged.text, put_text, MERGED)


def followed(change: Change, path: str) -> Change:
    """The change of a file that was renamed to `path` since; a rename to there leaves only the rest of it to do."""
    if change.rename_to != path:
        return replace(change, path=path)
    rest = replace(change, path=path, kind="edit", rename_to="")
    return (
        rest
        if rest.hunks or rest.executable is not None
        else replace(rest, state="applied", reason=THERE_ALREADY)
    )


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


#: The text under a hash; None for the empty hash, which means that there is no file.
TextUnder = Callable[[str], str | None]
PutText = Callable[[str], str]
#: Who proposed a change that no sub-task did.
CONVERSATION = "the conversation"


def joined(before: Change, change: Change, text_under: TextUnder, put_text: PutText) -> Change:
    """`change` with what is left of `before` in it, from whose base it goes on. Blocking.

    It may have begun where `before` ended, under a new name too: then both are what came of that, and `is_nothing`
    where that is as it was. Where the two do not merge it is in the state `conflict`, with `before` for its rival.
    """
    ours, theirs = remaining(before, text_under), text_under(change.new) if change.new else None
    follows = change.path == (before.rename_to or before.path)
    if follows and ours == (text_under(change.base) if change.base else None):
        return _on_top(before, change, theirs, text_under, put_text)
    if ours is None or theirs is None or change.rename_to or (before.rename_to and not follows):
        if ours == theirs and before.rename_to == change.rename_to:
            return _both(before, replace(change, base=before.base))
        return in_conflict(change, before, "one of them removes or renames it")
    merged = merge(text_under(change.base) or "", ours, theirs)
    if merged.conflicts:
        return in_conflict(change, before, "both changed the same lines")
    return _on_top(before, change, merged.text, text_under, put_text)


def is_nothing(change: Change) -> bool:
    """Whether it makes no difference: a file that was proposed and is not wanted any more."""
    return change.kind == "delete" and not change.base


def _on_top(
    before: Change, change: Change, text: str | None, text_under: TextUnder, put_text: PutText
) -> Change:
    """Both as one change, from what `before` began with to a text (None: the file goes)."""
    rename_to = "" if text is None else change.rename_to or before.rename_to
    path = before.path
    if not before.base:
        path, rename_to = rename_to or path, ""
    if text is None:
        kind: ChangeKind = "delete"
    elif not before.base:
        kind = "create"
    else:
        kind = "rename" if rename_to else "edit"
    one = replace(change, path=path, rename_to=rename_to, kind=kind, base=before.base)
    return _both(before, with_texts(one, text_under(before.base) or "", text or "", put_text))


def remaining(change: Change, text_under: TextUnder) -> str | None:
    """The text of a change with all that is applied or may still be; None for a file that goes. Blocking."""
    if change.kind == "delete" or not change.new:
        return None
    base, new = text_under(change.base) or "", text_under(change.new) or ""
    chosen = {number for number, state in enumerate(change.hunks) if state != "skipped"}
    if len(chosen) == len(change.hunks):
        return new
    return compose(base, hunks(base, new), chosen)


def with_texts(change: Change, base: str, new: str, put_text: PutText) -> Change:
    """The change with another new text on the text of its base, all of it to be decided. Blocking."""
    parts = hunks(base, new)
    added, removed = counts(parts)
    hash_of_new = put_text(new) if change.kind != "delete" else ""
    return replace(
        change, new=hash_of_new, hunks=("pending",) * len(parts), added=added, removed=removed, rival=""
    )


def in_conflict(change: Change, rival: Change, why: str) -> Change:
    """The change in conflict with another one; the sentence names who proposed the two."""
    sides = f"{named(rival)} and {named(change)}"
    return replace(change, state="conflict", rival=rival.id, reason=f"{sides} do not go together: {why}")


def named(change: Change) -> str:
    """Whose work a change holds, in words."""
    return " with ".join(f"“{task}”" for task in change.tasks) or CONVERSATION


def _both(before: Change, change: Change) -> Change:
    return replace(
        change,
        tasks=tuple(dict.fromkeys((*before.tasks, *change.tasks))),
        todo=change.todo or before.todo,
        ask=before.ask or change.ask,
        rung=change.rung if change.rung == before.rung else "",
        by_hand=before.by_hand or change.by_hand,
        executable=before.executable if change.executable is None else change.executable,
        checks=tuple(dict.fromkeys((*before.checks, *change.checks))),
        comments=(*before.comments, *change.comments),
    )
