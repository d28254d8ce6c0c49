"""A line over the chat's input, while sub-tasks wait for the person's word: how many, and the keys to let them run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message
from textual.widgets import Static

from tui_agent.store.graph import SubTask
from tui_agent.store.state import State
from tui_agent.ui.sink import label

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class ApprovalLine(Static):
    """Shown the state like a pane; a click goes to the sub-tasks."""

    SLICES: ClassVar[tuple[str, ...]] = ("subtasks",)

    class ApprovalPressed(Message):
        pass

    def __init__(self, session: Session) -> None:
        super().__init__("", id="approving", markup=False)
        self._session = session
        self._words = ""
        self.display = False

    def show(self, state: State) -> None:
        words = self._said(state.subtasks.tasks)
        if words != self._words:
            self._words = words
            self.display = bool(words)
            self.update(label(words))

    def on_click(self) -> None:
        self.post_message(self.ApprovalPressed())

    def _said(self, tasks: Sequence[SubTask]) -> str:
        """Nothing where all that may run by itself does."""
        waiting = [task for task in tasks if task.state in ("pending", "ready") and not task.wanted]
        ticked = sum(task.auto_execute for task in waiting)
        autonomy = self._session.loaded.settings.autonomy
        if not waiting or autonomy == "auto":
            return ""
        keys = getattr(self.app, "keys", None)
        go, run, one = (keys.shown(name) for name in _KEYS) if keys else ("", "", "")
        if autonomy == "assisted" and ticked:
            return f"{_count(waiting)} · {run} run {ticked} ticked · {go} look"
        if any(task.wanted or task.state == "running" for task in tasks):
            return ""
        return f"{_count(waiting)} for you · {go} look, then {one} run"


_KEYS = ("pane.subtasks", "turn.run_ticked", "subtasks.run")


def _count(tasks: Sequence[SubTask]) -> str:
    return "1 sub-task waits" if len(tasks) == 1 else f"{len(tasks)} sub-tasks wait"
