"""The plan pass: selects the files a request needs, by the planner model or the request's words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.answers import schema
from tui_agent.answers.plans import FileAction, Plan, read_plan
from tui_agent.context import known_files, memory
from tui_agent.context.blocks import inert
from tui_agent.context.known_files import LoadedBy
from tui_agent.context.prompt import outline
from tui_agent.errors import (
    BadKey,
    EmptyReply,
    LimitReached,
    ModelError,
    NoModel,
    Overloaded,
    RequestRejected,
    SchemaRefused,
    TimedOut,
    Unreachable,
)
from tui_agent.model.client import ModelRequest
from tui_agent.model.parts import Message, text_of
from tui_agent.planning.built_in_planner import MAX_ACTIONS, RequestReading, read_words
from tui_agent.planning.chain import completed
from tui_agent.settings.loading import PLANNING, PLANNING_SCHEMA
from tui_agent.store import events as e
from tui_agent.store.files import with_unsaved
from tui_agent.tools.list_directory import list_directories
from tui_agent.tools.read_files import carried_over, find_files, named_once, renamed
from tui_agent.tools.tool import Emit, LoadedFiles
from tui_agent.turn.context import TurnContext
from tui_agent.turn.conversation import head_of
from tui_agent.turn.exchange import Answer, check_limits, cut_off, exchange, known_again, open_request
from tui_agent.turn.request import SEE_NEXT, Draft

NO_PLANNER = "none"
MOST_ANSWERS = 2
MOST_FAULTS = 10


async def plan(
    context: TurnContext, request: str, attachments: Sequence[str], emit: Emit, typed: str | None = None
) -> Draft:
    await context.core.workspace.ready()
    if context.calls.look is not None:
        await context.calls.look()
    goes_on = memory.asks_to_go_on(request, context.turn)
    batches = context.core.state.batches
    batch = next((one for one in batches if goes_on or request.strip() == one.request.strip()), None)
    carried_on: list[FileAction] = []
    if batch is not None:
        words = f"carried on: {batch.done} of {batch.total} files are done"
        carried_on = [FileAction(batch.name, (batch.pattern,), words, all=True, batch=batch.id)]
    made, doubt = Plan(), ""
    if batch is None or goes_on:
        made, doubt = await make_plan(context, request, emit, typed)
    if made.source == "model":
        files = await asyncio.to_thread(completed, made.files, context.core.workspace.index)
        made = replace(made, files=files)
    attached = [FileAction(path, (path,), "attached by the person") for path in attachments]
    carried = carried_over(context)
    actions = named_once(renamed(context, [*attached, *carried, *carried_on, *made.files]), set())
    await emit(e.PlanMade(context.turn, made.source, actions, made.directories, made.faults))
    if context.ask is None:  # A screen shows the missing files in the plan.
        for fault in made.faults:
            await emit(e.NoticeGiven("info", fault))
    mentioned = {
        action.name
        for action in actions
        if action.name in attachments or any(f"@{pattern}" in request for pattern in action.patterns)
    }
    mentioned.update(action.name for action in carried)
    wanted: list[tuple[FileAction, LoadedBy]] = [
        (action, "mention" if action.name in mentioned else "plan") for action in actions
    ]
    loaded = await find_files(context, wanted, (), emit)
    listings, left_out = await list_directories(context, made.directories, emit)
    if left_out:
        loaded = loaded.plus(LoadedFiles(facts=(left_out,)))
    return Draft(request, loaded=loaded, listings=listings, doubt=doubt)


async def make_plan(
    context: TurnContext, request: str, emit: Emit, typed: str | None = None
) -> tuple[Plan, str]:
    """Returns a warning for after the response: the main request may fail alike. Without a planner, words decide."""
    active = context.core.state.buffers.active
    words = await asyncio.to_thread(read_words, request, context.core.workspace.index, active, typed)
    planner = await _planner(context, words, request)
    made: Plan | None = None
    if planner is not None:
        try:
            made = await _ask_planner(context, request, planner, emit)
        except (ModelError, LimitReached) as error:
            lasting = isinstance(error, (BadKey, NoModel, RequestRejected, Unreachable))
            passing = isinstance(error, (TimedOut, Overloaded))
            if planner.model == context.core.state.model.name and lasting and not passing:
                return words.plan, _no_plan(planner.model, error.what)
            await emit(e.NoticeGiven("warning", _no_plan(planner.model, error.what)))
    if made is None:
        return words.plan, ""
    patterns = {pattern for action in made.files for pattern in action.patterns}
    missing = tuple(
        action
        for action in words.plan.files
        if any(f"@{pattern}" in request for pattern in (action.name, action.patterns[0]))
        and action.patterns[0] not in patterns
    )
    return replace(made, files=(*missing, *made.files)), ""


async def _planner(context: TurnContext, words: RequestReading, request: str) -> ModelRequest | None:
    model = context.core.state.model
    goes_on = memory.asks_to_go_on(request, context.turn)
    if words.certain or goes_on or model.planner == NO_PLANNER or not context.prompts[PLANNING]:
        return None
    name = model.planner or model.name
    try:
        abilities = await context.model.abilities(name)
    except ModelError:
        return None  # The main request reports the same error.
    if not abilities.plans:
        return None
    shape = schema.strict(context.prompts[PLANNING_SCHEMA]) if abilities.schema else None
    asked = ModelRequest(
        name,
        (),
        purpose="plan",
        schema=shape,
        timeout=float(context.core.settings.request_timeout),
        effort="none",
        session=context.core.state.session.id,
    )
    tools = head_of(context).tools if _is_ending(context, asked) else ()
    return replace(asked, tools=tools, schema=None) if tools else asked


async def _ask_planner(context: TurnContext, request: str, planner: ModelRequest, emit: Emit) -> Plan | None:
    """Asks once more with the faults of an invalid plan, or without a refused schema."""
    write = _as_ending if _is_ending(context, planner) else _messages
    messages = await asyncio.to_thread(write, context, request, planner.schema is None)
    for attempt in range(1, MOST_ANSWERS + 1):
        try:
            answer = await _ask_once(context, replace(planner, messages=messages), emit)
        except SchemaRefused:
            await known_again(context, emit)
            return await _ask_planner(context, request, replace(planner, schema=None), emit)
        made = await asyncio.to_thread(read_plan, answer, context.prompts[PLANNING_SCHEMA])
        if made.files or made.directories or not made.faults:
            asked = len(made.files) + len(made.directories)
            files, directories = made.files[:MAX_ACTIONS], made.directories[:MAX_ACTIONS]
            if asked == len(files) + len(directories):
                return made
            fault = f"The plan has {asked} actions; of files and of folders the first {MAX_ACTIONS} are looked for."
            return replace(made, files=files, directories=directories, faults=(*made.faults, fault))
        if attempt == MOST_ANSWERS:
            why = f"its answer is not a plan: {made.faults[0]}"
            await emit(e.NoticeGiven("warning", _no_plan(planner.model, why)))
        faults = "\n".join(f"- {fault}" for fault in made.faults[:MOST_FAULTS])
        again = f"That plan cannot be read:\n{faults}\nAnswer once more, with the JSON object alone."
        messages = (
            *messages,
            {"role": "assistant", "content": answer},
            {"role": "user", "content": again},
        )
    return None


async def _ask_once(context: TurnContext, request: ModelRequest, emit: Emit) -> str:
    counted = await context.model.count(request.model, list(map(text_of, request.messages)))
    tokens = sum(counted.counts)
    check_limits(context, tokens, (await context.model.abilities(request.model)).known)
    paid = await open_request(context, request.model, tokens, "plan")
    await emit(
        e.RequestSent(
            context.turn, "plan", tokens=tokens, estimated=not counted.exact, model=request.model, paid=paid
        )
    )
    words = Answer()
    await exchange(context, request, paid, words, emit)
    text = words.text
    if words.cut and not read_plan(text, context.prompts[PLANNING_SCHEMA]).files:
        raise ModelError(cut_off(words.why), "the words of the request are used instead")
    if not text.strip():
        raise EmptyReply("its answer is empty", "the words of the request are used instead")
    return text


def _is_ending(context: TurnContext, planner: ModelRequest) -> bool:
    state = context.core.state
    unknown = state.model.server in ("local", "gateway")
    shares = (state.model.slots == 1 or unknown) and planner.model == state.model.name
    return shares and bool(state.conversation.messages)


def _as_ending(context: TurnContext, request: str, with_schema: bool) -> tuple[Message, ...]:
    sent = context.core.state.conversation
    kept = context.sent.read(context.core.blobs, sent.messages)
    system, user = _messages(context, request, with_schema)
    return (
        *(one.message for one in kept),
        *({"role": "tool", "tool_call_id": call, "content": SEE_NEXT} for call in sent.open_calls),
        {"role": "user", "content": f"{system['content']}\n\n{user['content']}"},
    )


def _messages(context: TurnContext, request: str, with_schema: bool) -> tuple[Message, ...]:
    system = [part["text"] for part in context.prompts[PLANNING]["sections"]]
    if with_schema:
        shape = json.dumps(context.prompts[PLANNING_SCHEMA], ensure_ascii=False)
        system.append("Answer with one JSON object of this schema:\n" + shape)
    files = context.core.state.known
    rows = [
        known_files.table_row(entry, 0) for entry in with_unsaved(files, context.core.state.buffers).values()
    ]
    room = context.core.settings.outline_tokens
    shown = outline(context.core.workspace.index, room) if room else ""
    parts = [
        "# Outline of the workspace\nFiles at the top, then folders with the number of files below each:\n"
        + shown
        if shown
        else "",
        known_files.table(rows, known_files.left_out_line(len(files.dropped))),
        f"<user_query>\n{inert(request)}\n</user_query>",
    ]
    return (
        {"role": "system", "content": "\n\n".join(system)},
        {"role": "user", "content": "\n\n".join(part for part in parts if part)},
    )


def _no_plan(planner: str, why: str) -> str:
    return f"No plan from {planner}; files were found by your words: {why}"
