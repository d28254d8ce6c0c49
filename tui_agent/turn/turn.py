"""One turn, from the user's prompt to proposed changes, as an ordered sequence of events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from tui_agent.edits.change import Change
from tui_agent.errors import LimitReached, ModelError, SessionError
from tui_agent.store.events import NoticeGiven
from tui_agent.tools.permission import permitted, verdict_of
from tui_agent.tools.run_command import TOOL as RUN_COMMAND
from tui_agent.tools.tool import Emit, Invocation
from tui_agent.turn.calls import decided_meanwhile, run_calls
from tui_agent.turn.compaction import EarlierMessages
from tui_agent.turn.context import TurnContext
from tui_agent.turn.continuation import LoopDetector, Repairs, Retries, ask_about_cost
from tui_agent.turn.load import load
from tui_agent.turn.pictures import take_pictures
from tui_agent.turn.planner import plan
from tui_agent.turn.reply import ask
from tui_agent.turn.request import Draft

#: The same reason cuts two consecutive replies.
CUT_AGAIN = "The call was cut off twice: ask for smaller changes, or choose another model"

MORE_STEPS = "send “continue” to resume it, or raise max_steps"


async def run(
    context: TurnContext,
    request: str,
    attachments: Sequence[str],
    emit: Emit,
    added: str = "",
    *,
    unasked: bool = False,
) -> str:
    """Plans, loads, asks, runs calls, proposes and checks changes; repeats if the reply needs it. `added` is
    further text of the message, not by the user, who did not write an `unasked` request either.

    Returns the limit that ended the turn, or "". Raises a `ModelError` if there was no response, and
    `LimitReached`. The caller records the end.
    """
    typed = None
    if context.calls.expand is not None and request.lstrip().startswith("/"):
        expanded = await context.calls.expand(request, partial(_check_command, context, emit))
        if expanded != request:
            typed, request = "".join(request.split(maxsplit=1)[1:]), expanded
    resources = ""
    if context.calls.resources is not None and "@" in request:
        request, resources = await context.calls.resources(request)
    own = "" if context.part or unasked else request if typed is None else typed
    taken = await take_pictures(context, request, attachments, emit, own)
    draft = await plan(context, taken.words, taken.attachments, emit, typed)
    if taken.pictures:
        draft = replace(draft, query=taken.text, pictures=taken.pictures)
    if resources or added:  # The planner would search for the files that they name.
        draft = replace(draft, query="\n\n".join(filter(None, (draft.query, resources, added))))
    return await _steps(context, draft, Retries(), emit)


async def _check_command(context: TurnContext, emit: Emit, command: str) -> None:
    """Asks like for a call of the model. Raises `SessionError` if it may not run."""
    call = Invocation("command_file", RUN_COMMAND.name, ({"command": command},))
    assert RUN_COMMAND.circumstances is not None
    found = await RUN_COMMAND.circumstances(call, context)
    if verdict_of(context, RUN_COMMAND, call, found)[0] == "allow":
        return
    refused = await permitted(context, RUN_COMMAND, call, emit)
    if refused is not None:
        why = refused.text.removeprefix("Error: ").rstrip(".")
        raise SessionError(f"`{command[:200]}` of the command file: {why}", "allow it, or correct the file")


async def retry_conflicts(context: TurnContext, conflicts: Sequence[Change], emit: Emit) -> str:
    """Asks again for changes that conflicted when applied. Returns and raises as `run` does."""
    await context.core.workspace.ready()
    retries = Retries(told=True)
    draft = await retries.ask_again(context, conflicts, emit)
    return "" if draft is None else await _steps(context, draft, retries, emit)


async def _steps(context: TurnContext, draft: Draft, retries: Retries, emit: Emit) -> str:
    earlier, repairs, loops, most = (
        EarlierMessages(),
        Repairs(),
        LoopDetector(),
        context.core.settings.max_steps,
    )
    kept = False  # The last reply was cut after complete changes.
    cut_in_call = False  # The last reply was cut inside a call.
    for step in range(1, most + 1):
        draft = await load(context, draft, emit)
        try:
            if step > 1:
                await ask_about_cost(context, emit)
            reply = await ask(context, draft, earlier, emit)
        except (ModelError, LimitReached) as error:
            if not (kept and isinstance(error, ModelError)) and not repairs.asked:
                raise
            await emit(NoticeGiven("warning", f"{error.what}: complete changes are kept"))
            return error.limit if isinstance(error, LimitReached) else ""
        kept = reply.cut and bool(reply.changes)
        retries.note(context)
        answered = await loops.note(context, await run_calls(context, reply, emit, last=step == most), emit)
        before, cut_in_call = cut_in_call, reply.cut and any(one.call.fault for one in answered)
        if before and cut_in_call:
            await emit(NoticeGiven("warning", CUT_AGAIN))
            return ""
        not_taken = [change for one in answered for change in one.result.resend]
        again = await retries.ask_again(context, not_taken, emit) if step < most else None
        if again is None and not any(one.waits for one in answered):
            again = await repairs.ask_again(context, emit, last=step == most)
            if again is None:
                return ""
        if step == most:
            break
        following = again or Draft(loaded=await decided_meanwhile(context, emit))
        draft = replace(following, answered=(*answered, *following.answered), goes_on=draft.goes_on)
    times = "once" if most == 1 else f"{most} times"
    raise LimitReached(f"The model made {times} requests in one turn", MORE_STEPS, "max_steps")
