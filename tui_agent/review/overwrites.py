"""Applied changes whose files another program saves with its earlier text: they are pending again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from tui_agent.edits.change import Change, Checkpoint, FileStep, text_under
from tui_agent.edits.merge import merge
from tui_agent.edits.rebase import joined
from tui_agent.edits.resolve import place, reopened
from tui_agent.errors import TuiAgentError
from tui_agent.log.core import Core
from tui_agent.review.writer import Writer, is_overwritten
from tui_agent.store import events as e
from tui_agent.store.event import Event
from tui_agent.store.state import State

#: Seconds after an apply; later such a text is a decision of its author.
LOOKED_FOR = 600.0
WITHOUT_IT = "another program saved the file without it"


class Overwrites:
    """An editor that had opened a file before an apply may save over it much later. Without a common line such a
    save looks like an edit by hand, so only changes that it lacks as a whole are pending again, on its text."""

    def __init__(self, core: Core, writer: Writer, deciding: asyncio.Lock) -> None:
        self._journal = core.journal
        self._blobs = core.blobs
        self._writer = writer
        self._deciding = deciding
        self._looking = set[asyncio.Task[None]]()
        #: Monotonic deadlines of applied files.
        self._until: dict[str, float] = {}
        core.journal.store.subscribe(self._note)

    def look_later(self, paths: Iterable[str]) -> None:
        """Checks files that a program may have changed, after the current decision."""
        if recent := [path for path in paths if path in self._until]:
            task = asyncio.get_running_loop().create_task(self._look(recent))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def close(self) -> None:
        for task in self._looking:
            task.cancel()

    async def _look(self, paths: Iterable[str]) -> None:
        async with self._deciding:
            await self.look(paths)

    async def look(self, paths: Iterable[str]) -> None:
        for path in paths:
            if self._until.get(path, 0.0) < time.monotonic():
                self._until.pop(path, None)
            elif events := await asyncio.to_thread(self._news, path):
                self._until.pop(path, None)
                await self._journal.record(*events)

    def _news(self, path: str) -> list[e.Lasting]:
        """Blocking."""
        points, review = self._lacking(path), self._journal.store.state.review
        again: list[Change] = []
        for change in review.changes:
            picks = [pick for point in points for pick in point.picks if pick.change == change.id]
            if picks and place(change) == path:
                again.append(
                    replace(change, state="pending", hunks=reopened(change, picks)[1], reason=WITHOUT_IT)
                )
        if not again:
            return []
        events: list[e.Lasting] = [
            e.ModelOwesNews(f"{change.called} is pending again: {WITHOUT_IT}.") for change in again
        ]
        others = {change.id for change in again}
        whole, *later = (*again, *(c for c in review.open if c.path == path and c.id not in others))
        for change in later:  # A file has one open change.
            both = joined(whole, change, partial(text_under, self._blobs), self._blobs.put_text)
            if both.state == "conflict":
                events.append(e.ChangeReworked(whole))
            else:
                hunks = tuple("skipped" if hunk == "pending" else hunk for hunk in whole.hunks)
                events.append(e.ChangeMoved(whole.id, "skipped", hunks, f"joined into {change.id}"))
                both = replace(both, state="pending", reason=WITHOUT_IT)
            whole = both
        said = f"{path} was saved by another program with its text from before the apply"
        remedy = "the change is pending again, and applying it merges both"
        return [*events, e.ChangeReworked(whole), e.NoticeGiven("warning", f"{said}: {remedy}")]

    def _lacking(self, path: str) -> list[Checkpoint]:
        """Applies in force of which the file has nothing. Blocking."""
        try:
            now = self._writer.read_current(path).text
        except TuiAgentError:
            return []
        points = [
            point
            for point in self._journal.store.state.review.checkpoints
            if not point.undone and not point.takes_back
        ]
        return [
            point for point in points for step in point.files if step.path == path and self._lacks(step, now)
        ]

    def _lacks(self, step: FileStep, now: str | None) -> bool:
        before, after = text_under(self._blobs, step.before), text_under(self._blobs, step.after)
        if before is None or after is None or now is None or now == before:  # Taken back, for example by git.
            return False
        try:
            return is_overwritten(before, after, now) and not merge(before, now, after).conflicts
        except TuiAgentError:
            return False

    def _note(self, event: Event, state: State) -> None:
        match event:
            case e.CheckpointMade(point) if not point.takes_back:
                edited = [step.path for step in point.files if step.before and step.after]
                self._until |= dict.fromkeys(edited, time.monotonic() + LOOKED_FOR)
            case e.CheckpointMade(point):
                for step in point.files:
                    self._until.pop(step.path, None)
            case e.CheckpointUndone(name):
                for point in state.review.checkpoints:
                    for step in point.files if point.id == name else ():
                        self._until.pop(step.path, None)
            case e.FreshnessChanged(path, "disk"):
                self.look_later([path])
            case e.BufferSaved(path):  # By hand, with the change in view.
                self._until.pop(path, None)
