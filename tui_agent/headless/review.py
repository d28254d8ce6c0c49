"""`tui-agent apply | skip | undo | redo`: the review without a screen."""

from __future__ import annotations

import asyncio

from tui_agent.edits.change import Change, Pick
from tui_agent.errors import SessionError
from tui_agent.headless.arguments import DecideOptions
from tui_agent.headless.output import note, row
from tui_agent.session.opening import Opening, open_session
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import State


def decide(options: DecideOptions) -> int:
    """Carry the decision out and print what became of each change. Raises `TuiAgentError`."""
    return asyncio.run(_decide(options))


async def _decide(options: DecideOptions) -> int:
    session = await open_session(Opening(options.workspace, session=options.session))
    try:
        session.subscribe(_say)
        await session.tell_opening()
        before = session.state
        try:
            await _carry_out(session, options)
        finally:
            await _answered(session)
            _print_changes(before, session.state)
        return 1 if _unhappy(session.state, options) else 0
    finally:
        await session.close()


async def _answered(session: Session) -> None:
    """Wait for the model, where it is asked again for what conflicts."""
    if session.state.turn.running:
        await session.start_services()
        await session.chat.finished()


async def _carry_out(session: Session, options: DecideOptions) -> None:
    changes = options.changes
    for name in changes:
        if session.state.review.change(name) is None:
            there = ", ".join(change.id for change in session.state.review.changes)
            raise SessionError(
                f"There is no change {name}", f"choose from {there}" if there else "the session has none"
            )
    match options.decision:
        case "apply":
            await session.review.apply([Pick(name) for name in changes])
        case "skip":
            await session.review.skip([Pick(name) for name in changes])
        case "undo":
            for checkpoint in _checkpoints(session.state, changes, undone=False):
                await session.review.undo(checkpoint)
        case "redo":
            for checkpoint in _checkpoints(session.state, changes, undone=True):
                await session.review.redo(checkpoint)


def _checkpoints(state: State, changes: tuple[str, ...], undone: bool) -> list[str]:
    """The applies that the named changes belong to, newest first; the last one where none is named ("")."""
    if not changes:
        return [""]
    found = [
        point.id
        for point in reversed(state.review.checkpoints)
        if point.undone is undone and {pick.change for pick in point.picks} & set(changes)
    ]
    if not found:
        raise SessionError(
            f"{', '.join(changes)} has no apply to {'redo' if undone else 'undo'}", "name another"
        )
    return found


def _say(event: e.Event, _: State) -> None:
    """What there is to say goes to standard error; standard output has the changes alone."""
    if isinstance(event, e.NoticeGiven):
        note(f"{event.level}: {event.text}")


def _print_changes(before: State, after: State) -> None:
    for change in after.review.changes:
        if before.review.change(change.id) != change:
            row(f"{change.id} {change.state} {change.path}{_why(change)}")


def _why(change: Change) -> str:
    return f" ({change.reason})" if change.reason else ""


def _unhappy(state: State, options: DecideOptions) -> bool:
    changes = [
        change for change in state.review.changes if not options.changes or change.id in options.changes
    ]
    return any(change.state in ("failed", "conflict") for change in changes)
