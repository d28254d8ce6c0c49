"""The work of a sub-task taken out of what waits for review; what others did to the same files stays."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.edits.joining import remaining, with_texts
from tui_agent.edits.merge import merge
from tui_agent.edits.texts import text_under
from tui_agent.files.blobs import Blobs
from tui_agent.session.joining import Joining
from tui_agent.session.journal import Journal
from tui_agent.session.rivals import given_up
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.subtasks.graph import SubTask


class Withdrawing:
    def __init__(self, journal: Journal, blobs: Blobs, joining: Joining) -> None:
        self._journal = journal
        self._blobs = blobs
        self._joining = joining

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def withdraw(self, task: SubTask, why: str) -> None:
        """Take out what the last run of a task proposed, as far as nobody decided about it."""
        paths = {step.path for step in task.changed}
        async with self._joining.one_at_a_time:
            for change in self.state.review.changes:
                mine = task.id in change.tasks and not paths.isdisjoint((change.path, change.rename_to))
                if mine and (change.is_open or change.state == "conflict"):
                    await self._give_up(change, task, why)

    async def _give_up(self, change: Change, task: SubTask, why: str) -> None:
        changes = self.state.review.changes
        against = [other.id for other in changes if other.rival == change.id and other.state == "conflict"]
        rest = await asyncio.to_thread(self._without, change, task)
        if rest is not None:
            await self._journal.record(e.ChangeReworked(await self._joining.together(None, rest)))
        else:
            await self._journal.record(given_up(change, why))
        for name in against:
            await self._look_again(name)
        if rest is None:
            await self._take_again(change, task)

    def _without(self, change: Change, task: SubTask) -> Change | None:
        """The work of others in a change; None where there is none, or it cannot be told apart. Blocking."""
        path = change.rename_to or change.path
        step = next((step for step in task.changed if step.path == path), None)
        if step is None or not step.before or not step.after or not change.is_open or change.kind == "delete":
            return None
        read = partial(text_under, self._blobs)
        base = read(change.base) or ""
        merged = merge(read(step.after) or "", remaining(change, read) or "", read(step.before) or "")
        if merged.conflicts or (merged.text == base and not change.rename_to):
            return None
        others = tuple(name for name in change.tasks if name != task.id)
        return with_texts(replace(change, tasks=others), base, merged.text, self._blobs.put_text)

    async def _look_again(self, name: str) -> None:
        """Bring what conflicted with a change together with what waits there now."""
        change = self.state.review.change(name)
        if change is None:
            return
        alone = replace(change, state="pending", rival="", reason="")
        beside = self._joining.beside(change.path)
        if beside is not None and beside.id == name:
            beside = None
        both = await self._joining.together(beside, alone)
        told: list[e.Event] = [e.ChangeReworked(both)]
        if beside is not None and both.state != "conflict":
            told.append(given_up(beside, f"joined into {name}"))
        await self._journal.record(*told)

    async def _take_again(self, change: Change, task: SubTask) -> None:
        for name in change.tasks:
            other = self.state.subtasks.get(name)
            if name != task.id and other is not None and other.state == "completed":
                await self._joining.take_again(other, change)
