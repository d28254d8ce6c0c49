"""The person's decisions about changes: shown, applied, skipped, undone and redone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tui_agent.edits.change import Change, Diff, Pick
from tui_agent.edits.hunks import diff_of
from tui_agent.errors import EditFailed, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode
from tui_agent.session.applying import Applying
from tui_agent.session.editing import Editing
from tui_agent.session.journal import Journal
from tui_agent.session.picking import Chosen, after_skip, choose
from tui_agent.session.undoing import Undoing
from tui_agent.session.writing import Writing
from tui_agent.store import events as e
from tui_agent.workspace.workspace import Workspace


class Decisions:
    """One decision at a time: each waits for the one before it."""

    def __init__(
        self, journal: Journal, workspace: Workspace, blobs: Blobs, editing: Editing, folder: Path
    ) -> None:
        self._journal = journal
        self._blobs = blobs
        writing = Writing(journal, workspace, blobs, editing, folder)
        self._writing = writing
        self._applying = Applying(journal, workspace, blobs, writing)
        self._undoing = Undoing(journal, blobs, writing)
        self._one_at_a_time = asyncio.Lock()

    async def diff(self, change_id: str) -> Diff:
        """The change as it can be shown; a file that goes shows every line as removed."""
        change = self._named(change_id)
        base, new = await asyncio.to_thread(self._texts, change)
        return await asyncio.to_thread(diff_of, change.path, base, new)

    async def apply(self, picks: Sequence[Pick]) -> None:
        """Write what was picked, or with no picks every open change, all or nothing. Raises `EditFailed`."""
        async with self._one_at_a_time:
            await self._applying.apply(self._chosen(picks), by_name=bool(picks))

    async def skip(self, picks: Sequence[Pick]) -> None:
        """Decide against what was picked; with no picks against every open change."""
        async with self._one_at_a_time:
            for chosen in self._chosen(picks):
                await self._journal.record(after_skip(chosen), e.ModelOwesNews(_skipped(chosen)))

    async def undo(self, checkpoint: str) -> None:
        async with self._one_at_a_time:
            await self._undoing.undo(checkpoint)

    async def redo(self, checkpoint: str) -> None:
        async with self._one_at_a_time:
            await self._undoing.redo(checkpoint)

    async def heal(self) -> list[str]:
        """Settle what a crash left half done; sentences on what was done."""
        recorded = [point.id for point in self._journal.store.state.review.checkpoints]
        return await self._writing.heal([*recorded, *self._undoing.recorded_names()])

    def _chosen(self, picks: Sequence[Pick]) -> list[Chosen]:
        review = self._journal.store.state.review
        for pick in picks:
            change = self._named(pick.change)
            if not change.is_open and change.state != "conflict":
                raise SessionError(
                    f"{change.id} ({change.path}) is {change.state}", "undo it first, or ask anew"
                )
        chosen = choose(review, picks)
        if not chosen:
            raise EditFailed("Nothing is pending", "ask the model for a change first")
        return chosen

    def _named(self, change_id: str) -> Change:
        change = self._journal.store.state.review.change(change_id)
        if change is None:
            raise SessionError(f"There is no change {change_id}", "choose one from the review")
        return change

    def _texts(self, change: Change) -> tuple[str, str]:
        return text_of(self._blobs, change.base), text_of(self._blobs, change.new)


def text_of(blobs: Blobs, key: str) -> str:
    """The text that is kept under a hash; empty for no file."""
    return decode(blobs.get(key)).text if key else ""


def _skipped(chosen: Chosen) -> str:
    if chosen.whole:
        return f"Your change to {chosen.change.path} was skipped by the person."
    numbers = ", ".join(str(number + 1) for number in sorted(chosen.hunks))
    return f"Of your change to {chosen.change.path} the person skipped hunk {numbers} of {len(chosen.change.hunks)}."
