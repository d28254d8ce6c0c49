"""Executes the calls of a reply in order, with permission checks."""

from __future__ import annotations

import asyncio
import logging
import time

from msgspec.structs import replace

from tui_agent.answers.values import Reply
from tui_agent.errors import TuiAgentError
from tui_agent.store import events as e
from tui_agent.tools.permission import permitted
from tui_agent.tools.read_files import carried_over, find_files, named_once, renamed
from tui_agent.tools.tool import Emit, Invocation, LoadedFiles, Tool, ToolResult, call_of, error, in_json
from tui_agent.turn.context import TurnContext
from tui_agent.turn.exchange import cut_off
from tui_agent.turn.pictures import pictures_of_result
from tui_agent.turn.request import AnsweredCall

#: Further calls get an error.
MOST_CALLS = 100
#: Characters kept of a longer result.
HEAD, TAIL = 40_000, 20_000
MOST_SHOWN = 4_000
MOST_TOLD = 500
PROPOSE = "propose_changes"

_log = logging.getLogger(__name__)


async def run_calls(
    context: TurnContext, reply: Reply, emit: Emit, *, last: bool
) -> tuple[AnsweredCall, ...]:
    """Sequential tools first, by `place`, then all others concurrently. The `last` step skips calls whose
    results the model would need.
    """
    if reply.cut:
        count = len(reply.changes)
        if not count and any(call.fault for call in reply.calls):
            cut_notice = f"{cut_off(reply.why)} before it was complete: the model was informed"
        elif not count:
            cut_notice = f"{cut_off(reply.why)} before it was complete: send “continue” for the rest"
        else:
            kept = (
                "the one change of it that is complete is"
                if count == 1
                else f"its {count} complete changes are"
            )
            cut_notice = f"{cut_off(reply.why)}: {kept} kept"
        await emit(e.NoticeGiven("warning", cut_notice))
    for call in reply.calls:
        faults = call.faults
        if call.fault:
            why = call.fault.removeprefix("Error: ")
            faults = (f"The model's call of {call.name[:60]} could not be read, and it is told so: {why}",)
        for fault in faults:
            await emit(e.NoticeGiven("warning", fault))
    for fault in reply.faults:
        await emit(e.NoticeGiven("warning", fault))
    calls = _calls(context, reply)
    tools = {tool.name: tool for tool in context.tools}
    results: dict[str, ToolResult] = {}
    own = [
        call for call in calls if (tool := tools.get(call.name)) and not tool.parallel and not _faulty(call)
    ]
    for call in sorted(own, key=lambda call: tools[call.name].place):
        results[call.id] = await _answer(context, tools[call.name], call, emit)
    others = [call for call in calls if call.id not in results]
    if last:
        others = [call for call in others if call.name not in tools or _faulty(call)]
    if others:
        tasks = [
            asyncio.create_task(_answer(context, tools.get(call.name), call, emit, number))
            for number, call in enumerate(others)
        ]
        try:
            done = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        results.update(zip((call.id for call in others), done, strict=True))
    answered = []
    for call in calls:
        result = results.get(call.id)
        pictures = await pictures_of_result(context, result.pictures) if result and result.pictures else ()
        tool = tools.get(call.name)
        denied = result is not None and result.denied
        waits = tool is None or tool.answers or (call.is_wire and (bool(call.fault) or denied))
        answered.append(AnsweredCall(call, result or ToolResult(), waits, pictures))
    return tuple(answered)


async def decided_meanwhile(context: TurnContext, emit: Emit) -> LoadedFiles:
    carried = carried_over(context)
    if not carried:
        return LoadedFiles()
    taken = {slot.action.name for slot in context.core.state.plan.actions}
    actions = named_once(renamed(context, carried), taken)
    await emit(e.ActionsAdded(actions))
    return await find_files(context, [(action, "mention") for action in actions], (), emit)


def _calls(context: TurnContext, reply: Reply) -> list[Invocation]:
    todos = tuple(todo.text for todo in reply.todos or ())
    calls = [call_of(found, todos) for found in reply.calls]
    # Changes of one file in several calls are joined in the first of these.
    left = list(reply.entries("fileChanges"))
    proposing = [at for at, call in enumerate(calls) if call.name == PROPOSE and call.entries]
    for at in proposing:
        paths = {entry.path for entry in calls[at].entries}
        calls[at] = replace(calls[at], entries=tuple(entry for entry in left if entry.path in paths))
        left = [entry for entry in left if entry.path not in paths]
    first = next((at for at in proposing if calls[at].entries), None)
    if left and first is not None:
        calls[first] = replace(calls[first], entries=(*calls[first].entries, *left))
    named = {call.name for call in calls if call.entries}
    turn = context.core.state.turn
    for number, tool in enumerate(context.tools):
        entries = reply.entries(tool.key)
        if entries and tool.name not in named:
            call_id = f"own_{turn.number}_{turn.step}_{number}"
            calls.append(
                Invocation(call_id, tool.name, entries, in_json(entries), todos=todos, is_wire=False)
            )
    return calls


def _faulty(call: Invocation) -> bool:
    return bool(call.fault) and not call.entries


async def _answer(
    context: TurnContext, tool: Tool | None, call: Invocation, emit: Emit, number: int = 0
) -> ToolResult:
    """`number` counts concurrent calls from 0."""
    if tool is None or _faulty(call):
        return await _call_events(tool, call, ToolResult(call.fault, ok=False, amount="not done"), 0.0, emit)
    if number >= MOST_CALLS:
        result = error(f"at most {MOST_CALLS} calls are answered in one reply: ask again for this.")
        return await _call_events(tool, call, result, 0.0, emit)
    hooks = context.calls.hooks
    hooked = await hooks.before(call.id, call.name, call.entries) if hooks else None
    if changed := hooked is not None and hooked.entries is not None:
        call = replace(call, entries=hooked.entries, arguments=in_json(hooked.entries))
    refused = await permitted(context, tool, call, emit, hooked)
    if refused is not None:
        return await _call_events(tool, call, refused, 0.0, emit)
    await emit(e.CallStarted(call.id, call.name, tool.shown(call)))
    began = time.perf_counter()
    try:
        async with asyncio.timeout(tool.seconds or None):
            result = await tool.run(call, context, emit)
    except TimeoutError:
        result = error(f"stopped after {tool.seconds:g} s, the most that {tool.name} may take.")
    except TuiAgentError as failure:
        result = error(f"{failure}.")
    except Exception as fault:
        _log.exception("a fault in the tool %s", tool.name)
        result = error(f"a fault in {tool.name} ({type(fault).__name__}): nothing came of the call.")
    seconds = time.perf_counter() - began
    said = await hooks.after(call.id, call.name, call.entries, result.text, result.ok) if hooks else ""
    if changed:
        said = f"A hook changed the input of this call: {call.arguments[:MOST_SHOWN]}\n{said}".strip()
    if hooked is not None and hooked.context:
        said = f"{hooked.context}\n{said}".strip()
    if said:
        result = replace(result, text="\n".join(filter(None, (result.text, said))))
        if not call.is_wire:
            await emit(e.ModelOwesNews(said))
    faults = [call.fault] if call.fault else [f"Not read: {fault}" for fault in call.faults]
    text = "\n".join([*faults, *([result.text] if result.text else [])])
    return await _call_events(
        tool, call, replace(result, text=bounded(text), ok=result.ok and not faults), seconds, emit
    )


def bounded(text: str) -> str:
    if len(text) <= HEAD + TAIL:
        return text
    left_out = len(text) - HEAD - TAIL
    return f"{text[:HEAD]}\n[… {left_out:,} of {len(text):,} characters are left out here …]\n{text[-TAIL:]}"


async def _call_events(
    tool: Tool | None, call: Invocation, result: ToolResult, seconds: float, emit: Emit
) -> ToolResult:
    known = not result.loaded.files and not result.listings
    await emit(
        e.CallEnded(
            call.id,
            call.name,
            call.arguments[:MOST_TOLD],
            tool.shown(call)[:MOST_TOLD] if tool and call.entries else "",
            result.ok,
            round(seconds, 3),
            result.amount,
            result.text if known and call.is_wire else "",
            (result.details or result.text)[:MOST_SHOWN],
        )
    )
    return result
