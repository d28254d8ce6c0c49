"""One turn: from the person's words to proposed changes, as events in the order in which things happen."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.answers.values import Reply
from tui_agent.edits.change import Change
from tui_agent.store.events import NoticeGiven
from tui_agent.tools.context import Emit
from tui_agent.turn.calls import answer, propose
from tui_agent.turn.context import TurnContext
from tui_agent.turn.load import load
from tui_agent.turn.planner import plan
from tui_agent.turn.reply import ask
from tui_agent.turn.request import Draft
from tui_agent.turn.retries import Retries
from tui_agent.turn.window import Earlier


async def run(context: TurnContext, request: str, attachments: Sequence[str], emit: Emit) -> None:
    """Plan, load, ask, run what was called for, propose; a reply that asks for files, changes what has no place, or
    holds a call that cannot be read, is answered in the same turn.

    Raises a `ModelError` when no answer came; whoever runs it says how the turn ended.
    """
    draft = await plan(context, request, attachments, emit)
    await _steps(context, draft, Retries(), emit)


async def run_again(context: TurnContext, conflicts: Sequence[Change], emit: Emit) -> None:
    """Go on with a turn for changes that conflicted when they were applied: their files are read, the model is asked.

    Raises as `run` does.
    """
    await context.workspace.ready()
    retries = Retries(told=True)
    draft = await retries.ask_again(context, conflicts, emit)
    if draft is not None:
        await _steps(context, draft, retries, emit)


async def _steps(context: TurnContext, draft: Draft, retries: Retries, emit: Emit) -> None:
    earlier, most = Earlier(), context.settings.max_steps
    for step in range(1, most + 1):
        draft = await load(context, draft, emit)
        reply = await ask(context, draft, earlier, emit)
        not_taken = await propose(context, reply, retries.rules(context), emit)
        again = await retries.ask_again(context, not_taken, emit) if step < most else None
        if again is None and not _is_answered(reply):
            return
        if again is None and step == most:
            sentence = f"The model asked for more {step} times in one turn: continue to let it go on"
            await emit(NoticeGiven("warning", sentence))
            return
        draft = replace(again or await answer(context, reply, emit), goes_on=draft.goes_on)


def _is_answered(reply: Reply) -> bool:
    """Whether the model gets an answer in the same turn."""
    misread = reply.misread and not reply.cut
    return misread or (reply.asks and not reply.changes)
