"""A conflict of two sub-tasks given back to one of them, which does its part again on top of the other."""

from __future__ import annotations

from tui_agent.errors import SessionError
from tui_agent.log.journal import Journal
from tui_agent.session.withdrawing import Withdrawing
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.subtasks.graph import may_become

_NOTE = (
    "You have done this part once, and what you changed in {path} does not go together with what {others} changed "
    "there. Your copy now holds that: do your part again on top of it, and keep what is there."
)


class GivingBack:
    def __init__(self, journal: Journal, withdrawing: Withdrawing) -> None:
        self._journal = journal
        self._withdrawing = withdrawing

    @property
    def state(self) -> State:
        return self._journal.store.state

    async def give_back(self, change_id: str, task: str) -> None:
        """Let `task` begin again. What it had proposed goes from the review; what others did to those files stays.

        Raises `SessionError` where that is not a conflict of that sub-task with another.
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
            raise SessionError(f"{task} has no part in the conflict in {change.path}", f"choose of {both}")
        found = self.state.subtasks.get(task)
        if found is None or not may_become(found, "pending"):
            raise SessionError(f"{task} cannot begin again", "settle the conflict by hand")
        await self._withdrawing.withdraw(found, f"given back to “{task}”", all_of_it=True)
        note = _NOTE.format(path=change.path, others=", ".join(f"“{name}”" for name in others))
        await self._journal.record(e.SubTaskGivenBack(task, others, note))
