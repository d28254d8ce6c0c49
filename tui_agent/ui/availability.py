"""Reasons why an action is currently unavailable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.store.state import State

Reason = Callable[["State"], str]


def why_not(action_id: str, state: State) -> str:
    """Returns the reason the action is unavailable, or "" if it is available."""
    pane = action_id.partition(".")[0]
    reason = _REASONS.get(action_id) or _REASONS.get(pane)
    return reason(state) if reason else ""


def _unless(condition: Callable[[State], object], why: str) -> Reason:
    return lambda state: "" if condition(state) else why


def _text(state: State) -> str:
    front = state.buffers.get(state.buffers.active)
    return _file(state) or ("not open as text" if front and front.note else "")


def _waits(state: State) -> str:
    if state.review.open:
        return ""
    broken = any(change.state in ("failed", "conflict") for change in state.review.changes)
    return "all changes failed or conflict" if broken else "nothing is pending"


_applied = _unless(lambda state: any(not p.undone for p in state.review.checkpoints), "nothing was applied")
_repository = _unless(lambda state: state.workspace.is_repository, "no git repository")
_undone = _unless(lambda state: any(p.undone for p in state.review.checkpoints), "nothing was undone")
_proposed = _unless(lambda state: state.review.changes, "no changes")
_conflict = _unless(lambda state: any(c.state == "conflict" for c in state.review.changes), "no conflict")
_decided = _unless(
    lambda state: any(
        "applied" in change.hunks or change.state == "applied" for change in state.review.changes
    ),
    "nothing was applied",
)
_file = _unless(lambda state: state.buffers.open, "no file is open")
_clash = _unless(
    lambda state: (front := state.buffers.get(state.buffers.active)) and front.clash, "no differences"
)
_command = _unless(lambda state: state.commands.results, "no command has run")
_todo = _unless(lambda state: state.todos, "no todos")
_task = _unless(lambda state: state.subtasks.tasks, "no sub-tasks")
_task_runs = _unless(lambda state: state.subtasks.running, "no sub-task is running")
_question = _unless(lambda state: state.turn.phase == "waiting", "no question is open")
_works = _unless(
    lambda state: state.turn.running or state.commands.running or state.subtasks.running, "nothing is running"
)
_ticked = _unless(
    lambda state: any(
        t.auto_execute and not t.wanted and t.state in ("pending", "ready") for t in state.subtasks.tasks
    ),
    "none is ticked",
)

#: By action id, or by pane as a default for its unlisted actions.
_REASONS: dict[str, Reason] = {
    **dict.fromkeys(
        (
            "changes.apply_all",
            *(
                f"review.{verb}{what}"
                for verb in ("apply", "skip")
                for what in ("", "_file", "_all", "_todo")
            ),
        ),
        _waits,
    ),
    **dict.fromkeys(("changes.undo", "review.undo"), _applied),
    **dict.fromkeys(("changes.redo", "review.redo"), _undone),
    **dict.fromkeys(("review.take_back", "review.take_back_file", "review.take_back_todo"), _decided),
    **dict.fromkeys(("review.yours", "review.theirs", "review.both"), _conflict),
    "review.give_back": _unless(
        lambda state: any(c.state == "conflict" and c.rival for c in state.review.changes), "no such conflict"
    ),
    "review": _proposed,
    **dict.fromkeys(("changes.commit", "files.diff"), _repository),
    "review.diff": lambda state: _proposed(state) or _repository(state),
    "buffers.diff": lambda state: _file(state) or _repository(state),
    "turn.stop": _unless(lambda state: state.turn.running or state.commands.running, "nothing is running"),
    "app.stop_everything": _works,
    "app.notices": _unless(lambda state: state.notices.items, "no notices"),
    **dict.fromkeys(("turn.run_ticked", "subtasks.run_ticked"), _ticked),
    **dict.fromkeys(("commands.again", "commands.online", "chat.tell_output"), _command),
    "commands.list": lambda state: "" if state.commands.running else _command(state),
    "commands.take": _unless(
        lambda state: any(result.changed for result in state.commands.results), "no command wrote anything"
    ),
    "session.permission": _unless(lambda state: state.asked is not None, "no question is open"),
    "pane.show_all": _unless(
        lambda state: state.layout.hidden or state.layout.zoomed or state.layout.sizes, "all panes are shown"
    ),
    "pane.hide": _unless(lambda state: state.layout.focus != "chat", "the chat cannot be hidden"),
    "buffers": _file,
    **dict.fromkeys(("buffers.save", "buffers.find", "buffers.replace"), _text),
    "buffers.merge": _clash,
    "known": _unless(lambda state: state.known.files, "no known files"),
    "plan": _unless(lambda state: state.plan.actions, "no plan"),
    **dict.fromkeys(("plan.choose", "plan.let_go", "plan.other"), _question),
    "chat.unqueue": _unless(lambda state: state.input.queue, "no message is queued"),
    "chat.copy": _unless(
        lambda state: any(message.kind == "agent" for message in state.chat.messages), "no answer yet"
    ),
    "todos": _todo,
    "todos.add": lambda state: "",
    "subtasks": _task,
    "subtasks.add": lambda state: "",
    **dict.fromkeys(("subtasks.stop", "subtasks.stop_all"), _task_runs),
}
