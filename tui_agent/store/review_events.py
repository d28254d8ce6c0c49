"""Events of changes: proposed, decided, written, undone."""

from __future__ import annotations

from typing import Literal

from msgspec import field
from msgspec.structs import replace

from tui_agent.edits.change import Change, ChangeState, Checkpoint, FileStep, HunkState
from tui_agent.store.event import Lasting
from tui_agent.store.state import ChatMessage, State

#: A todo is done if all its changes have these states and one is applied.
DECIDED: frozenset[ChangeState] = frozenset({"applied", "skipped"})


class ChangeProposed(Lasting, frozen=True):
    """It replaces an open change of the same path."""

    change: Change

    def apply(self, state: State) -> State:
        new = self.change
        before = [change for change in state.review.changes if change.id != new.id]
        changes = tuple(_replaced_by(_with_rival(change, before, new), new) for change in before)
        state = replace(state, review=replace(state.review, changes=(*changes, new)))
        return _tick(_note_change(_tie_todo(state, new), new), new.id)


class ChangeMoved(Lasting, frozen=True):
    """`reason` is for the user."""

    id: str
    state: Literal["pending", "merged", "conflict", "applied", "skipped", "undone", "failed"]
    hunks: tuple[HunkState, ...] = ()
    reason: str = ""
    written: str = ""

    def apply(self, state: State) -> State:
        changes = state.review.changes
        at = next((number for number, change in enumerate(changes) if change.id == self.id), None)
        if at is None:
            return state
        moved = replace(
            changes[at],
            state=self.state,
            hunks=self.hunks or changes[at].hunks,
            reason=self.reason,
            written=self.written or changes[at].written,
        )
        changes = (*changes[:at], moved, *changes[at + 1 :])
        if self.state in ("skipped", "undone"):
            changes = _freed(changes, self.id)
        return _tick(replace(state, review=replace(state.review, changes=changes)), self.id)


class ChangeReworked(Lasting, frozen=True):
    """An open change was edited, resolved or commented."""

    change: Change

    def apply(self, state: State) -> State:
        new = self.change
        changes = tuple(new if change.id == new.id else change for change in state.review.changes)
        return _tick(replace(state, review=replace(state.review, changes=changes)), new.id)


class CheckpointMade(Lasting, frozen=True):
    """States of the written files before and after."""

    checkpoint: Checkpoint

    def apply(self, state: State) -> State:
        checkpoints = (*state.review.checkpoints, self.checkpoint)
        return replace(state, review=replace(state.review, checkpoints=checkpoints))


class CheckpointCommitted(Lasting, frozen=True):
    """As a private commit of the work tree."""

    id: str
    commit: str

    def apply(self, state: State) -> State:
        checkpoints = tuple(
            replace(point, commit=self.commit) if point.id == self.id else point
            for point in state.review.checkpoints
        )
        return replace(state, review=replace(state.review, checkpoints=checkpoints))


class CheckpointUndone(Lasting, frozen=True):
    """Or redone, if `undone` is False. The hashes are those on disk afterwards; `folders` were created for
    its files; `modes` are the earlier permission bits."""

    id: str
    undone: bool
    written: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    modes: dict[str, int] = field(default_factory=dict)

    def apply(self, state: State) -> State:
        checkpoints = tuple(
            replace(
                point,
                undone=self.undone,
                folders=self.folders or point.folders,
                files=tuple(self._with_mode(step) for step in point.files),
            )
            if point.id == self.id
            else point
            for point in state.review.checkpoints
        )
        return replace(state, review=replace(state.review, checkpoints=checkpoints))

    def _with_mode(self, step: FileStep) -> FileStep:
        if (mode := self.modes.get(step.path)) is None:
            return step
        return replace(step, mode_after=mode) if self.undone else replace(step, mode=mode)


def _with_rival(change: Change, before: list[Change], new: Change) -> Change:
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
        return change  # An unplaceable change replaces nothing.
    if not change.is_open and (change.tasks or not new.turn):
        return change  # The new change does not contain it; both remain open.
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
    messages = state.chat.messages
    for place in range(len(messages) - 1, -1, -1):
        message: ChatMessage = messages[place]
        if message.kind != "agent" or message.turn != change.turn:
            continue
        named = replace(message, changes=(*message.changes, change.id))
        messages = (*messages[:place], named, *messages[place + 1 :])
        return replace(state, chat=replace(state.chat, messages=messages))
    return state


def _freed(changes: tuple[Change, ...], gone: str) -> tuple[Change, ...]:
    against = [change for change in changes if change.rival == gone and change.state == "conflict"]
    if not against:
        return changes
    first, *others = against
    free = {first.id: replace(first, state="pending", rival="", reason="")}
    free |= {change.id: replace(change, rival=first.id) for change in others}
    return tuple(free.get(change.id, change) for change in changes)


def _tick(state: State, change_id: str) -> State:
    todos = []
    for todo in state.todos:
        if change_id in todo.changes:
            states = [change.state for change in state.review.changes if change.id in todo.changes]
            todo = replace(todo, done="applied" in states and DECIDED.issuperset(states))
        todos.append(todo)
    return state if tuple(todos) == state.todos else replace(state, todos=tuple(todos))
