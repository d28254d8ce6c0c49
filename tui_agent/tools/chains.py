"""File actions: the chain of each is tried, what it finds is read, else its fallback does what it says.

What the person decides about an action, before or meanwhile, takes the place of its chain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import FileAction
from tui_agent.context.known import LoadedBy
from tui_agent.context.loaded import LoadedFile
from tui_agent.planning.chain import OTHER_CASE, Attempt, ChainLimits, try_patterns
from tui_agent.planning.near_names import names_one, nearest
from tui_agent.store import events as e
from tui_agent.store.state import Decision
from tui_agent.tools.context import Emit, ToolContext
from tui_agent.tools.files import (
    LoadedFiles,
    in_part,
    load_files,
    named_fit,
    read_files,
    take,
    that_fit,
)
from tui_agent.workspace.patterns import escape

NEAREST_SHOWN = 5
#: Of a hit's matches, so many are kept with the attempt.
PATHS_KEPT = 5


async def find_files(
    context: ToolContext,
    actions: Sequence[tuple[FileAction, LoadedBy]],
    held: Sequence[LoadedFile],
    emit: Emit,
) -> LoadedFiles:
    """Try the chains of these actions one after the other, and then do all that the person has decided meanwhile."""
    search = _Search(context, held, emit)
    for action, loaded_by in actions:
        if action.name not in context.progress.settled:
            await search.find(action, loaded_by)
    await search.follow_all()
    return search.loaded


def renamed(context: ToolContext, actions: Iterable[FileAction]) -> Iterator[FileAction]:
    """The actions, each with the new name of what it asks for by an old one: the first thing that the program tries."""
    known = context.state().known
    for action in actions:
        paths = [pattern.removeprefix("./") for pattern in action.patterns]
        new = [escape(known.moved(path)) for path in paths if known.moved(path) != path]
        if action.by == "program":
            yield replace(action, patterns=(*new, *action.patterns))
        else:
            yield replace(action, extra=tuple(dict.fromkeys((*new, *action.extra))))


def named_once(actions: Iterable[FileAction], taken: set[str]) -> tuple[FileAction, ...]:
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


def carried_over(context: ToolContext) -> list[FileAction]:
    """What the person decided while a request was out goes with the next one."""
    return [
        FileAction(
            decision.action,
            (decision.path,) if decision.path else decision.patterns,
            "taken up again by the person",
        )
        for decision in context.decided()
    ]


class _Outcome(Struct, frozen=True):
    """What came of one chain: what it hit, else every attempt that missed, or what the person decided meanwhile."""

    missed: tuple[Attempt, ...] = ()
    hit: Attempt | None = None
    decision: Decision | None = None


class _Search:
    """Searches for the files of some actions; `loaded` is what it has found so far, beside what is `held`."""

    def __init__(self, context: ToolContext, held: Sequence[LoadedFile], emit: Emit) -> None:
        self._context = context
        self._emit = emit
        self._held = tuple(held)
        self._seconds = 0.0
        self.loaded = LoadedFiles()

    async def find(self, action: FileAction, loaded_by: LoadedBy) -> None:
        """A hit that cannot be read passes on to the next pattern."""
        if action.batch:
            return await self._carry_on(action, loaded_by)
        missed: list[Attempt] = []
        after: Attempt | None = None
        while True:
            outcome = await self._try(action, after)
            missed += outcome.missed
            if outcome.decision is not None:
                return await self._follow(outcome.decision)
            if outcome.hit is None:
                return await self._fall_back(action, missed)
            refused = await self._load(action, outcome.hit, loaded_by)
            if not refused:
                return None
            after = outcome.hit
            kept = after.paths[:PATHS_KEPT]
            missed.append(replace(after, outcome="invalid", why=refused, paths=kept))
            await self._emit(e.AttemptEnded(missed[-1]))

    async def _carry_on(self, action: FileAction, loaded_by: LoadedBy) -> None:
        """Load the next files of a batch; those that went meanwhile are left out of it."""
        state, root = self._context.state(), self._context.workspace.root
        batch = next((one for one in state.batches if one.id == action.batch), None)
        if batch is None:
            return

        def split() -> tuple[list[str], list[str]]:
            there = [path for path in batch.left if (root / path).is_file()]
            return there, [path for path in batch.left if path not in set(there)]

        there, gone = await asyncio.to_thread(split)
        if gone:
            named = ", ".join(gone[:PATHS_KEPT])
            await self._emit(e.FilesLeftOut(action.name, tuple(gone), "no file any more", "unreadable"))
            await self._emit(e.NoticeGiven("info", f"{len(gone)} of the files that waited are gone: {named}"))
        if not there:
            return
        hit = Attempt(action.name, batch.pattern, 1, 1, "hit", len(there), paths=tuple(there))
        if refused := await self._load(action, hit, loaded_by):
            await self._emit(e.FilesLeftOut(action.name, tuple(there), refused, "unreadable"))
            await self._emit(e.NoticeGiven("warning", f"{action.name} cannot be carried on: {refused}"))
            return
        now = next((one for one in self._context.state().batches if one.id == action.batch), None)
        if now is not None and now.now:
            first = now.done + 1
            self._say(
                f"The files of “{batch.name}” that are shown now are {first} to {now.done + len(now.now)} of "
                f"{now.total}, for the request: {batch.request}. The files before them are done: leave those alone."
            )

    async def follow_all(self) -> None:
        """Everything that the person has decided and nobody has done yet."""
        pending = self._context.progress.pending
        pending += self._context.decided()
        while pending:
            await self._follow(pending.pop(0))

    async def _try(self, action: FileAction, after: Attempt | None) -> _Outcome:
        """Try the patterns behind the attempt `after`. A hit is not told yet: it may not be readable."""
        missed: list[Attempt] = []
        async for attempt in try_patterns(action, self._context.workspace.index, self._limits(), after):
            progress = self._context.progress
            progress.pending += self._context.decided()
            found = [decision for decision in progress.pending if decision.action == action.name]
            progress.pending[:] = [
                decision for decision in progress.pending if decision.action != action.name
            ]
            decision = found[-1] if found else None
            if decision is not None:
                return _Outcome(tuple(missed), decision=decision)
            self._seconds += attempt.ms / 1000
            if attempt.outcome == "hit":
                return _Outcome(tuple(missed), hit=attempt)
            if attempt.outcome == "looking":
                await self._emit(e.AttemptStarted(attempt))
            else:
                missed.append(attempt)
                await self._emit(e.AttemptEnded(attempt))
        return _Outcome(tuple(missed))

    def _limits(self) -> ChainLimits:
        files = self._context.settings.files
        limits = ChainLimits(max_per_action=files.max_per_action, pattern_timeout=files.pattern_timeout)
        return replace(limits, plan_left=limits.plan_left - self._seconds)

    async def _follow(self, decision: Decision) -> None:
        """Do what the person decided about an action of this turn; what it had loaded does not go out."""
        plan = self._context.state().plan
        slot = next((slot for slot in plan.actions if slot.action.name == decision.action), None)
        if slot is None:
            return
        self._context.progress.settled.add(decision.action)
        decision = await asyncio.to_thread(_as_patterns, self._context, decision)
        gone = tuple(file.path for file in self.loaded.files if file.action == decision.action)
        self.loaded = self.loaded.without(gone)
        before = tuple(entry for path in gone if (entry := self.loaded.before.get(path)))
        await self._emit(e.ActionReopened(decision.action, decision.patterns, gone, before))
        action = slot.action
        if decision.patterns:
            action = replace(action, patterns=decision.patterns, extra=())
        if decision.path:
            held = (*self._held, *self.loaded.files)
            paths = [decision.path]
            found = await load_files(self._context, paths, "mention", held, self._emit, action.name)
            self.loaded = self.loaded.plus(found)
        elif decision.patterns:
            await self.find(action, "mention")
        else:
            self._say(f"{action.name} is left out by the person.")
            await self._emit(e.FallbackTaken(action.name, "skip", action.patterns))

    def _say(self, fact: str) -> None:
        self.loaded = self.loaded.plus(LoadedFiles(facts=(fact,)))

    async def _load(self, action: FileAction, hit: Attempt, loaded_by: LoadedBy) -> str:
        """Load what a pattern hit. Where none of it can be read, nothing is told, and the reason is returned."""
        chosen: Sequence[str] = hit.paths
        if action.all:
            chosen = await asyncio.to_thread(_by_size, self._context.workspace.root, hit.paths)
        elif len(chosen) > 1 and names_one(hit.pattern):
            chosen = await self._choose(action, hit)
            if not chosen:
                return ""
        held = (*self._held, *self.loaded.files)
        read = await read_files(
            self._context, chosen, loaded_by, held, self._emit, action=action.name, asking=not action.all
        )
        unread = [
            event.why
            for event in read.events
            if isinstance(event, e.FilesLeftOut) and event.reason == "unreadable"
        ]
        if unread and len(unread) == len(chosen):
            return unread[0]
        read = in_part(read, action.lines)
        fitting, rest = await that_fit(self._context, held, read.files, smallest_first=action.all)
        if not action.all:
            fitting, rest = await named_fit(self._context, held, fitting, rest, self._emit)
        elif action.batch and not fitting:  # else it would never be done
            fitting, rest = await named_fit(self._context, held, fitting, rest, self._emit, most=1)
        lines = sum(file.lines for file in fitting)
        await self._emit(e.AttemptEnded(replace(hit, lines=lines, paths=hit.paths[:PATHS_KEPT])))
        if hit.why == OTHER_CASE:
            paths = ", ".join(hit.paths[:PATHS_KEPT])
            await self._emit(e.NoticeGiven("info", f"{hit.pattern} was {OTHER_CASE}: {paths}"))
        found = await take(self._context, read, fitting, rest, self._emit, action.name)
        self.loaded = self.loaded.plus(found)
        if action.all and hit.matches > len(hit.paths):
            more = (
                f"{hit.matches - len(hit.paths):,} more files match “{hit.pattern}” than one batch may hold"
            )
            await self._emit(e.FilesLeftOut(action.name, (), more, "limit"))
            await self._emit(e.NoticeGiven("warning", f"{more}; narrow the pattern"))
            self._say(f"{more}; narrow the pattern.")
        return ""

    async def _choose(self, action: FileAction, hit: Attempt) -> Sequence[str]:
        """Several files have the name: the nearest, else the person is asked, else all of them.

        None where the person lets the file go.
        """
        ask = self._context.ask
        best = nearest(action, hit.paths)
        if len(best) == 1:
            await self._emit(e.MatchChosen(action.name, best, hit.paths, "nearness"))
            if ask is None:
                await self._tell_match(
                    action, hit, f"{best[0]}, nearest to where it was looked for, is taken"
                )
            return best
        if ask is None or action.fallback != "ask_user":
            await self._emit(e.MatchChosen(action.name, hit.paths, hit.paths, "all"))
            if ask is None:
                await self._tell_match(action, hit, "all are loaded")
            return hit.paths
        await self._emit(e.AttemptStarted(hit))  # it ends when the person has chosen
        answer = await self._ask(action, best, several=True)
        if answer.everything or answer.path in hit.paths:
            chosen = hit.paths if answer.everything else (answer.path,)
            await self._emit(e.MatchChosen(action.name, chosen, hit.paths, "person"))
            return chosen
        await self._emit(e.AttemptEnded(replace(hit, paths=hit.paths[:PATHS_KEPT])))
        await self._follow(answer)
        return ()

    async def _tell_match(self, action: FileAction, hit: Attempt, what: str) -> None:
        await self._emit(
            e.NoticeGiven("info", f"{hit.matches} files fit “{action.name}” equally well: {what}")
        )

    async def _ask(self, action: FileAction, offered: Sequence[str], *, several: bool = False) -> Decision:
        """The person's word on an action. What is decided about others meanwhile is done meanwhile."""
        assert self._context.ask is not None
        while True:
            async with self._context.asking:
                await self._emit(e.QuestionAsked(action.name, tuple(offered) if several else ()))
                answer = await self._context.ask(action.name, offered)
            if answer.action == action.name:
                break
            await self._follow(answer)
        shown = answer.path or (offered[0] if answer.everything else "")
        await self._emit(e.QuestionAnswered(action.name, shown))
        return answer

    async def _fall_back(self, action: FileAction, missed: Sequence[Attempt]) -> None:
        outcome = _in_words(action, missed)
        names: tuple[str, ...] = ()
        if action.fallback == "ask_user":
            index = self._context.workspace.index
            names = tuple(await asyncio.to_thread(index.nearest, action.patterns[0], NEAREST_SHOWN))
        tried = tuple(text for _, text in action.steps)
        await self._emit(e.FallbackTaken(action.name, action.fallback, tried, names))
        missing = all(attempt.outcome == "miss" for attempt in missed)
        match action.fallback:
            case "create_new" if missing:
                patterns = ", ".join(action.patterns)
                self._say(f"{action.name} does not exist (tried {patterns}); you may create it.")
            case "ask_user" if self._context.ask is not None:
                answer = await self._ask(action, names)
                if answer.path or answer.patterns:
                    await self._follow(answer)
                else:
                    self._say(f"{outcome}; continue without it.")
            case _:
                if action.fallback == "ask_user" or not missing:
                    await self._emit(e.NoticeGiven("warning", f"{outcome}. The turn continues without it"))
                self._say(f"{outcome}.")


def _as_patterns(context: ToolContext, decision: Decision) -> Decision:
    """A typed path that is not a file is looked for like a name."""
    path = decision.path.removeprefix("./").strip()
    if not path or context.workspace.index.contains(path) or (context.workspace.root / path).is_file():
        return replace(decision, path=path)
    patterns = (path,) if path.startswith("**/") else (path, f"**/{path}")
    return replace(decision, path="", patterns=patterns)


def _by_size(root: Path, paths: Sequence[str]) -> list[str]:
    """The smallest first, by their size on disk: more of those fit."""

    def size(path: str) -> int:
        try:
            return (root / path).lstat().st_size
        except OSError:
            return 0  # what is gone says so when it is read

    return [path for _, path in sorted((size(path), path) for path in paths)]


def _in_words(action: FileAction, missed: Sequence[Attempt]) -> str:
    """Why no file was loaded, for the person and the model. A pattern that is too broad did find files."""
    reasons = [f"{attempt.pattern}: {attempt.why}" for attempt in missed if attempt.outcome != "miss"]
    tried = f"(tried {', '.join(attempt.pattern for attempt in missed)})"
    if not reasons:
        return f"{action.name} was not found {tried}"
    return f"{action.name} was not loaded {tried}: {'; '.join(reasons)}"
