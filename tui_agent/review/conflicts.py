"""Undecided changes: conflict resolution, edited hunks, comments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from tui_agent.edits.change import (
    Change,
    Comment,
    HunkState,
    Pick,
    compose,
    counts,
    hunks,
    hunks_under,
    text_under,
    texts_under,
)
from tui_agent.edits.merge import (
    ConflictView,
    Side,
    in_conflict,
    merged_with_choices,
    named,
    rebased,
    regions,
    remaining,
    reworked,
    with_texts,
)
from tui_agent.edits.resolve import place, skip
from tui_agent.errors import EditFailed, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import encode
from tui_agent.log.journal import Journal
from tui_agent.review.writer import CurrentFile, Writer
from tui_agent.store import events as e

SETTLED = "resolved by hand"


class ConflictResolver:
    def __init__(self, journal: Journal, blobs: Blobs, writer: Writer) -> None:
        self._journal = journal
        self._blobs = blobs
        self._writer = writer

    async def conflict(self, change: Change) -> ConflictView:
        """Raises `FileError`."""
        rival = self._rival(change)
        if rival is not None:
            return await asyncio.to_thread(view_of_two, change, rival, self._blobs)
        now = await self._writer.current(place(change))
        return await asyncio.to_thread(self._view, change, now)

    async def resolve(
        self, change: Change, sides: Sequence[Side], by_hand: Mapping[int, str], seen: str
    ) -> None:
        """The result waits for review. Raises `EditFailed` if the file has changed since `seen`, or the
        number of sides is wrong.
        """
        now = await self._writer.current(place(change))
        rival = self._rival(change)
        if rival is not None:
            asked = (change, rival, sides, by_hand, seen, now, self._blobs)
            told = await asyncio.to_thread(merge_two_changes, *asked)
            if not any(isinstance(event, e.ChangeMoved) and event.id == rival.id for event in told):
                against = []
            else:
                others = self._journal.store.state.review.changes
                both = next((event.change for event in told if isinstance(event, e.ChangeReworked)), change)
                against = [
                    e.ChangeReworked(in_conflict(other, both, "both changed the same lines"))
                    for other in others
                    if other.rival == rival.id and other.state == "conflict" and other.id != change.id
                ]
            await self._journal.record(*against, *told)
            return
        view = await asyncio.to_thread(self._view, change, now)
        if len(view.conflicts) != len(sides) or (seen and seen != now.md5):
            raise EditFailed(
                f"{change.path} has changed meanwhile",
                "look at the conflict again: other places disagree now",
            )
        if sides and all(side == "yours" for side in sides) and not by_hand:
            fact = f"{change.called} conflicted, and the person kept the file as it is."
            await self._journal.record(given_up(change, "yours was kept"), e.ModelOwesNews(fact))
            return
        text = await asyncio.to_thread(merged_with_choices, view.regions, sides, by_hand)
        gone = view.theirs_gone and sides and not by_hand and all(side == "theirs" for side in sides)
        await self._journal.record(
            e.ChangeReworked(await asyncio.to_thread(self._settled, change, now, None if gone else text))
        )

    async def edit_hunk(self, change: Change, hunk: int, text: str) -> None:
        edited = await asyncio.to_thread(self._edited, change, hunk, text)
        await self._journal.record(e.ChangeReworked(edited))

    async def comment(self, change: Change, pick: Pick, text: str) -> None:
        noted = replace(change, comments=(*change.comments, Comment(text, pick.hunk)))
        called = change.called[0].lower() + change.called[1:]
        about = f"hunk {pick.hunk + 1} of {called}" if pick.hunk is not None else called
        where = ""
        if pick.hunk is not None:
            parts = await asyncio.to_thread(hunks_under, self._blobs, change.base, change.new)
            where = f" (line {parts[pick.hunk].start + 1})" if pick.hunk < len(parts) else ""
        fact = f"About {about}{where} the person says: {text}"
        await self._journal.record(e.ChangeReworked(noted), e.ModelOwesNews(fact))

    def _rival(self, change: Change) -> Change | None:
        if not change.rival:
            return None
        waiting = [other for other in self._journal.store.state.review.open if other.path == change.path]
        named = (other for other in waiting if other.id == change.rival)
        return next(named, None) or next(iter(waiting), None)

    def _view(self, change: Change, now: CurrentFile) -> ConflictView:
        base, new = texts_under(self._blobs, change.base, change.new)
        parts = hunks(base or "", new or "")
        applied = _numbers(change, "applied")
        before = compose(base or "", parts, applied)
        wanted = compose(base or "", parts, applied | _numbers(change, "pending"))
        theirs = None if change.kind == "delete" or (not change.new and base is not None) else wanted
        return ConflictView(
            change.path,
            change.reason,
            regions(before, now.text, theirs),
            yours_gone=now.text is None,
            theirs_gone=theirs is None,
            now=now.md5,
        )

    def _settled(self, change: Change, now: CurrentFile, text: str | None) -> Change:
        here = self._blobs.put(encode(now.stored, now.text)) if now.text is not None else ""
        done = reworked(change, now.text or "", here, text or "", self._blobs.put_text, SETTLED)
        if text is None:
            return replace(done, kind="delete", new="", ask="", state="pending", by_hand=True)
        if now.text is None:
            return replace(done, kind="create", ask="", by_hand=True)
        kind = "rename" if change.kind == "rename" else "edit"
        return replace(done, kind=kind, ask="", by_hand=True)

    def _edited(self, change: Change, hunk: int, text: str) -> Change:
        base, new = texts_under(self._blobs, change.base, change.new)
        parts = hunks(base or "", new or "")
        if change.kind == "delete" or not 0 <= hunk < len(parts):
            raise SessionError(f"{change.path} has no such change", "choose one that waits")
        if not change.is_open or change.hunks[hunk] != "pending":
            raise SessionError(
                f"Change {hunk + 1} of {change.path} is decided", "undo it first, or edit the file"
            )
        proposed = parts[hunk].added
        crlf = any(line.endswith("\r\n") for line in proposed) or "\r\n" in (base or "")
        typed = text.replace("\r\n", "\n")
        if typed and not typed.endswith("\n") and not (proposed and not proposed[-1].endswith("\n")):
            typed += "\n"
        mine = replace(parts[hunk], added=(typed.replace("\n", "\r\n") if crlf else typed,))
        after = compose(base or "", [*parts[:hunk], mine, *parts[hunk + 1 :]], range(len(parts)))
        found = hunks(base or "", after)
        states = dict(zip(parts, change.hunks, strict=True))
        kept = tuple(states.get(part, "pending") for part in found)
        if kept.count("applied") != change.hunks.count("applied"):
            raise EditFailed(
                f"Change {hunk + 1} of {change.path} runs into one that is applied", "edit the file itself"
            )
        added, removed = counts(found)
        return replace(
            change,
            new=self._blobs.put_text(after),
            hunks=kept,
            added=added,
            removed=removed,
            by_hand=True,
            state="skipped" if not found else change.state,
            reason="edited by hand",
        )


def _numbers(change: Change, wanted: HunkState) -> set[int]:
    return {number for number, state in enumerate(change.hunks) if state == wanted}


def view_of_two(change: Change, rival: Change, blobs: Blobs) -> ConflictView:
    """The rival is `yours`. Blocking."""
    read = partial(text_under, blobs)
    ours, theirs = remaining(rival, read), remaining(change, read)
    return ConflictView(
        change.path,
        change.reason,
        regions(read(change.base) or "", ours, theirs),
        yours_gone=ours is None,
        theirs_gone=theirs is None,
        now=f"{rival.id} {rival.new} {' '.join(rival.hunks)}",
        yours_name=named(rival),
        theirs_name=named(change),
    )


def merge_two_changes(
    change: Change,
    rival: Change,
    sides: Sequence[Side],
    by_hand: Mapping[int, str],
    seen: str,
    now: CurrentFile,
    blobs: Blobs,
) -> list[e.Event]:
    """Blocking. Raises `EditFailed` as `ConflictResolver.resolve`."""
    shown = view_of_two(change, rival, blobs)
    if len(shown.conflicts) != len(sides) or (seen and seen != shown.now):
        raise EditFailed(f"{change.path} has changed meanwhile", "look at the conflict again")
    if sides and not by_hand and all(side == "yours" for side in sides):
        return [given_up(change, f"that of {named(rival)} was kept")]
    if sides and not by_hand and all(side == "theirs" for side in sides) and shown.theirs_gone:
        alone = replace(change, state="pending", rival="", reason=SETTLED)
        return [given_up(rival, f"that of {named(change)} was kept"), e.ChangeReworked(alone)]
    text = merged_with_choices(shown.regions, sides, by_hand)
    base = text_under(blobs, rival.base) or ""
    rename_to = (rival.rename_to or change.rename_to) if rival.base else ""
    both = replace(
        change,
        kind="create" if not rival.base else "rename" if rename_to else "edit",
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
    if now.md5 != rival.base:
        one = rebased(one, base, text, now.text, now.md5, blobs.put_text)
    return [given_up(rival, f"joined into {change.id}"), e.ChangeReworked(one)]


def given_up(change: Change, why: str) -> e.ChangeMoved:
    return e.ChangeMoved(change.id, *skip(change), why)
