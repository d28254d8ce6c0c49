"""The plan pass: which files a request needs, asked of the planner model, else read from its own words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from tui_agent.answers import schema
from tui_agent.answers.plans import Plan, read_plan
from tui_agent.context import known, memory
from tui_agent.context.blocks import inert
from tui_agent.context.folders import outline
from tui_agent.errors import EmptyReply, LimitReached, ModelError
from tui_agent.model.client import Message, ModelRequest
from tui_agent.planning.words import MAX_ACTIONS, Words, read_words
from tui_agent.store import events as e
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.exchange import Answer, cut_off, exchange, open_request
from tui_agent.turn.limits import check_limits

#: The setting that leaves planning to the built-in planner.
NO_PLANNER = "none"
#: An answer that is not a plan is asked for once more.
MOST_ANSWERS = 2
#: Faults of a plan that are named when it is asked for again.
MOST_FAULTS = 10


async def make_plan(
    desk: Desk, gathered: Gathered, request: str, made: list[Plan]
) -> AsyncGenerator[e.Event, None]:
    """The plan, put into `made`. The planner is not asked where the words name every file, or where it cannot be.

    What goes wrong with the planner never ends the turn: the plan is then made from the request's own words.
    """
    active = desk.state().buffers.active
    words = await asyncio.to_thread(read_words, request, desk.workspace.index, active)
    planner = await _planner(desk, gathered, words, request)
    if planner is not None:
        try:
            async for event in _ask_planner(desk, gathered, request, planner, made):
                yield event
        except (ModelError, LimitReached) as error:
            yield _gave_none(planner.model, error.what)
    if made:
        made[0] = _with_mentions(made[0], words.plan, request)
    else:
        made.append(words.plan)


async def _planner(desk: Desk, gathered: Gathered, words: Words, request: str) -> ModelRequest | None:
    """The request to the planner without its messages; None where none is asked."""
    model = desk.state().model
    goes_on = memory.asks_to_go_on(request, gathered.turn)
    if words.certain or goes_on or model.planner == NO_PLANNER or not desk.planning_words:
        return None
    name = model.planner or model.name
    try:
        abilities = await desk.model.abilities(name)
    except ModelError:
        return None  # asking it would fail with the same words: the main model's request says them
    if not abilities.plans:
        return None
    shape = schema.strict(desk.planning_schema) if abilities.schema else None
    return ModelRequest(name, (), purpose="plan", schema=shape, timeout=float(desk.settings.request_timeout))


async def _ask_planner(
    desk: Desk, gathered: Gathered, request: str, planner: ModelRequest, made: list[Plan]
) -> AsyncGenerator[e.Event, None]:
    """Ask, and once more with the faults named where the answer holds no plan."""
    messages = await asyncio.to_thread(_messages, desk, request, planner.schema is None)
    for attempt in range(1, MOST_ANSWERS + 1):
        answer: list[str] = []
        async for event in _ask_once(desk, gathered, replace(planner, messages=messages), answer):
            yield event
        plan = await asyncio.to_thread(read_plan, answer[0], desk.planning_schema)
        if plan.files or plan.directories or not plan.faults:
            made.append(_bounded(plan))
            return
        if attempt == MOST_ANSWERS:
            yield _gave_none(planner.model, f"its answer is not a plan: {plan.faults[0]}")
        faults = "\n".join(f"- {fault}" for fault in plan.faults[:MOST_FAULTS])
        again = f"That plan cannot be read:\n{faults}\nAnswer once more, with the JSON object alone."
        messages = (
            *messages,
            {"role": "assistant", "content": answer[0]},
            {"role": "user", "content": again},
        )


async def _ask_once(
    desk: Desk, gathered: Gathered, request: ModelRequest, answer: list[str]
) -> AsyncGenerator[e.Event, None]:
    counted = await desk.model.count(request.model, [message["content"] for message in request.messages])
    tokens = sum(counted.counts)
    check_limits(desk, tokens, (await desk.model.abilities(request.model)).known)
    paid = await open_request(desk, request.model, tokens, "plan")
    yield e.RequestSent(
        gathered.turn, "plan", tokens=tokens, estimated=not counted.exact, model=request.model, paid=paid
    )
    words = Answer()
    async for event in exchange(desk, request, paid, words):
        yield event
    text = words.text
    if words.cut and not read_plan(text, desk.planning_schema).files:
        raise ModelError(cut_off(words.why), "the words of the request are taken instead")
    if not text.strip():
        raise EmptyReply("its answer is empty", "the words of the request are taken instead")
    answer.append(text)


def _messages(desk: Desk, request: str, with_schema: bool) -> tuple[Message, ...]:
    """The planner's own words, then the outline, the known files and the request: no part of the conversation."""
    system = [part["text"] for part in desk.planning_words["sections"]]
    if with_schema:
        shape = json.dumps(desk.planning_schema, ensure_ascii=False)
        system.append("Answer with one JSON object of this schema:\n" + shape)
    files = desk.state().known
    rows = [known.table_row(entry, 0) for entry in files.files.values()]
    room = desk.settings.outline_tokens
    shown = outline(desk.workspace.index.paths, room) if room else ""
    parts = [
        "# Outline of the workspace\nFiles at the top, then folders with the number of files below each:\n"
        + shown
        if shown
        else "",
        known.table(rows, known.left_out_line(len(files.dropped))),
        f"<user_query>\n{inert(request)}\n</user_query>",
    ]
    return (
        {"role": "system", "content": "\n\n".join(system)},
        {"role": "user", "content": "\n\n".join(part for part in parts if part)},
    )


def _bounded(plan: Plan) -> Plan:
    """At most so many actions as the built-in planner makes; a sentence where there were more."""
    if len(plan.files) <= MAX_ACTIONS and len(plan.directories) <= MAX_ACTIONS:
        return plan
    asked = len(plan.files) + len(plan.directories)
    fault = f"The plan has {asked} actions; of files and of folders the first {MAX_ACTIONS} are looked for."
    return replace(
        plan,
        files=plan.files[:MAX_ACTIONS],
        directories=plan.directories[:MAX_ACTIONS],
        faults=(*plan.faults, fault),
    )


def _with_mentions(plan: Plan, words: Plan, request: str) -> Plan:
    """What the person mentions by `@` is wanted whatever the planner says."""
    patterns = {pattern for action in plan.files for pattern in action.patterns}
    missing = tuple(
        action
        for action in words.files
        if any(f"@{pattern}" in request for pattern in (action.name, action.patterns[0]))
        and action.patterns[0] not in patterns
    )
    return replace(plan, files=(*missing, *plan.files)) if missing else plan


def _gave_none(planner: str, why: str) -> e.NoticeGiven:
    return e.NoticeGiven(
        "warning", f"{planner} made no plan ({why}): the files are found by the words of the request"
    )
