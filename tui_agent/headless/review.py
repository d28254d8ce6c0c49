"""`tui-agent apply | skip | undo | redo`: the review without a screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import click

from tui_agent.edits.change import Pick
from tui_agent.errors import SessionError
from tui_agent.headless import arguments
from tui_agent.headless.output import note, row
from tui_agent.session.opening import Opening, open_session
from tui_agent.store import events as e
from tui_agent.store.state import State

Decision = Literal["apply", "skip", "undo", "redo"]


def _command(decision: Decision, words: str) -> click.Command:
    """Without arguments the command concerns all changes, or the last apply or undo."""

    @click.command(decision, help=words)
    @click.argument("changes", metavar="[CHANGE]...", nargs=-1)
    @click.option(
        "--session",
        metavar="ID|last",
        shell_complete=arguments.sessions,
        required=True,
        help="Session that contains the changes.",
    )
    @arguments.workspace_option
    def command(changes: tuple[str, ...], session: str, workspace: str) -> int:
        return asyncio.run(_decide(decision, arguments.workspace_folder(workspace), session, changes))

    return command


apply = _command("apply", "Apply the changes with these ids, or all pending ones.")
skip = _command("skip", "Skip the changes with these ids, or all pending ones.")
undo = _command("undo", "Undo the last apply, or its changes with these ids.")
redo = _command("redo", "Redo the changes of the last undo.")


async def _decide(decision: Decision, workspace: Path, session_id: str, changes: tuple[str, ...]) -> int:
    session = await open_session(Opening(workspace, session=session_id))
    try:
        session.subscribe(
            lambda event, _: (
                note(f"{event.level}: {event.text}") if isinstance(event, e.NoticeGiven) else None
            )
        )
        await session.notify_opening()
        before = session.state
        try:
            for name in changes:
                if session.state.review.change(name) is None:
                    there = ", ".join(change.id for change in session.state.review.changes)
                    raise SessionError(
                        f"There is no change {name}",
                        f"choose from {there}" if there else "the session has none",
                    )
            match decision:
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
        finally:
            if session.state.turn.running:  # The model is asked again about conflicts.
                await session.start_services()
                await session.chat.finished()
            await session.hooks.settled(background=False)
            for change in session.state.review.changes:
                if before.review.change(change.id) != change:
                    why = f" ({change.reason})" if change.reason else ""
                    row(f"{change.id} {change.state} {change.path}{why}")
        decided = [one for one in session.state.review.changes if not changes or one.id in changes]
        return 1 if any(change.state in ("failed", "conflict") for change in decided) else 0
    finally:
        await session.close()


def _checkpoints(state: State, changes: tuple[str, ...], undone: bool) -> list[str]:
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
