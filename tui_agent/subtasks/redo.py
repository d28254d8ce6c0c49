"""Restarts a sub-task: removes its proposals from the review and keeps other work on the same files."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec.structs import replace

from tui_agent.edits.change import Change, text_under
from tui_agent.edits.merge import merge
from tui_agent.edits.rebase import remaining, with_texts
from tui_agent.errors import EditFailed, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.log.journal import Journal
from tui_agent.review.conflicts import given_up
from tui_agent.store import events as e
from tui_agent.store.graph import SubTask, may_become
from tui_agent.store.state import State
from tui_agent.subtasks.merge import ResultMerger

_NOTE = (
    "You have done this part once, and what you changed in {path} does not go together with what {others} changed "
    "there. Your copy now holds that: do your part again on top of it, and keep what is there."
)


class SubTaskRestart:
    def __init__(self, journal: Journal, blobs: Blobs, merger: ResultMerger) -> None:
        self._journal = journal
        self._blobs = blobs
        self._merger = merger

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def retract(self, task: SubTask, why: str, *, all_of_it: bool = False) -> None:
        """Withdraws the undecided proposals of a task's last run.

        Inseparable changes stay; with `all_of_it` they raise `EditFailed` before anything is changed.
        """
        async with self._merger.one_at_a_time:
            parted: list[tuple[Change, Change | None]] = []
            paths = {step.path for step in task.changed}
            made = [
                change
                for change in self.state.review.changes
                if task.id in change.tasks
                and (change.is_open or change.state == "conflict")
                and not paths.isdisjoint((change.path, change.rename_to))
            ]
            for change in made:
                try:
                    parted.append((change, await asyncio.to_thread(self._without, change, task)))
                except EditFailed:
                    if all_of_it:
                        raise
            for change, rest in parted:
                changes = self.state.review.changes
                against = [
                    other.id for other in changes if other.rival == change.id and other.state == "conflict"
                ]
                if rest is not None:
                    await self._journal.record(e.ChangeReworked(await self._merger.together(None, rest)))
                else:
                    await self._journal.record(given_up(change, why))
                for name in against:
                    await self._look_again(name)

    async def redo(self, change_id: str, task: str) -> None:
        """Restarts `task`. Withdraws its proposals and keeps other changes of the same files.

        Raises `SessionError` if the change is not a conflict between that task and another.
        """
        change = self.state.review.change(change_id)
        rival = self.state.review.change(change.rival) if change else None
        if change is None or rival is None or change.state != "conflict":
            raise SessionError(
                f"{change_id} is not a conflict of two sub-tasks", "choose one from the review"
            )
        both = (*rival.tasks, *change.tasks)
        others = tuple(name for name in both if name != task)
        if task not in both or not others:
            raise SessionError(
                f"{task} has no part in the conflict in {change.path}", f"choose one of {', '.join(both)}"
            )
        found = self.state.subtasks.get(task)
        if found is None or not may_become(found, "pending"):
            raise SessionError(f"{task} cannot begin again", "settle the conflict by hand")
        await self.retract(found, f"given back to “{task}”", all_of_it=True)
        note = _NOTE.format(path=change.path, others=", ".join(f"“{name}”" for name in others))
        await self._journal.record(e.SubTaskGivenBack(task, others, note))

    def _without(self, change: Change, task: SubTask) -> Change | None:
        """The change without the task's part, or None if nothing remains. Blocking. Raises `EditFailed` if
        they are inseparable."""
        path = change.rename_to or change.path
        step = next((step for step in task.changed if step.path == path), None)
        alone = change.tasks == (task.id,)
        if alone and (step is None or not step.before or not step.after or not change.is_open):
            return None
        mixed = EditFailed(
            f"The work of “{task.id}” in {change.path} cannot be told from that of others",
            "settle the conflict by hand, or give it back to another",
        )
        if step is None or not step.before or not step.after:
            raise mixed
        read = partial(text_under, self._blobs)
        base = read(change.base) or ""
        merged = merge(read(step.after) or "", remaining(change, read) or "", read(step.before) or "")
        if merged.conflicts:
            raise mixed
        if merged.text == base and not change.rename_to:
            return None
        others = tuple(name for name in change.tasks if name != task.id)
        return with_texts(replace(change, tasks=others), base, merged.text, self._blobs.put_text)

    async def _look_again(self, name: str) -> None:
        """Merges a previously conflicting change again."""
        change = self.state.review.change(name)
        if change is None:
            return
        alone = replace(change, state="pending", rival="", reason="")
        beside = self._merger.beside(change.path)
        if beside is not None and beside.id == name:
            beside = None
        both = await self._merger.together(beside, alone)
        told: list[e.Event] = [e.ChangeReworked(both)]
        if beside is not None and both.state != "conflict":
            told.append(given_up(beside, f"joined into {name}"))
        await self._journal.record(*told)
