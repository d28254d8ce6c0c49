"""Climbing one action's chain: every attempt told, what it finds loaded, else what its fallback says (P2 to P4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from msgspec.structs import replace

from tui_agent.answers.plans import FileAction
from tui_agent.context.known import LoadedBy
from tui_agent.planning.chain import OTHER_CASE, Attempt, ChainLimits, try_patterns
from tui_agent.planning.near_names import names_one, nearest
from tui_agent.store import events as e
from tui_agent.turn.desk import Decision, Desk, Gathered
from tui_agent.turn.reading import load_files

NEAREST_SHOWN = 5
#: Of a hit's matches, so many are kept with the attempt.
PATHS_KEPT = 5


async def find(
    desk: Desk, gathered: Gathered, action: FileAction, loaded_by: LoadedBy
) -> AsyncGenerator[e.Event, None]:
    """Climb one action's chain and load what it finds. A hit that cannot be read passes on to the next pattern.

    What the person decides about the action, before or meanwhile, takes its place.
    """
    if action.name in gathered.settled:
        return
    async for event in _climb(desk, gathered, action, loaded_by):
        yield event


async def _climb(
    desk: Desk, gathered: Gathered, action: FileAction, loaded_by: LoadedBy
) -> AsyncGenerator[e.Event, None]:
    after: Attempt | None = None
    missed: list[Attempt] = []
    while True:
        hit: Attempt | None = None
        decision: Decision | None = None
        async for attempt in try_patterns(action, desk.workspace.index, _limits(desk, gathered), after):
            decision = decision_on(desk, gathered, action.name)
            if decision is not None:
                break
            gathered.searched += attempt.ms / 1000
            if attempt.outcome == "hit":
                hit = attempt
            elif attempt.outcome == "looking":
                yield e.AttemptStarted(attempt)
            else:
                missed.append(attempt)
                yield e.AttemptEnded(attempt)
        if decision is not None:
            events = follow(desk, gathered, decision)
        elif hit is None:
            events = _fall_back(desk, gathered, action, missed)
        else:
            refused: list[str] = []
            async for event in _take(desk, gathered, action, hit, loaded_by, refused):
                yield event
            if not refused:
                return
            missed.append(replace(hit, outcome="invalid", why=refused[0], paths=hit.paths[:PATHS_KEPT]))
            yield e.AttemptEnded(missed[-1])
            after = hit
            continue
        async for event in events:
            yield event
        return


def decision_on(desk: Desk, gathered: Gathered, name: str) -> Decision | None:
    """What the person decided last about this action, once."""
    gathered.decisions += desk.decided()
    found = [decision for decision in gathered.decisions if decision.action == name]
    gathered.decisions = [decision for decision in gathered.decisions if decision.action != name]
    return found[-1] if found else None


async def follow(desk: Desk, gathered: Gathered, decision: Decision) -> AsyncGenerator[e.Event, None]:
    """Do what the person decided about an action of this turn; what it had loaded does not go out."""
    slot = next((slot for slot in desk.state().plan.actions if slot.action.name == decision.action), None)
    if slot is None:
        return
    gathered.settled.add(decision.action)
    decision = await asyncio.to_thread(_as_patterns, desk, decision)
    gone = [file.path for file in gathered.files if file.action == decision.action]
    gathered.files = [file for file in gathered.files if file.action != decision.action]
    before = [gathered.before.get(path) for path in gone]
    restored = tuple(entry for entry in before if entry is not None)
    yield e.ActionReopened(decision.action, decision.patterns, tuple(gone), restored)
    action = slot.action
    if decision.patterns:
        action = replace(action, patterns=decision.patterns, extra=())
    if decision.path:
        events = load_files(desk, gathered, [decision.path], "mention", action.name)
    elif decision.patterns:
        events = _climb(desk, gathered, action, "mention")
    else:
        events = _skip(gathered, action)
    async for event in events:
        yield event


def _as_patterns(desk: Desk, decision: Decision) -> Decision:
    """A typed path that is not a file is looked for like a name."""
    path = decision.path.removeprefix("./").strip()
    if not path or desk.workspace.index.contains(path) or (desk.workspace.root / path).is_file():
        return replace(decision, path=path)
    patterns = (path,) if path.startswith("**/") else (path, f"**/{path}")
    return replace(decision, path="", patterns=patterns)


async def follow_all(desk: Desk, gathered: Gathered) -> AsyncGenerator[e.Event, None]:
    """Everything that the person has decided and nobody has done yet."""
    gathered.decisions += desk.decided()
    while gathered.decisions:
        async for event in follow(desk, gathered, gathered.decisions.pop(0)):
            yield event


async def _skip(gathered: Gathered, action: FileAction) -> AsyncGenerator[e.Event, None]:
    gathered.facts.append(f"{action.name} is left out by the person.")
    yield e.FallbackTaken(action.name, "skip", action.patterns)


async def _take(
    desk: Desk,
    gathered: Gathered,
    action: FileAction,
    hit: Attempt,
    loaded_by: LoadedBy,
    refused: list[str],
) -> AsyncGenerator[e.Event, None]:
    """Load what a pattern hit. Where none of it can be read, the reason goes into `refused` and nothing is told."""
    chosen = list(hit.paths)
    if action.all:
        chosen = await asyncio.to_thread(_by_size, desk.workspace.root, hit.paths)
    elif len(chosen) > 1 and names_one(hit.pattern):
        async for event in _choose(desk, gathered, action, hit, chosen):
            yield event
        if not chosen:
            return
    loaded: list[e.Event] = []
    asking, smallest_first = not action.all, action.all
    async for event in load_files(
        desk, gathered, chosen, loaded_by, action.name, smallest_first=smallest_first, asking=asking
    ):
        if isinstance(event, (e.ActionsAdded, e.QuestionAsked, e.SecretDecided)):
            yield event  # the person is asked about one of the files now
        else:
            loaded.append(event)
    unread = [event for event in loaded if isinstance(event, e.FilesLeftOut) and event.reason == "unreadable"]
    files = [event.file for event in loaded if isinstance(event, e.FileLoaded)]
    if unread and len(unread) == len(chosen):
        refused.append(unread[0].why)
        return
    lines = sum(file.lines for file in files)
    yield e.AttemptEnded(replace(hit, lines=lines, paths=hit.paths[:PATHS_KEPT]))
    if hit.why == OTHER_CASE:
        yield e.NoticeGiven("info", f"{hit.pattern} was {OTHER_CASE}: {', '.join(hit.paths[:PATHS_KEPT])}")
    for event in loaded:
        yield event
    if action.all and hit.matches > len(hit.paths):
        more = f"{hit.matches - len(hit.paths):,} more files match “{hit.pattern}” than one batch may hold"
        yield e.FilesLeftOut(action.name, (), more, "limit")
        yield e.NoticeGiven("warning", f"{more}; narrow the pattern")
        gathered.facts.append(f"{more}; narrow the pattern.")


def _by_size(root: Path, paths: Sequence[str]) -> list[str]:
    """The smallest first, by their size on disk: more of those fit."""

    def size(path: str) -> int:
        try:
            return (root / path).lstat().st_size
        except OSError:
            return 0  # what is gone says so when it is read

    return [path for _, path in sorted((size(path), path) for path in paths)]


async def _choose(
    desk: Desk, gathered: Gathered, action: FileAction, hit: Attempt, chosen: list[str]
) -> AsyncGenerator[e.Event, None]:
    """Several files are called so: the nearest, else the person is asked, else all of them; left in `chosen`.

    It is left empty where the person lets the file go.
    """
    best = nearest(action, hit.paths)
    if len(best) == 1:
        chosen[:] = best
        yield e.MatchChosen(action.name, best, hit.paths, "nearness")
        if desk.ask is None:
            yield _said(action, hit, f"{best[0]}, nearest to where it was looked for, is taken")
        return
    if desk.ask is None or action.fallback != "ask_user":
        yield e.MatchChosen(action.name, hit.paths, hit.paths, "all")
        if desk.ask is None:
            yield _said(action, hit, "all are loaded")
        return
    yield e.AttemptStarted(hit)  # it ends when the person has chosen
    decision: list[Decision] = []
    async for event in _asked(desk, gathered, action, best, decision, several=True):
        yield event
    answer = decision[0]
    if answer.everything or answer.path in hit.paths:
        chosen[:] = hit.paths if answer.everything else [answer.path]
        yield e.MatchChosen(action.name, tuple(chosen), hit.paths, "person")
        return
    chosen.clear()
    yield e.AttemptEnded(replace(hit, paths=hit.paths[:PATHS_KEPT]))
    async for event in follow(desk, gathered, answer):
        yield event


def _said(action: FileAction, hit: Attempt, what: str) -> e.NoticeGiven:
    return e.NoticeGiven("info", f"{hit.matches} files fit “{action.name}” equally well: {what}")


async def _asked(
    desk: Desk,
    gathered: Gathered,
    action: FileAction,
    offered: Sequence[str],
    decision: list[Decision],
    *,
    several: bool = False,
) -> AsyncGenerator[e.Event, None]:
    """Wait for the person's word on an action. What is decided about others meanwhile is done meanwhile."""
    assert desk.ask is not None
    while not decision:
        yield e.QuestionAsked(action.name, tuple(offered) if several else ())
        answer = await desk.ask(action.name, offered)
        if answer.action == action.name:
            decision.append(answer)
            continue
        async for event in follow(desk, gathered, answer):
            yield event
    shown = decision[0].path or (offered[0] if decision[0].everything else "")
    yield e.QuestionAnswered(action.name, shown)


async def _fall_back(
    desk: Desk, gathered: Gathered, action: FileAction, missed: Sequence[Attempt]
) -> AsyncGenerator[e.Event, None]:
    outcome = _outcome(action, missed)
    names: tuple[str, ...] = ()
    if action.fallback == "ask_user":
        names = tuple(
            await asyncio.to_thread(desk.workspace.index.nearest, action.patterns[0], NEAREST_SHOWN)
        )
    yield e.FallbackTaken(action.name, action.fallback, tuple(text for _, text in action.steps), names)
    match action.fallback:
        case "create_new" if all(attempt.outcome == "miss" for attempt in missed):
            tried = ", ".join(action.patterns)
            gathered.facts.append(f"{action.name} does not exist (tried {tried}); you may create it.")
        case "ask_user" if desk.ask is not None:
            async for event in _ask_person(desk, gathered, action, names, outcome):
                yield event
        case _:
            if action.fallback == "ask_user" or any(attempt.outcome != "miss" for attempt in missed):
                yield e.NoticeGiven("warning", f"{outcome}. The turn continues without it")
            gathered.facts.append(f"{outcome}.")


def _outcome(action: FileAction, missed: Sequence[Attempt]) -> str:
    """Why no file was loaded, for the person and the model. A pattern that is too broad did find files."""
    reasons = [f"{attempt.pattern}: {attempt.why}" for attempt in missed if attempt.outcome != "miss"]
    tried = f"(tried {', '.join(attempt.pattern for attempt in missed)})"
    if not reasons:
        return f"{action.name} was not found {tried}"
    return f"{action.name} was not loaded {tried}: {'; '.join(reasons)}"


async def _ask_person(
    desk: Desk, gathered: Gathered, action: FileAction, names: tuple[str, ...], outcome: str
) -> AsyncGenerator[e.Event, None]:
    decision: list[Decision] = []
    async for event in _asked(desk, gathered, action, names, decision):
        yield event
    answer = decision[0]
    if not (answer.path or answer.patterns):
        gathered.facts.append(f"{outcome}; continue without it.")
        return
    async for event in follow(desk, gathered, answer):
        yield event


def _limits(desk: Desk, gathered: Gathered) -> ChainLimits:
    files = desk.settings.files
    limits = ChainLimits(max_per_action=files.max_per_action, pattern_timeout=files.pattern_timeout)
    return replace(limits, plan_left=limits.plan_left - gathered.searched)
