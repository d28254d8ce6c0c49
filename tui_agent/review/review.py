"""The review of a session: changes shown, worked on, applied, skipped, undone and redone, compared and committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tui_agent.edits.change import Change, Diff, Hunk, Pick, text_under
from tui_agent.edits.hunks import diff_of, hunks, same_hunk
from tui_agent.edits.merge import ConflictView, Side
from tui_agent.edits.resolve import is_skipped, picked, skip, unskipped
from tui_agent.errors import EditFailed, Outdated, SessionError
from tui_agent.files.batch import StillWritten
from tui_agent.git.client import CommitPlan
from tui_agent.log.calls import call
from tui_agent.log.core import Core
from tui_agent.review.apply import Applier
from tui_agent.review.conflicts import ConflictResolver
from tui_agent.review.from_commands import changes_of
from tui_agent.review.open_files import OpenFiles
from tui_agent.review.undo import Preview, UndoHistory
from tui_agent.review.unfinished import recorded_names
from tui_agent.review.versions import Version, Versions
from tui_agent.review.writer import Target, Writer
from tui_agent.store import events as e
from tui_agent.store.state import State

if TYPE_CHECKING:
    from tui_agent.trial.changed import Written


class Review:
    """What a front end asks about changes. One decision at a time: each waits for the one before it.

    `look` finds files that are no longer where they were; `complete` waits for the reply that is being proposed, and is
    false where somebody waits for it already; `ask_again` sends what conflicts back to the model; `draft` lets the
    model write a commit message.
    """

    def __init__(
        self,
        core: Core,
        open_files: OpenFiles,
        *,
        look: Callable[[], Awaitable[None]],
        complete: Callable[[], Awaitable[bool]],
        ask_again: Callable[[Sequence[Change]], None],
        draft: Callable[[str], Awaitable[str]],
    ) -> None:
        self._journal = journal = core.journal
        self._blobs = blobs = core.blobs
        workspace = core.workspace
        self._look = look
        self._complete = complete
        self._ask_again = ask_again
        self._draft = draft
        self._writer = Writer(core, open_files)
        self._applier = Applier(journal, workspace, blobs, self._writer)
        self._history = UndoHistory(journal, blobs, self._writer)
        self._versions = Versions(journal, workspace, self._writer)
        self._conflicts = ConflictResolver(journal, blobs, self._writer)
        self._one_at_a_time = asyncio.Lock()

    @property
    def state(self) -> State:
        return self._journal.store.state

    @call(changes=True)
    async def propose_written(
        self, written: Sequence[Written], run: str, command: str
    ) -> tuple[int, list[str]]:
        """Let what a command wrote wait here: how many changes there are now, and why the rest is left out."""
        async with self._one_at_a_time:
            turn = self.state.turn.number
            changes, left = await changes_of(written, run, command, turn, self._writer, self._blobs)
            await self._journal.record(*(e.ChangeProposed(change) for change in changes))
        return len(changes), left

    @call(changes=False)
    async def diff(self, change_id: str) -> Diff:
        """A change as it can be shown; a file that goes shows every line as removed. Raises `SessionError` for an id
        that is not there."""
        return await asyncio.to_thread(self._diff, self._named(change_id))

    @call(changes=True)
    async def apply(self, picks: Sequence[Pick] = ()) -> None:
        """Write what was picked (nothing picked: all that is pending), all or nothing.

        All that is pending waits for a reply that is still being proposed, and says so. Raises `EditFailed` where
        something conflicts; the model is then asked again for it, as if in the turn that proposed it.
        """
        if picks or await self._complete():
            await self._look()
            before = self.state.review.changes
            try:
                await self._apply(picks)
            except EditFailed:
                self._ask_again([change for change in self.state.review.changes if change not in before])
                raise

    async def _apply(self, picks: Sequence[Pick]) -> None:
        async with self._alone():
            picks = await self._as_seen(picks)
            changes = self._open_changes(picks)
            if not picks:
                # a batch is all the changes of one turn: one that failed or conflicts blocks it
                turns = {change.turn for change in changes}
                broken = [
                    change
                    for change in self.state.review.changes
                    if change.turn in turns and change.state in ("failed", "conflict")
                ]
                self._refuse_broken(broken)
            await self._looked_at_again(lambda: self._applier.apply(changes, picks))

    @call(changes=False)
    async def would_write(self) -> tuple[list[Target], list[str]]:
        """What the files would be with every open change, and what has no place now."""
        async with self._one_at_a_time:
            return await self._applier.would_write(self._journal.store.state.review.open)

    @call(changes=True)
    async def skip(self, picks: Sequence[Pick] = ()) -> None:
        """Decide against what was picked (nothing picked: all that is pending or in conflict)."""
        async with self._one_at_a_time:
            picks = await self._as_seen(picks)
            waiting = [change for change in self.state.review.changes if change.waits]
            for change in self._open_changes(picks) if picks or not waiting else waiting:
                state, hunks = skip(change, picks)
                await self._journal.record(
                    e.ChangeMoved(change.id, state, hunks), e.ModelOwesNews(_skipped(change, picks))
                )

    @call(changes=True)
    async def take_back(self, picks: Sequence[Pick]) -> None:
        """Take decisions back: what was applied leaves its file again (what was
        written since stays), what was skipped waits again.

        Raises `EditFailed` where nothing of it is decided.
        """
        await self._look()
        async with self._alone():
            picks = await self._as_seen(picks)
            changes = [self._named(name) for name in dict.fromkeys(pick.change for pick in picks)]
            skipped = [change for change in changes if is_skipped(change, picks)]
            for change in skipped:
                await self._journal.record(e.ChangeMoved(change.id, *unskipped(change, picks)))
            applied = [change for change in changes if change not in skipped]
            if applied:
                await self._looked_at_again(lambda: self._history.take_back(applied, picks))

    @call(changes=False)
    async def preview(self, checkpoint: str) -> list[Preview]:
        """What undoing that apply (or redoing it, where it is undone) would do to each file as it is now."""
        return await self._history.preview(checkpoint)

    @call(changes=False)
    async def conflict(self, change_id: str) -> ConflictView:
        """The places where a change and the file as it is now disagree."""
        return await self._conflicts.conflict(self._named(change_id))

    @call(changes=True)
    async def settle(
        self, change_id: str, sides: Sequence[Side], by_hand: Mapping[int, str] | None = None, seen: str = ""
    ) -> None:
        """Settle a conflict, a side for each place in order; `by_hand` are texts instead, by place from 0.

        `seen` is the hash of the file that was shown (`ConflictView.now`): refused where it is another by now.
        """
        async with self._alone():
            change = self._named(change_id)
            if change.state != "conflict":
                raise SessionError(f"{change.path} is {change.state}", "only a conflict is settled")
            await self._conflicts.settle(change, sides, by_hand or {}, seen)

    @call(changes=True)
    async def edit_hunk(self, pick: Pick, text: str) -> None:
        """Let a hunk that waits add this text instead of the one that was proposed."""
        async with self._one_at_a_time:
            (pick,) = await self._as_seen([pick])
            await self._conflicts.edit_hunk(self._named(pick.change), pick.hunk or 0, text)

    @call(changes=True)
    async def comment(self, pick: Pick, text: str) -> None:
        """Say something about a hunk to the model: it is a fact in the next request."""
        if text.strip():
            async with self._one_at_a_time:
                (pick,) = await self._as_seen([pick])
                await self._conflicts.comment(self._named(pick.change), pick, text.strip())

    @call(changes=True)
    async def undo(self, checkpoint: str = "") -> None:
        """Take back an apply: the one named, or the last that was not undone."""
        await self._look()
        async with self._alone():
            await self._looked_at_again(lambda: self._history.undo(checkpoint))

    @call(changes=True)
    async def redo(self, checkpoint: str = "") -> None:
        """Do again what was undone: the apply named, or the last that was undone."""
        await self._look()
        async with self._alone():
            await self._looked_at_again(lambda: self._history.redo(checkpoint))

    # ── git ──────────────────────────────────────────────────────────────────────────────────────────────

    @call(changes=False)
    def versions(self) -> list[Version]:
        """What a file can be compared with: the last commit, and every apply that git keeps."""
        return self._versions.all()

    @call(changes=False)
    async def version_diff(self, path: str, version: str) -> Diff:
        """A file as it is now, unsaved text included, against a version."""
        return await self._versions.diff(path, version)

    @call(changes=False)
    async def commit_plan(self) -> CommitPlan:
        """What a commit can hold. Raises `SessionError` where there is nothing to commit."""
        return await self._versions.commit_plan()

    @call(changes=False)
    async def commit_file(self, path: str) -> Diff:
        """What a commit would change in a file."""
        return await self._versions.commit_file(path)

    @call(changes=True)
    async def draft_commit(self, plan: CommitPlan) -> str:
        """The message that the model would give it; a small request of its own. Raises a `ModelError`."""
        return await self._draft(await self._versions.for_model(plan))

    @call(changes=True)
    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Commit the files of the plan, and nothing else; the commit's name. The hooks that it has are run."""
        return await self._versions.commit(message, plan)

    # ── for the session ──────────────────────────────────────────────────────────────────────────────────

    @call(changes=False)
    def keep_no_versions(self) -> None:
        """Let git keep nothing of what is applied from now on."""
        self._versions.keep_none()

    @call(changes=False)
    async def close(self) -> None:
        """Wait until every apply so far has its commit."""
        await self._versions.settled()

    @call(changes=False)
    async def heal(self) -> list[str]:
        """Settle what a crash, or a disk that failed, left half done; sentences on what was done."""
        return await self._writer.heal(recorded_names(self.state.review))

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

    def _refuse_broken(self, broken: Sequence[Change]) -> None:
        """Raises `EditFailed` that names them, where there are any."""
        if broken:
            why = [f": {change.reason}" if change.reason else "" for change in broken]
            names = ", ".join(
                f"{change.path} ({change.state}{because})"
                for change, because in zip(broken, why, strict=True)
            )
            raise EditFailed(
                f"Nothing was written, because of {names}", "skip it, or apply the others one by one"
            )

    def _open_changes(self, picks: Sequence[Pick]) -> list[Change]:
        """The changes that a decision is about, oldest first. Raises `SessionError` for what cannot be decided."""
        review = self.state.review
        if not picks:
            if not review.open:
                self._refuse_broken(
                    [change for change in review.changes if change.state in ("failed", "conflict")]
                )
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
        change = self.state.review.change(change_id)
        if change is None:
            raise SessionError(f"There is no change {change_id}", "choose one from the review")
        return change

    def _diff(self, change: Change) -> Diff:
        base, new = text_under(self._blobs, change.base), text_under(self._blobs, change.new)
        return diff_of(change.path, base or "", new or "")


def _skipped(change: Change, picks: Sequence[Pick]) -> str:
    chosen = picked(change, picks)
    if len(chosen) == len(change.hunks):
        return f"{change.called} was skipped by the person."
    numbers = ", ".join(str(number + 1) for number in sorted(chosen))
    return f"{change.called}: the person skipped hunk {numbers} of {len(change.hunks)}."
