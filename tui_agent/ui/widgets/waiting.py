"""Items in other panes that need the user: questions, conflicts, failed changes, stalled sub-tasks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.content import Content
from textual.widgets import Static

from tui_agent.edits.change import Change
from tui_agent.store.state import State
from tui_agent.ui.graph.facts import clock, silence
from tui_agent.ui.host import keys_of
from tui_agent.ui.safe_text import counted, parts
from tui_agent.ui.widgets.pane import Pane, Ticker

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class WaitingItem(NamedTuple):
    sign: str
    words: str
    pane: str


def waiting_for_person(state: State, now: float, silent_after: int) -> list[WaitingItem]:
    """`now` is in seconds since 1970; a sub-task is stalled after `silent_after` seconds without output."""
    found = []
    if state.turn.phase == "waiting" and state.asked is None:
        asking = next((it.action.name for it in state.plan.actions if it.state == "asking"), "")
        found.append(
            WaitingItem("?", f"Which file is “{asking}”?" if asking else "The plan has a question", "plan")
        )
    changes = broken_now(state)
    for kind, one, sign in (
        ("conflict", "Conflict in", "⚠"),
        ("failed", "Could not place the change to", "✗"),
    ):
        paths = [change.path for change in changes if change.state == kind]
        if paths:
            more = f" and {counted(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
            found.append(WaitingItem(sign, f"{one} {paths[0]}{more}", "review"))
    for task, quiet in stalled(state, now, silent_after).items():
        found.append(WaitingItem("◌", f"Sub-task {task} has been silent for {clock(quiet)}", "subtasks"))
    return found


def stalled(state: State, now: float, silent_after: int) -> dict[str, float]:
    quiet = {task: silence(it, now, silent_after) for task, it in state.subtasks.running.items()}
    return {task: seconds for task, seconds in quiet.items() if seconds}


def broken_now(state: State) -> list[Change]:
    changes, turn = state.review.changes, state.turn.number
    conflicts = [change for change in changes if change.state == "conflict"]
    return [*conflicts, *(change for change in changes if change.state == "failed" and change.turn == turn)]


class WaitingLines(Static):
    MOST = 4

    def __init__(self, session: Session) -> None:
        super().__init__("", id="elsewhere", markup=False)
        self._session = session
        self._lines: tuple[WaitingItem, ...] = ()
        self._ticker = Ticker(self, lambda: self.show(session.state), 5)
        self.display = False

    def show(self, state: State) -> None:
        """While sub-tasks run, a timer repeats this to detect stalls."""
        self._ticker.run(bool(state.subtasks.running))
        silent_after = self._session.loaded.settings.subtasks.silent_after
        lines = tuple(waiting_for_person(state, time.time(), silent_after)[: self.MOST])
        if lines == self._lines:
            return
        self._lines = lines
        self.display = bool(lines)
        keys = keys_of(self)
        rows = [
            parts(
                (f"{line.sign} ", "$failed" if line.sign == "✗" else "$warning"),
                line.words,
                (f" · {key}" if key else "", "$accent"),
                (f" {'answers' if line.sign == '?' else 'shows'} it" if key else "", "$muted"),
            )
            for line in lines
            for key in (keys.shown(f"pane.{line.pane}"),)
        ]
        self.update(Content("\n").join(rows))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset_capture(self).y
        if 0 <= at < len(self._lines):
            self.post_message(Pane.ActionAsked(f"pane.{self._lines[at].pane}"))
