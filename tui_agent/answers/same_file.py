"""Several entries of one reply about one file, as the one change that they are together."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tui_agent.answers.values import ChangeRequest


def joined(changes: Iterable[ChangeRequest]) -> list[ChangeRequest]:
    """Edits with edits, diffs with diffs, and a move with either, at the place of the first.

    What cannot be one change stays apart; the later one then takes the place of the earlier.
    """
    result: list[ChangeRequest] = []
    places: dict[str, int] = {}
    for change in changes:
        at = places.get(change.path)
        both = None if at is None else _together(result[at], change)
        if both is not None and at is not None:
            result[at] = both
        else:
            places[change.path] = len(result)
            result.append(change)
    return result


def _together(first: ChangeRequest, second: ChangeRequest) -> ChangeRequest | None:
    whole = any(change.content is not None or change.delete for change in (first, second))
    moves = {change.rename_to for change in (first, second) if change.rename_to}
    if whole or len(moves) > 1 or (_has_edits(first, second) and _has_diffs(first, second)):
        return None
    if first.base_hash and second.base_hash and first.base_hash != second.base_hash:
        return None
    diffs = [change.diff for change in (first, second) if change.diff is not None]
    return replace(
        first,
        edits=(*first.edits, *second.edits),
        diff="\n".join(diff.rstrip("\n") for diff in diffs) + "\n" if diffs else None,
        rename_to=next(iter(moves), None),
        todo_index=second.todo_index if first.todo_index is None else first.todo_index,
        base_hash=first.base_hash or second.base_hash,
    )


def _has_edits(*changes: ChangeRequest) -> bool:
    return any(change.edits for change in changes)


def _has_diffs(*changes: ChangeRequest) -> bool:
    return any(change.diff is not None for change in changes)
