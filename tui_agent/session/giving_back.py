"""A conflict of two sub-tasks given back to one of them, which does its part again on top of the other (T5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.errors import SessionError
from tui_agent.session.joining import Joining
from tui_agent.session.journal import Journal
from tui_agent.store import events as e
from tui_agent.store.state import State

_NOTE = (
    "You have done this part once, and what you changed in {path} does not go together with what {others} changed "
    "there. Your copy now holds that: do your part again on top of it, and keep what is there."
)


class GivingBack:
    def __init__(
        self, journal: Journal, joining: Joining, on_newest: Callable[[Change], Awaitable[Change]]
    ) -> None:
        self._journal = journal
        self._joining = joining
        self._on_newest = on_newest

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def give_back(self, change_id: str, task: str) -> None:
        """Let `task` begin again. What it had proposed goes from the review; what others did to those files stays.

        Raises `SessionError` where that is no conflict of that sub-task with another.
        """
        change = self.state.review.change(change_id)
        rival = self.state.review.change(change.rival) if change else None
        if change is None or rival is None or change.state != "conflict":
            raise SessionError(f"{change_id} is no conflict of two sub-tasks", "choose one from the review")
        both = (*rival.tasks, *change.tasks)
        others = tuple(name for name in both if name != task)
        if task not in both or not others:
            raise SessionError(f"{task} has no part in the conflict in {change.path}", f"choose of {both}")
        async with self._joining.one_at_a_time:
            await self._withdraw(task)
        note = _NOTE.format(path=change.path, others=", ".join(f"“{name}”" for name in others))
        await self._journal.record(e.SubTaskGivenBack(task, others, note))

    async def _withdraw(self, task: str) -> None:
        """Take a task's work out of what waits for review, and propose anew what others did to the same files."""
        given_up = [
            change
            for change in self.state.review.changes
            if task in change.tasks and (change.is_open or change.state == "conflict")
        ]
        why = f"given back to “{task}”"
        for change in given_up:
            hunks = tuple("skipped" if hunk == "pending" else hunk for hunk in change.hunks)
            await self._journal.record(e.ChangeMoved(change.id, "skipped", hunks, why))
        names = {change.id for change in given_up}
        for change in self.state.review.changes:
            if change.rival in names and change.state == "conflict":
                alone = replace(change, state="pending", rival="", reason="")
                await self._journal.record(e.ChangeReworked(await self._on_newest(alone)))
        for change in given_up:
            for name in change.tasks:
                other = self.state.subtasks.get(name)
                if name != task and other is not None and other.state == "completed":
                    await self._joining.take_again(other, change.path)
