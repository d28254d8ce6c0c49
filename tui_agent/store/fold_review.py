"""Folding changes, checkpoints, and the todos that they tick."""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeState, FileStep
from tui_agent.store import events as e
from tui_agent.store.state import ChatMessage, ReviewSlice, State, Todo

#: A todo whose changes are all in one of these, one of them applied, is done.
DECIDED: frozenset[ChangeState] = frozenset({"applied", "skipped"})


def _proposed(state: State, event: e.ChangeProposed) -> State:
    new = event.change
    before = [change for change in state.review.changes if change.id != new.id]
    changes = tuple(_replaced_by(_with_rival(change, before, new), new) for change in before)
    state = replace(state, review=replace(state.review, changes=(*changes, new)))
    return _tick(_note_change(_tie_todo(state, new), new), new.id)


def _with_rival(change: Change, before: list[Change], new: Change) -> Change:
    """Where the change that this one conflicts with gives way, it conflicts with the new one."""
    if not change.rival:
        return change
    rival = next((other for other in before if other.id == change.rival), None)
    gives_way = rival is not None and rival.path == new.path and rival.is_open and not new.rival
    return replace(change, rival=new.id) if gives_way and change.state == "conflict" else change


def _replaced_by(change: Change, new: Change) -> Change:
    waits = change.is_open or change.state in ("failed", "conflict")
    if change.path != new.path or not waits or change.id == new.rival or change.rival == new.id:
        return change
    if change.is_open and new.state == "failed":
        return change  # what has no place takes none: the person decides about the one that has
    if not change.is_open and (change.tasks or not new.turn):
        return change  # the new one does not hold it: both wait to be settled
    hunks = tuple("skipped" if hunk == "pending" else hunk for hunk in change.hunks)
    state = "applied" if "applied" in hunks else "skipped"
    return replace(change, state=state, hunks=hunks, reason=f"replaced by {new.id}")


def _tie_todo(state: State, change: Change) -> State:
    if not change.todo:
        return state
    todos = tuple(
        replace(todo, changes=(*todo.changes, change.id), done=False)
        if todo.id == change.todo and change.id not in todo.changes
        else todo
        for todo in state.todos
    )
    return replace(state, todos=todos)


def _note_change(state: State, change: Change) -> State:
    """The agent's newest message names the changes that came with it."""
    messages = state.chat.messages
    for place in range(len(messages) - 1, -1, -1):
        message: ChatMessage = messages[place]
        if message.kind != "agent" or message.turn != change.turn:
            continue
        named = replace(message, changes=(*message.changes, change.id))
        messages = (*messages[:place], named, *messages[place + 1 :])
        return replace(state, chat=replace(state.chat, messages=messages))
    return state


def _moved(state: State, event: e.ChangeMoved) -> State:
    changes = state.review.changes
    at = next((number for number, change in enumerate(changes) if change.id == event.id), None)
    if at is None:
        return state
    changes = (*changes[:at], _with_move(changes[at], event), *changes[at + 1 :])
    if event.state in ("skipped", "undone"):
        changes = _freed(changes, event.id)
    return _tick(replace(state, review=replace(state.review, changes=changes)), event.id)


def _freed(changes: tuple[Change, ...], gone: str) -> tuple[Change, ...]:
    """Nothing is left to conflict with: the first of those that did waits again, and the others conflict with it."""
    against = [change for change in changes if change.rival == gone and change.state == "conflict"]
    if not against:
        return changes
    first, *others = against
    free = {first.id: replace(first, state="pending", rival="", reason="")}
    free |= {change.id: replace(change, rival=first.id) for change in others}
    return tuple(free.get(change.id, change) for change in changes)


def _reworked(state: State, event: e.ChangeReworked) -> State:
    new = event.change
    changes = tuple(new if change.id == new.id else change for change in state.review.changes)
    return _tick(replace(state, review=replace(state.review, changes=changes)), new.id)


def _with_move(change: Change, event: e.ChangeMoved) -> Change:
    return replace(
        change,
        state=event.state,
        hunks=event.hunks or change.hunks,
        reason=event.reason,
        written=event.written or change.written,
    )


def _tick(state: State, change_id: str) -> State:
    todos = tuple(_ticked(todo, state.review) if change_id in todo.changes else todo for todo in state.todos)
    return state if todos == state.todos else replace(state, todos=todos)


def _ticked(todo: Todo, review: ReviewSlice) -> Todo:
    states = [change.state for change in review.changes if change.id in todo.changes]
    return replace(todo, done="applied" in states and DECIDED.issuperset(states))


def _checkpoint(state: State, event: e.CheckpointMade) -> State:
    checkpoints = (*state.review.checkpoints, event.checkpoint)
    return replace(state, review=replace(state.review, checkpoints=checkpoints))


def _committed(state: State, event: e.CheckpointCommitted) -> State:
    checkpoints = tuple(
        replace(point, commit=event.commit) if point.id == event.id else point
        for point in state.review.checkpoints
    )
    return replace(state, review=replace(state.review, checkpoints=checkpoints))


def _undone(state: State, event: e.CheckpointUndone) -> State:
    checkpoints = tuple(
        replace(
            point,
            undone=event.undone,
            folders=event.folders or point.folders,
            files=tuple(_with_mode(step, event) for step in point.files),
        )
        if point.id == event.id
        else point
        for point in state.review.checkpoints
    )
    return replace(state, review=replace(state.review, checkpoints=checkpoints))


def _with_mode(step: FileStep, event: e.CheckpointUndone) -> FileStep:
    """The step with the permission bits that its file had when the event took it away, or put it back."""
    if (mode := event.modes.get(step.path)) is None:
        return step
    return replace(step, mode_after=mode) if event.undone else replace(step, mode=mode)


FOLDS = {
    e.ChangeProposed: _proposed,
    e.ChangeMoved: _moved,
    e.ChangeReworked: _reworked,
    e.CheckpointMade: _checkpoint,
    e.CheckpointCommitted: _committed,
    e.CheckpointUndone: _undone,
}
