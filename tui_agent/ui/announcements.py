"""Announcements on the plain screen: one sentence per event, newest last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from textual.widgets import Static

from tui_agent.store.state import State
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.panes import PANES
from tui_agent.ui.safe_text import counted, one_line, plain
from tui_agent.ui.screen_reader import to_speech
from tui_agent.ui.widgets.line_view import fit
from tui_agent.ui.widgets.waiting import waiting_for_person

#: Visible rows, and the number of retained sentences.
ROWS, KEPT = 4, 200
#: Cells of a command in a sentence; the transcript has the whole.
_SPOKEN = 60
_PHASES = {
    "planning": "Making a plan.",
    "finding": "Finding files.",
    "asking": "Asking the model.",
    "streaming": "Receiving the answer.",
    "checking": "Running the checks.",
}


def announced(before: State, now: State, keys: Keys, silent_after: int = 30) -> Iterator[str]:
    """Yields a sentence for each state change that the normal screen shows only as a sign or colour."""
    if now.turn.running and now.turn.phase != before.turn.phase:
        yield _PHASES.get(now.turn.phase, "")
    if before.turn.running and not now.turn.running:
        yield _ended(now, keys)
    elif before.review != now.review and not now.turn.running:
        yield from _decided(before, now, keys)
    asked = now.asked
    if asked is not None and asked != before.asked:
        yield f"{asked.words.rstrip('?')}. {keys.shown('session.permission')} answers."
    waited = {it.words for it in waiting_for_person(before, time.time(), silent_after)}
    for waiting in waiting_for_person(now, time.time(), silent_after):
        if waiting.words not in waited:
            mark = "" if waiting.words.endswith("?") else "."
            yield f"{waiting.words}{mark} {keys.shown(f'pane.{waiting.pane}')} opens it."
    yield from _of_tasks(before, now)
    yield from _of_commands(before, now)
    if len(now.input.queue) > len(before.input.queue):
        verb = "waits" if len(now.input.queue) == 1 else "wait"
        yield f"{counted(len(now.input.queue), 'message')} {verb} in the queue."


def _ended(now: State, keys: Keys) -> str:
    turn = now.turn
    how = (
        "Reply done"
        if turn.ok
        else "Stopped"
        if turn.kind == "Interrupted"
        else f"The turn failed: {turn.error}"
    )
    if not now.review.open:
        return f"{how.rstrip('.')}."
    return f"{how.rstrip('.')}: {_waits(now)}. {keys.shown('pane.review')} opens the review."


def _decided(before: State, now: State, keys: Keys) -> Iterator[str]:
    gone = {point.id for point in now.review.checkpoints if point.undone}
    if gone - {point.id for point in before.review.checkpoints if point.undone}:
        yield f"Undone. {keys.shown('changes.redo')} redoes it."
    if _hunks(before) != _hunks(now):
        yield f"{_waits(now) if now.review.open else 'There is nothing to review'}."


def _waits(state: State) -> str:
    changes = counted(_hunks(state), "change")
    verb = "waits" if _hunks(state) == 1 else "wait"
    return f"{changes} in {counted(len(state.review.open), 'file')} {verb}"


def _hunks(state: State) -> int:
    return sum(max(change.hunks.count("pending"), 1) for change in state.review.open)


def _of_tasks(before: State, now: State) -> Iterator[str]:
    states = {task.id: task.state for task in before.subtasks.tasks}
    for task in now.subtasks.tasks:
        if states.get(task.id, "") != task.state and task.state not in ("pending", "ready"):
            yield f"Sub-task {task.id}: {task.state}."


def _of_commands(before: State, now: State) -> Iterator[str]:
    known = {command.id for command in before.commands.running}
    for command in now.commands.running:
        if command.id not in known:
            yield f"Running {fit(command.command, _SPOKEN)}."
    known = {result.id for result in before.commands.results}
    for result in now.commands.results:
        if result.id not in known:
            how = "done" if result.status == 0 else f"ended with status {result.status}"
            yield f"{fit(result.command, _SPOKEN)}: {how}, {counted(len(result.output.splitlines()), 'line')}."
    if before.checks.results != now.checks.results:
        for check in now.checks.results:
            if check not in before.checks.results:
                yield f"Check {check.name} {check.state}, {check.amount}.".replace(", .", ".")


class Announcements(Static):
    DEFAULT_CSS = f"Announcements {{ height: {ROWS}; }}"
    SLICES: ClassVar[tuple[str, ...]] = (
        *("turn", "review", "plan", "asked", "subtasks", "commands", "checks", "input", "layout"),
    )

    def __init__(self, keys: Keys, title: Callable[[str], str]) -> None:
        """`title` returns a pane's title, including its counts."""
        super().__init__("", markup=False)
        self._keys = keys
        self._title = title
        self._state: State | None = None
        self.said: list[str] = []

    def show(self, state: State) -> None:
        before, self._state = self._state, state
        if before is None:
            return
        if before.layout.focus != state.layout.focus:
            self.say([self._title(state.layout.focus) or PANES[state.layout.focus].title])
        self.say(announced(before, state, self._keys))

    def say(self, sentences: Iterable[str]) -> None:
        new = [to_speech(one_line(sentence)) for sentence in sentences if sentence]
        if new:
            self.said = [*self.said, *new][-KEPT:]
            self.update(plain("\n".join(self.said[-ROWS:])))
