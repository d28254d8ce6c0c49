"""The person's decisions about changes: shown, worked on, applied, skipped, undone and redone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tui_agent.edits.change import Change, Diff, Hunk, Pick
from tui_agent.edits.conflicts import ConflictView, Side
from tui_agent.edits.hunks import diff_of, hunks, same_hunk
from tui_agent.edits.resolve import is_skipped, picked, skip, unskipped
from tui_agent.edits.texts import text_under
from tui_agent.errors import EditFailed, Outdated, SessionError
from tui_agent.files.batch import StillWritten
from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.review.apply import Applier
from tui_agent.review.conflicts import ConflictResolver
from tui_agent.review.open_files import OpenFiles
from tui_agent.review.undo import Preview, UndoHistory
from tui_agent.review.unfinished import recorded_names
from tui_agent.review.versions import Versions
from tui_agent.review.writer import Target, Writer
from tui_agent.store import events as e
from tui_agent.workspace.workspace import Workspace


class Decisions:
    """One decision at a time: each waits for the one before it."""

    def __init__(
        self, journal: Journal, workspace: Workspace, blobs: Blobs, open_files: OpenFiles, folder: Path
    ) -> None:
        self._journal = journal
        self._blobs = blobs
        self._writer = Writer(journal, workspace, blobs, open_files, folder)
        self._applier = Applier(journal, workspace, blobs, self._writer)
        self._history = UndoHistory(journal, blobs, self._writer)
        self.versions = Versions(journal, workspace, self._writer)
        self._conflicts = ConflictResolver(journal, blobs, self._writer)
        self._one_at_a_time = asyncio.Lock()

    async def diff(self, change_id: str) -> Diff:
        """The change as it can be shown; a file that goes shows every line as removed."""
        return await asyncio.to_thread(self._diff, self._named(change_id))

    async def apply(self, picks: Sequence[Pick]) -> None:
        """Write what was picked, or with no picks every open change, all or nothing. Raises `EditFailed`."""
        async with self._alone():
            picks = await self._as_seen(picks)
            changes = self._open_changes(picks)
            if not picks:
                self._refuse_broken_batch(changes)
            await self._looked_at_again(lambda: self._applier.apply(changes, picks))

    async def would_write(self) -> tuple[list[Target], list[str]]:
        """What the files would be with every open change, and what has no place now."""
        async with self._one_at_a_time:
            return await self._applier.would_write(self._journal.store.state.review.open)

    async def skip(self, picks: Sequence[Pick]) -> None:
        """Decide against what was picked; with no picks against every change that is open or conflicts."""
        async with self._one_at_a_time:
            picks = await self._as_seen(picks)
            waiting = [change for change in self._journal.store.state.review.changes if change.waits]
            for change in self._open_changes(picks) if picks or not waiting else waiting:
                state, hunks = skip(change, picks)
                await self._journal.record(
                    e.ChangeMoved(change.id, state, hunks), e.ModelOwesNews(_skipped(change, picks))
                )

    async def take_back(self, picks: Sequence[Pick]) -> None:
        """Take decisions back: what was applied leaves its file again, what was skipped waits again.

        Raises `EditFailed` where nothing of it is decided.
        """
        async with self._alone():
            picks = await self._as_seen(picks)
            changes = [self._named(name) for name in dict.fromkeys(pick.change for pick in picks)]
            skipped = [change for change in changes if is_skipped(change, picks)]
            for change in skipped:
                await self._journal.record(e.ChangeMoved(change.id, *unskipped(change, picks)))
            applied = [change for change in changes if change not in skipped]
            if applied:
                await self._looked_at_again(lambda: self._history.take_back(applied, picks))

    async def preview(self, checkpoint: str) -> list[Preview]:
        """What going back over an apply would do, file by file; nothing is written."""
        return await self._history.preview(checkpoint)

    async def conflict(self, change_id: str) -> ConflictView:
        """A change that conflicts, place by place."""
        return await self._conflicts.conflict(self._named(change_id))

    async def settle(
        self, change_id: str, sides: Sequence[Side], by_hand: Mapping[int, str], seen: str
    ) -> None:
        """Settle a conflict: a side, or a text, for each place."""
        async with self._alone():
            change = self._named(change_id)
            if change.state != "conflict":
                raise SessionError(f"{change.path} is {change.state}", "only a conflict is settled")
            await self._conflicts.settle(change, sides, by_hand, seen)

    async def edit_hunk(self, pick: Pick, text: str) -> None:
        """Let a hunk add another text than the one that was proposed."""
        async with self._one_at_a_time:
            (pick,) = await self._as_seen([pick])
            await self._conflicts.edit_hunk(self._named(pick.change), pick.hunk or 0, text)

    async def comment(self, pick: Pick, text: str) -> None:
        """Say something about a change to the model, with the next request."""
        if text.strip():
            async with self._one_at_a_time:
                (pick,) = await self._as_seen([pick])
                await self._conflicts.comment(self._named(pick.change), pick, text.strip())

    async def undo(self, checkpoint: str) -> None:
        async with self._alone():
            await self._looked_at_again(lambda: self._history.undo(checkpoint))

    async def redo(self, checkpoint: str) -> None:
        async with self._alone():
            await self._looked_at_again(lambda: self._history.redo(checkpoint))

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Nobody else decides meanwhile, and what an earlier batch could not finish is settled first."""
        async with self._one_at_a_time:
            if self._writer.unfinished:
                said = await self.heal()
                await self._journal.record(*(e.NoticeGiven("warning", sentence) for sentence in said))
            yield

    async def _looked_at_again(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write; where a file, or the text of an open buffer, had moved in a way that the write itself could not
        merge, look at it once more: it may be a conflict by now. Raises Outdated where it moved again."""
        try:
            await write()
        except StillWritten:
            raise
        except Outdated:
            await write()

    async def heal(self) -> list[str]:
        """Settle what a crash, or a disk that failed, left half done; sentences on what was done."""
        return await self._writer.heal(recorded_names(self._journal.store.state.review))

    def _refuse_broken_batch(self, changes: Sequence[Change]) -> None:
        """A batch is all the changes of one turn: one that failed or conflicts blocks it."""
        turns = {change.turn for change in changes}
        broken = [
            change
            for change in self._journal.store.state.review.changes
            if change.turn in turns and change.state in ("failed", "conflict")
        ]
        if broken:
            names = ", ".join(f"{change.path} ({change.state}{_because(change)})" for change in broken)
            raise EditFailed(
                f"Nothing was written, because of {names}", "skip it, or apply the others one by one"
            )

    def _open_changes(self, picks: Sequence[Pick]) -> list[Change]:
        """The changes that a decision is about, oldest first. Raises `SessionError` for what cannot be decided."""
        review = self._journal.store.state.review
        if not picks:
            if not review.open:
                raise SessionError("Nothing is pending", "ask the model for a change first")
            return list(review.open)
        changes = [self._named(name) for name in dict.fromkeys(pick.change for pick in picks)]
        for change in changes:
            if not change.is_open and change.state not in ("conflict", "failed"):
                raise SessionError(
                    f"{change.id} ({change.path}) is {change.state}", "only a pending change can be decided"
                )
        return changes

    async def _as_seen(self, picks: Sequence[Pick]) -> Sequence[Pick]:
        """The same picks, by the numbers that their hunks have now. Raises `SessionError` for what is gone."""
        if all(not pick.seen or pick.seen == self._named(pick.change).version for pick in picks):
            return picks
        return await asyncio.to_thread(lambda: [self._found_again(pick) for pick in picks])

    def _found_again(self, pick: Pick) -> Pick:
        change = self._named(pick.change)
        if not pick.seen or pick.seen == change.version:
            return pick
        number = None
        if pick.hunk is not None:
            before, now = self._hunks(pick.seen), self._hunks(change.version)
            number = same_hunk(before[pick.hunk], now) if pick.hunk < len(before) else None
        if number is None:
            raise SessionError(
                f"The change to {change.path} was another when you decided",
                "look at it as it is now, then decide",
            )
        return Pick(pick.change, number)

    def _hunks(self, version: str) -> tuple[Hunk, ...]:
        base, new = (text_under(self._blobs, key) for key in version.split(":"))
        return hunks(base or "", new or "")

    def _named(self, change_id: str) -> Change:
        change = self._journal.store.state.review.change(change_id)
        if change is None:
            raise SessionError(f"There is no change {change_id}", "choose one from the review")
        return change

    def _diff(self, change: Change) -> Diff:
        base, new = text_under(self._blobs, change.base), text_under(self._blobs, change.new)
        return diff_of(change.path, base or "", new or "")


def _because(change: Change) -> str:
    return f": {change.reason}" if change.reason else ""


def _skipped(change: Change, picks: Sequence[Pick]) -> str:
    chosen = picked(change, picks)
    if len(chosen) == len(change.hunks):
        return f"{change.called} was skipped by the person."
    numbers = ", ".join(str(number + 1) for number in sorted(chosen))
    return f"{change.called}: the person skipped hunk {numbers} of {len(change.hunks)}."
