"""Finding what a request needs: the plan, its chains with every attempt, fallbacks, listings, searches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

from msgspec.structs import replace

from tui_agent.answers.plans import FileAction, Plan
from tui_agent.answers.values import Reply
from tui_agent.context.known import LoadedBy
from tui_agent.planning.chain import Attempt, ChainLimits, climb
from tui_agent.store import events as e
from tui_agent.turn import looking, planner
from tui_agent.turn.desk import Desk, Gathered
from tui_agent.turn.reading import load_files

NEAREST_SHOWN = 5


async def plan_and_find(
    desk: Desk, gathered: Gathered, request: str, attachments: Sequence[str]
) -> AsyncGenerator[e.Event, None]:
    """Which files the request needs, by its own words, and then those files."""
    await desk.workspace.ready()
    made: list[Plan] = []
    async for event in planner.make_plan(desk, gathered, request, made):
        yield event
    plan = made[0]
    attached = [_attachment(path) for path in attachments]
    actions = _named_once([*attached, *plan.files], set())
    yield e.PlanMade(gathered.turn, plan.source, actions, plan.directories, plan.faults)
    mentioned = {action.name for action in actions if _is_mention(action, request, attachments)}
    for action in actions:
        async for event in find(desk, gathered, action, "mention" if action.name in mentioned else "plan"):
            yield event
    async for event in looking.list_directories(desk, gathered, plan.directories):
        yield event


async def answer(desk: Desk, gathered: Gathered, reply: Reply) -> AsyncGenerator[e.Event, None]:
    """What a reply asked for: files by chains, listings, places where a text stands."""
    taken = {slot.action.name for slot in desk.state().plan.actions}
    actions = _named_once(reply.files, taken)
    if actions:
        yield e.ActionsAdded(actions)
    for action in actions:
        async for event in find(desk, gathered, action, "request"):
            yield event
    async for event in looking.list_directories(desk, gathered, reply.directories):
        yield event
    yield e.PhaseChanged("finding")
    for search in reply.searches:
        gathered.found.append(await looking.search_text(desk, search))


async def find(
    desk: Desk, gathered: Gathered, action: FileAction, loaded_by: LoadedBy
) -> AsyncGenerator[e.Event, None]:
    """Climb one action's chain, load what it finds, else do what its fallback says."""
    hit: Attempt | None = None
    async for attempt in climb(action, desk.workspace.index, _limits(desk)):
        if attempt.outcome == "looking":
            yield e.AttemptStarted(attempt)
        elif attempt.outcome == "hit":
            hit = attempt
        else:
            yield e.AttemptEnded(attempt)
    if hit is None:
        async for event in _fall_back(desk, gathered, action):
            yield event
        return
    loaded = [event async for event in load_files(desk, gathered, hit.paths, loaded_by, action.name)]
    lines = sum(event.file.lines for event in loaded if isinstance(event, e.FileLoaded))
    yield e.AttemptEnded(replace(hit, lines=lines, paths=hit.paths[:5]))
    for event in loaded:
        yield event


def _limits(desk: Desk) -> ChainLimits:
    files = desk.settings.files
    return ChainLimits(max_per_action=files.max_per_action, pattern_timeout=files.pattern_timeout)


async def _fall_back(desk: Desk, gathered: Gathered, action: FileAction) -> AsyncGenerator[e.Event, None]:
    tried = ", ".join(action.patterns)
    nearest: tuple[str, ...] = ()
    if action.fallback == "ask_user":
        nearest = tuple(
            await asyncio.to_thread(desk.workspace.index.nearest, action.patterns[0], NEAREST_SHOWN)
        )
    yield e.FallbackTaken(action.name, action.fallback, action.patterns, nearest)
    match action.fallback:
        case "create_new":
            gathered.facts.append(f"{action.name} does not exist (tried {tried}); you may create it.")
        case "skip":
            gathered.facts.append(f"{action.name} was not found (tried {tried}).")
        case "ask_user":
            async for event in _ask_person(desk, gathered, action, nearest):
                yield event


async def _ask_person(
    desk: Desk, gathered: Gathered, action: FileAction, nearest: tuple[str, ...]
) -> AsyncGenerator[e.Event, None]:
    tried = ", ".join(action.patterns)
    if desk.ask is None:
        yield e.NoticeGiven("warning", f"No file for “{action.name}” (tried {tried}): going on without it")
        gathered.facts.append(f"{action.name} was not found (tried {tried}).")
        return
    yield e.QuestionAsked(action.name)
    path = await desk.ask(action.name, nearest)
    yield e.QuestionAnswered(action.name, path)
    if not path:
        gathered.facts.append(f"{action.name} was not found (tried {tried}); go on without it.")
        return
    async for event in load_files(desk, gathered, [path], "mention", action.name):
        yield event


def _attachment(path: str) -> FileAction:
    return FileAction(name=path, patterns=(path,), reason="attached by the person")


def _is_mention(action: FileAction, request: str, attachments: Sequence[str]) -> bool:
    return action.name in attachments or any(f"@{pattern}" in request for pattern in action.patterns)


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
