"""The state of a session as one JSON line, the first line of each control connection."""

from __future__ import annotations

import os
from typing import Any

from tui_agent.files.text import one_line
from tui_agent.store.state import State

MOST_OF_TITLE = 80
#: Answers to a permission question, by number from 1.
PERMISSIONS = ("once", "session", "always", "no")


def state_line(state: State, *, attached: bool) -> dict[str, Any]:
    """The line `state`: `asks` is the open question or null, `choices` its answers by number from 1, `changes` the
    number of undecided changes, `cost` dollars or null."""
    asks, choices = question(state)
    return {
        "type": "state",
        "id": state.session.id,
        "pid": os.getpid(),
        "workspace": state.session.workspace,
        "name": state.session.name or None,
        "title": state.session.name or _first_words(state) or None,
        "state": word(state),
        "asks": asks or None,
        "choices": list(choices),
        "changes": len(state.review.open),
        "cost": state.usage.session.cost,
        "turn": state.turn.number,
        "attached": attached,
    }


def _first_words(state: State) -> str:
    """The begin of the oldest message of the user that is kept."""
    said = (message.text for message in state.chat.messages if message.kind == "person")
    return one_line(next(said, "")[:MOST_OF_TITLE])


def word(state: State) -> str:
    if state.turn.phase == "waiting":
        return "asks"
    if is_busy(state):
        return "works"
    if state.review.open:
        failed = any(mark.look == "failed" for mark in state.check_marks)
        return "checks failed" if failed else "has changes"
    return "done" if state.turn.number else "idle"


def is_busy(state: State) -> bool:
    if state.turn.running and state.turn.phase != "waiting":
        return True
    return bool(state.commands.running or state.checks.running or state.subtasks.running)


def question(state: State) -> tuple[str, tuple[str, ...]]:
    """The open question and its answers; ("", ()) without a question."""
    if state.turn.phase != "waiting":
        return "", ()
    if state.asked is not None:
        return state.asked.words, PERMISSIONS if state.asked.tool else ("once", "no")
    name = state.turn.waiting_for
    slot = next((slot for slot in state.plan.actions if slot.action.name == name), None)
    if slot is None:
        return name, ()
    return slot.question or f"Which file is “{name}”?", slot.nearest
