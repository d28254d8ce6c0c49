"""What a front end can ask of a session about changes: look, decide, go back, compare, commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tui_agent.edits.change import Change, Diff, Pick
from tui_agent.edits.conflicts import ConflictView, Side
from tui_agent.errors import EditFailed
from tui_agent.git.client import CommitPlan
from tui_agent.review.undo import Preview
from tui_agent.review.versions import Version
from tui_agent.store.state import State
from tui_agent.turn.retries import may_ask_again

if TYPE_CHECKING:
    from tui_agent.review.decisions import Decisions
    from tui_agent.session.turns import Turns
    from tui_agent.session.watching import Watching


class ReviewCalls:
    """The part of a session that is about changes; each call is carried out by its `Decisions`."""

    _decisions: Decisions
    _turns: Turns
    _watching: Watching
    model_name: str

    @property
    def state(self) -> State:
        raise NotImplementedError

    async def _draft(self, changes: str) -> str:
        raise NotImplementedError

    # ── review ───────────────────────────────────────────────────────────────────────────────────────────

    async def diff(self, change_id: str) -> Diff:
        """A change as it can be shown. Raises `SessionError` for an id that is not there."""
        return await self._decisions.diff(change_id)

    async def apply(self, picks: Sequence[Pick] = ()) -> None:
        """Write what was picked (nothing picked: all that is pending), all or nothing.

        All that is pending waits for a reply that is still being proposed, and says so. Raises `EditFailed` where
        something conflicts; the model is then asked again for it, as if in the turn that proposed it.
        """
        if picks or await self._turns.batch_complete():
            await self._watching.look_for_gone()
            before = self.state.review.changes
            try:
                await self._decisions.apply(picks)
            except EditFailed:
                self._ask_again([change for change in self.state.review.changes if change not in before])
                raise

    def _ask_again(self, changes: Sequence[Change]) -> None:
        """What conflicts goes back to the model at once, a few times only; a rehearsal has nothing else to say."""
        conflicts = [change for change in changes if may_ask_again(change)]
        if conflicts and self.model_name and not self.state.session.rehearsal:
            self._turns.ask_again(conflicts)

    async def skip(self, picks: Sequence[Pick] = ()) -> None:
        """Decide against what was picked (nothing picked: all that is pending or in conflict)."""
        await self._decisions.skip(picks)

    async def undo(self, checkpoint: str = "") -> None:
        """Take back an apply: the one named, or the last that was not undone."""
        await self._watching.look_for_gone()
        await self._decisions.undo(checkpoint)

    async def redo(self, checkpoint: str = "") -> None:
        """Do again what was undone: the apply named, or the last that was undone."""
        await self._watching.look_for_gone()
        await self._decisions.redo(checkpoint)

    async def take_back(self, picks: Sequence[Pick]) -> None:
        """Take applied hunks or changes out of their files again; what was written since stays."""
        await self._watching.look_for_gone()
        await self._decisions.take_back(picks)

    async def preview(self, checkpoint: str) -> list[Preview]:
        """What undoing that apply (or redoing it, where it is undone) would do to each file as it is now."""
        return await self._decisions.preview(checkpoint)

    async def conflict(self, change_id: str) -> ConflictView:
        """The places where a change and the file as it is now disagree."""
        return await self._decisions.conflict(change_id)

    async def settle(
        self, change_id: str, sides: Sequence[Side], by_hand: Mapping[int, str] | None = None, seen: str = ""
    ) -> None:
        """Settle a conflict, a side for each place in order; `by_hand` are texts instead, by place from 0.

        `seen` is the hash of the file that was shown (`ConflictView.now`): refused where it is another by now.
        """
        await self._decisions.settle(change_id, sides, by_hand or {}, seen)

    async def edit_hunk(self, pick: Pick, text: str) -> None:
        """Let a hunk that waits add this text instead of the one that was proposed."""
        await self._decisions.edit_hunk(pick, text)

    async def comment(self, pick: Pick, text: str) -> None:
        """Say something about a hunk to the model: it is a fact in the next request."""
        await self._decisions.comment(pick, text)

    # ── git ──────────────────────────────────────────────────────────────────────────────────────────────

    def versions(self) -> list[Version]:
        """What a file can be compared with: the last commit, and every apply that git keeps."""
        return self._decisions.versions.all()

    async def version_diff(self, path: str, version: str) -> Diff:
        """A file as it is now, unsaved text included, against a version."""
        return await self._decisions.versions.diff(path, version)

    async def commit_plan(self) -> CommitPlan:
        """What a commit would hold. Raises `SessionError` where there is nothing to commit."""
        return await self._decisions.versions.commit_plan()

    async def draft_commit(self, plan: CommitPlan) -> str:
        """The message that the model would give it; a small request of its own. Raises a `ModelError`."""
        return await self._draft(await self._decisions.versions.for_model(plan))

    async def commit(self, message: str, plan: CommitPlan) -> str:
        """Commit what the plan says, and nothing else; the commit's name. Hooks are not run."""
        return await self._decisions.versions.commit(message, plan)
