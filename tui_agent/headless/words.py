"""Events in words, for a person who reads a terminal without a screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tui_agent.edits.change import Change
from tui_agent.files.visible import clean, one_line
from tui_agent.planning.chain import Attempt
from tui_agent.store import events as e
from tui_agent.store.state import State


def place(attempt: Attempt) -> str:
    """`1/3`, or `built in 1/1` for a pattern that the program tries after the model's."""
    rank = f"{attempt.index}/{attempt.total}"
    return rank if attempt.by == "model" else f"built in {rank}"


def words(event: e.Event, state: State) -> Iterator[tuple[Literal["out", "err"], str]]:
    """(stream, text) for what a reader wants to know; only a reply has more than one line."""
    match event:
        case e.AttemptEnded(attempt):
            mark = "found" if attempt.outcome == "hit" else attempt.why or attempt.outcome
            yield (
                "err",
                one_line(f"  {attempt.action}: {attempt.pattern} ({place(attempt)}) {mark}"),
            )
        case e.FallbackTaken(action, kind):
            yield "err", one_line(f"  {action}: nothing loaded, {kind.replace('_', ' ')}")
        case e.NoticeGiven(level, text):
            yield "err", one_line(f"{level}: {text}")
        case e.RetryCounted(seconds, attempt, why):
            yield "err", one_line(f"  {why}: attempt {attempt} in {seconds} s")
        case e.ReplyRead(summary=summary, message=message):
            for part in filter(None, (summary, message.strip())):
                yield "out", clean(part)
        case e.ChangeProposed(change):
            counts = f"+{change.added} −{change.removed}"
            yield "out", one_line(f"{change.id} {change.kind} {change.path} {counts}{_why(change)}")
        case e.ChangeMoved(id=name, state=now):
            change = state.review.change(name)
            if change is not None:
                yield "out", one_line(f"{change.id} {now} {change.path}{_why(change)}")
        case e.SubTaskMoved(id=name, state="running"):
            yield "err", one_line(f"  sub-task {name} runs")
        case e.SubTaskEnded(id=name):
            said = event.summary if event.state == "completed" else event.reason
            yield "out", one_line(f"sub-task {name} {event.state}{f': {said}' if said else ''}")


def _why(change: Change) -> str:
    return f" ({change.state}: {change.reason})" if change.reason else ""
