"""Two sub-tasks that changed the same lines: both sides as a conflict, and one change of what was settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeKind, text_under
from tui_agent.edits.merge import ConflictView, Side, regions, settled
from tui_agent.edits.rebase import named, rebased, remaining, with_texts
from tui_agent.errors import EditFailed
from tui_agent.files.blobs import Blobs
from tui_agent.review.writer import Current
from tui_agent.store import events as e

SETTLED = "settled by hand"


def view(change: Change, rival: Change, blobs: Blobs) -> ConflictView:
    """What the two disagree about, the rival's work as `yours`. Blocking."""
    read = partial(text_under, blobs)
    ours, theirs = remaining(rival, read), remaining(change, read)
    return ConflictView(
        change.path,
        change.reason,
        regions(read(change.base) or "", ours, theirs),
        yours_gone=ours is None,
        theirs_gone=theirs is None,
        now=_seen(rival),
        yours_name=named(rival),
        theirs_name=named(change),
    )


def settle(
    change: Change,
    rival: Change,
    sides: Sequence[Side],
    by_hand: Mapping[int, str],
    seen: str,
    now: Current,
    blobs: Blobs,
) -> list[e.Event]:
    """What settles the conflict: both are one change then, on the file as it is `now`. Blocking.

    Raises `EditFailed` where the rival is another one by now than was `seen`, or the number of sides is wrong.
    """
    shown = view(change, rival, blobs)
    if len(shown.conflicts) != len(sides) or (seen and seen != shown.now):
        raise EditFailed(f"{change.path} has changed meanwhile", "look at the conflict again")
    if sides and not by_hand and all(side == "yours" for side in sides):
        return [given_up(change, f"that of {named(rival)} was kept")]
    if sides and not by_hand and all(side == "theirs" for side in sides) and shown.theirs_gone:
        alone = replace(change, state="pending", rival="", reason=SETTLED)
        return [given_up(rival, f"that of {named(change)} was kept"), e.ChangeReworked(alone)]
    text = settled(shown.regions, sides, by_hand)
    joined = _joined(change, rival, text, now, blobs)
    return [given_up(rival, f"joined into {change.id}"), e.ChangeReworked(joined)]


def _joined(change: Change, rival: Change, text: str, now: Current, blobs: Blobs) -> Change:
    base = text_under(blobs, rival.base) or ""
    rename_to = (rival.rename_to or change.rename_to) if rival.base else ""
    both = replace(
        change,
        kind=_kind(rival.base, rename_to),
        base=rival.base,
        path=rival.path,
        rename_to=rename_to,
        state="pending",
        reason=SETTLED,
        tasks=tuple(dict.fromkeys((*rival.tasks, *change.tasks))),
        by_hand=True,
        ask=rival.ask or change.ask,
    )
    one = with_texts(both, base, text, blobs.put_text)
    if now.md5 == rival.base:
        return one
    return rebased(one, base, text, now.text, now.md5, blobs.put_text)


def _kind(base: str, rename_to: str) -> ChangeKind:
    if not base:
        return "create"
    return "rename" if rename_to else "edit"


def given_up(change: Change, why: str) -> e.ChangeMoved:
    """A change that gives way, because of `why`: what of it was applied stays so, the rest is skipped."""
    hunks = tuple("skipped" if hunk == "pending" else hunk for hunk in change.hunks)
    return e.ChangeMoved(change.id, "applied" if "applied" in hunks else "skipped", hunks, why)


def _seen(rival: Change) -> str:
    return f"{rival.id} {rival.new} {' '.join(rival.hunks)}"
