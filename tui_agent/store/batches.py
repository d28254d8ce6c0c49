"""Batches of files processed over several turns: done, in the current turn, or waiting.

Each function expects plan, registry and review as they are after the event.
"""

from __future__ import annotations

from msgspec.structs import replace

from tui_agent.answers.values import NextStep
from tui_agent.context.known_files import KnownFile
from tui_agent.context.memory import GO_ON, asks_to_go_on
from tui_agent.store.state import ActionSlice, Batch, State, Todo


def postpone_files(state: State, paths: tuple[str, ...], *, for_room: bool) -> State:
    """Files without room wait in their batch; unreadable files leave it."""
    gone = set(paths)
    if not for_room:
        for batch in state.batches:
            if gone & set(batch.left):
                left = tuple(path for path in batch.left if path not in gone)
                state = _with(
                    state, replace(batch, left=left, total=batch.total - len(batch.left) + len(left))
                )
        return state
    for slot in state.plan.actions:
        if slot.action.all and gone & set(slot.left_out):
            state = _with(state, _waiting(state, slot, paths))
    return state


def _waiting(state: State, slot: ActionSlice, paths: tuple[str, ...]) -> Batch:
    """The action's batch, with `paths` added to the waiting files."""
    batch = next((one for one in state.batches if _is_of(one, slot, state.turn.number)), None)
    if batch is None:
        hit = next((one.pattern for one in reversed(slot.attempts) if one.outcome == "hit"), slot.action.name)
        return Batch(
            id=f"batch{state.turn.number}.{sum(one.turn == state.turn.number for one in state.batches) + 1}",
            name=slot.action.name,
            pattern=hit,
            request=_request(state),
            turn=state.turn.number,
            total=len(slot.loaded) + len(slot.left_out),
            left=slot.left_out,
            now=slot.loaded,
        )
    new = tuple(path for path in paths if path not in batch.left)
    return replace(
        batch, left=(*new, *batch.left), now=tuple(path for path in batch.now if path not in set(paths))
    )


def _is_of(batch: Batch, slot: ActionSlice, turn: int) -> bool:
    return batch.id == slot.action.batch or (batch.turn, batch.name) == (turn, slot.action.name)


def _request(state: State) -> str:
    """The user's request, unless the turn only continues earlier work."""
    turn = state.turn
    if not asks_to_go_on(turn.request, turn.number):
        return turn.request
    real = [text for text in state.input.history if not asks_to_go_on(text, turn.number)]
    return real[-1] if real else turn.request


def loaded(state: State, file: KnownFile, action: str) -> State:
    """Assigns a file loaded for a batch action to the current turn."""
    if not action or file.loaded_by == "bundle":
        return state
    for batch in state.batches:
        if file.path in batch.left and any(
            slot.action.name == action and _is_of(batch, slot, state.turn.number)
            for slot in state.plan.actions
        ):
            left = tuple(path for path in batch.left if path != file.path)
            state = _with(state, replace(batch, left=left, now=(*batch.now, file.path)))
    return state


def turn_ended(state: State, turn: int, *, whole: bool) -> State:
    """Marks the turn's files as done if it ended well (`whole`); otherwise, or with an unplaceable change,
    only changed files."""
    changes = [change for change in state.review.changes if change.turn == turn]
    changed = {change.path for change in changes if change.state != "failed"}
    failed = {change.path for change in changes} - changed
    last = next((one for one in reversed(state.chat.messages) if one.kind == "agent"), None)
    whole = whole and not (last is not None and last.turn == turn and last.cut)
    for batch in state.batches:
        if not batch.now and batch.turn != turn:
            continue
        again = [path for path in batch.now if path in failed or not (whole or path in changed)]
        left = tuple(path for path in (*again, *batch.left) if path not in changed)
        done = batch.total - len(left)
        state = _with(state, replace(batch, left=left, now=(), last=done - batch.done))
    if not state.batches:
        return state
    first = state.batches[0]
    step = NextStep(f"Go on with {first.name}: {first.done} of {first.total} files are done", GO_ON[0])
    others = tuple(one for one in state.chat.next_steps if one.input_text != step.input_text)
    return replace(state, chat=replace(state.chat, next_steps=(step, *others)))


def _with(state: State, batch: Batch) -> State:
    """Updates a batch and its todo; a completed batch is removed."""
    known = any(one.id == batch.id for one in state.batches)
    batches = (batch if one.id == batch.id else one for one in (*state.batches, *(() if known else (batch,))))
    text = f"{batch.name}: {batch.done} of {batch.total:,} files"
    todo = Todo(batch.id, text, batch.request[:500], not (batch.left or batch.now), batch.turn)
    todos = tuple(
        replace(one, text=text, done=todo.done) if one.id == batch.id else one for one in state.todos
    )
    if not known:
        todos = (*todos, todo)
    return replace(state, batches=tuple(one for one in batches if one.left or one.now), todos=todos)


def cancel_batch(state: State, name: str) -> State:
    """Cancels a batch whose todo is removed or ticked."""
    if all(batch.id != name for batch in state.batches):
        return state
    return replace(state, batches=tuple(batch for batch in state.batches if batch.id != name))
