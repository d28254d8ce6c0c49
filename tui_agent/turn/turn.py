"""One turn: from the person's words to proposed changes, as events in the order in which things happen."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tui_agent.edits.change import Change
from tui_agent.store.events import Event, NoticeGiven
from tui_agent.turn import asking, finding, gathering, proposing, uploading
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.sending_back import SendingBack


async def run(
    desk: Desk, turn: int, request: str, attachments: Sequence[str] = ()
) -> AsyncGenerator[Event, None]:
    """Plan, find, gather, ask, read, propose; a reply that asks for files, changes what has no place, or holds a call
    that cannot be read, is answered in the same turn.

    Raises a `ModelError` when no answer came; whoever runs it says how the turn ended.
    """
    gathered = Gathered(query=request, turn=turn)
    async for event in finding.plan_and_find(desk, gathered, request, attachments):
        yield event
    async for event in _steps(desk, gathered, SendingBack()):
        yield event


async def run_again(desk: Desk, turn: int, conflicts: Sequence[Change]) -> AsyncGenerator[Event, None]:
    """Go on with a turn for changes that conflicted when they were applied: their files are read, the model is asked.

    Raises as `run` does.
    """
    gathered, back = Gathered(query="", turn=turn), SendingBack(conflicts=list(conflicts), told=True)
    await desk.workspace.ready()
    async for event in back.ask_again(desk, gathered):
        yield event
    if gathered.query:
        async for event in _steps(desk, gathered, back):
            yield event


async def _steps(desk: Desk, gathered: Gathered, back: SendingBack) -> AsyncGenerator[Event, None]:
    for step in range(1, desk.settings.max_steps + 1):
        async for event in gathering.gather(desk, gathered):
            yield event
        async for event in uploading.upload(desk, gathered):
            yield event
        async for event in asking.ask(desk, gathered):
            yield event
        async for event in proposing.propose(desk, gathered, back):
            yield event
        if step < desk.settings.max_steps:
            async for event in back.ask_again(desk, gathered):
                yield event
        if gathered.query:
            continue
        reply = gathered.reply
        misread = reply.misread and not reply.cut
        if not misread and (reply.changes or not reply.asks):
            return
        if step == desk.settings.max_steps:
            yield NoticeGiven(
                "warning", f"The model asked for more {step} times in one turn: continue to let it go on"
            )
            return
        async for event in finding.answer(desk, gathered, reply):
            yield event
