"""Finding what a request needs: the plan, its chains, listings, searches; and what a reply asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

from msgspec.structs import replace

from tui_agent.answers.plans import FileAction, Plan
from tui_agent.answers.values import Reply
from tui_agent.context.known import LoadedBy
from tui_agent.planning.near_names import completed
from tui_agent.store import events as e
from tui_agent.turn import looking, planner
from tui_agent.turn.climbing import find, follow_all
from tui_agent.turn.desk import Decision, Desk, Gathered
from tui_agent.workspace.patterns import escape


async def plan_and_find(
    desk: Desk, gathered: Gathered, request: str, attachments: Sequence[str]
) -> AsyncGenerator[e.Event, None]:
    """Which files the request needs, and then those files."""
    await desk.workspace.ready()
    if desk.look is not None:
        await desk.look()  # a file that was renamed is found under its new name
    made: list[Plan] = []
    async for event in planner.make_plan(desk, gathered, request, made):
        yield event
    plan = made[0]
    if plan.source == "model":
        plan = replace(plan, files=await asyncio.to_thread(completed, plan.files, desk.workspace.index))
    attached = [_attachment(path) for path in attachments]
    carried = [_taken_up(decision) for decision in desk.decided()]
    actions = _named_once(_renamed(desk, [*attached, *carried, *plan.files]), set())
    yield e.PlanMade(gathered.turn, plan.source, actions, plan.directories, plan.faults)
    if desk.ask is None:  # on a screen they are in the plan
        for fault in plan.faults:
            yield e.NoticeGiven("info", fault)
    mentioned = {action.name for action in actions if _is_mention(action, request, attachments)}
    mentioned.update(action.name for action in carried)
    for action in actions:
        async for event in find(desk, gathered, action, "mention" if action.name in mentioned else "plan"):
            yield event
    async for event in follow_all(desk, gathered):
        yield event
    async for event in looking.list_directories(desk, gathered, plan.directories):
        yield event


async def answer(desk: Desk, gathered: Gathered, reply: Reply) -> AsyncGenerator[e.Event, None]:
    """What a reply asked for: files by chains, listings, places where a text stands."""
    gathered.searched = 0.0
    taken = {slot.action.name for slot in desk.state().plan.actions}
    carried = [_taken_up(decision) for decision in desk.decided()]
    files = await asyncio.to_thread(completed, reply.files, desk.workspace.index)
    actions = _named_once(_renamed(desk, [*carried, *files]), taken)
    if actions:
        yield e.ActionsAdded(actions)
    for action in actions:
        loaded_by: LoadedBy = "mention" if action in carried else "request"
        async for event in find(desk, gathered, action, loaded_by):
            yield event
    async for event in follow_all(desk, gathered):
        yield event
    async for event in looking.list_directories(desk, gathered, reply.directories):
        yield event
    yield e.PhaseChanged("finding")
    for search in reply.searches:
        gathered.found.append(await looking.search_text(desk, search))


def _attachment(path: str) -> FileAction:
    return FileAction(name=path, patterns=(path,), reason="attached by the person")


def _taken_up(decision: Decision) -> FileAction:
    """What the person decided while a request was out goes with the next one."""
    patterns = (decision.path,) if decision.path else decision.patterns
    return FileAction(decision.action, patterns, "taken up again by the person")


def _is_mention(action: FileAction, request: str, attachments: Sequence[str]) -> bool:
    return action.name in attachments or any(f"@{pattern}" in request for pattern in action.patterns)


def _renamed(desk: Desk, actions: Iterable[FileAction]) -> Iterator[FileAction]:
    """The actions, each with the new name of what it asks for by an old one: the first thing that the program tries."""
    known = desk.state().known
    for action in actions:
        paths = [pattern.removeprefix("./") for pattern in action.patterns]
        new = [escape(known.moved(path)) for path in paths if known.moved(path) != path]
        if action.by == "program":
            yield replace(action, patterns=(*new, *action.patterns))
        else:
            yield replace(action, extra=tuple(dict.fromkeys((*new, *action.extra))))


def _named_once(actions: Iterable[FileAction], taken: set[str]) -> tuple[FileAction, ...]:
    """Names tell actions apart in what follows: a name that is taken gets a number."""
    unique: list[FileAction] = []
    for action in actions:
        name, number = action.name, 1
        while name in taken:
            number += 1
            name = f"{action.name} ({number})"
        taken.add(name)
        unique.append(replace(action, name=name))
    return tuple(unique)
