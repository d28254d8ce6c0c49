"""Tool that loads files by chains of patterns.

The user's decision about an action replaces its chain.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace as with_fields
from functools import partial

from msgspec.structs import replace

from tui_agent.answers.plans import FileAction
from tui_agent.answers.values import SearchRequest
from tui_agent.context.file_contents import LoadedFile
from tui_agent.context.known_files import LoadedBy
from tui_agent.planning.chain import (
    OTHER_CASE,
    Attempt,
    ChainLimits,
    completed,
    names_one,
    nearest,
    try_patterns,
)
from tui_agent.planning.references import looks_like_identifier, spellings
from tui_agent.store import events as e
from tui_agent.store.events import ActionsAdded
from tui_agent.store.state import Decision
from tui_agent.tools.find_files import sorted_by
from tui_agent.tools.load_files import add_fitting_files, in_part, load_files, named_fit, read_files, that_fit
from tui_agent.tools.permission import refusal_of_path
from tui_agent.tools.search_text import search_text
from tui_agent.tools.tool import Emit, Invocation, LoadedFiles, Tool, ToolContext, ToolResult, counted
from tui_agent.workspace.patterns import escape

NEAREST_SHOWN = 5
#: Maximum number of requests that a call can make; the rest are refused.
MOST_ACTIONS = 200
PATHS_KEPT = 5
#: A larger workspace is not searched for a definition; number of identifiers searched for.
MOST_SEARCHED, MOST_WORDS = 20_000, 4
_WORD = re.compile(r"[A-Za-z_]\w{2,80}")
_DEFINES = (
    r"^\s*(?:export\s+|default\s+|pub\s+|public\s+|static\s+|async\s+)*"
    r"(?:def|class|func(?:\s*\([^)]*\))?|fn|function|const|let|var|type|interface|struct|enum|trait)\s+(?:{names})\b"
    r"|^(?:{names})\s*(?::[^=\n]*)?=[^=]"
)


async def find_files(
    context: ToolContext,
    actions: Sequence[tuple[FileAction, LoadedBy]],
    held: Sequence[LoadedFile],
    emit: Emit,
) -> LoadedFiles:
    search = _Search(context, held, emit)
    for action, loaded_by in actions:
        if action.name not in context.progress.settled:
            await search.find(action, loaded_by)
    await search.follow_all()
    return search.loaded


def renamed(context: ToolContext, actions: Iterable[FileAction]) -> Iterator[FileAction]:
    known = context.core.state.known
    for action in actions:
        paths = [pattern.removeprefix("./") for pattern in action.patterns]
        new = [escape(known.moved(path)) for path in paths if known.moved(path) != path]
        if action.by == "program":
            yield replace(action, patterns=(*new, *action.patterns))
        else:
            yield replace(action, extra=tuple(dict.fromkeys((*new, *action.extra))))


def named_once(actions: Iterable[FileAction], taken: set[str]) -> tuple[FileAction, ...]:
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
    """Decisions made during a request are executed with the next."""
    return [
        FileAction(
            decision.action,
            (decision.path,) if decision.path else decision.patterns,
            "taken up again by the person",
        )
        for decision in context.calls.decided()
    ]


class _Search:
    """`loaded` were found, `held` were already present."""

    def __init__(self, context: ToolContext, held: Sequence[LoadedFile], emit: Emit) -> None:
        self._context = context
        self._emit = emit
        self._held = tuple(held)
        self._seconds = 0.0
        self.loaded = LoadedFiles()

    async def find(self, action: FileAction, loaded_by: LoadedBy) -> None:
        if action.batch:
            return await self._carry_on(action, loaded_by)
        files, progress = self._context.core.settings.files, self._context.progress
        missed: list[Attempt] = []
        after: Attempt | None = None
        while True:
            hit: Attempt | None = None
            limits = ChainLimits(max_per_action=files.max_per_action, pattern_timeout=files.pattern_timeout)
            limits = replace(limits, plan_left=limits.plan_left - self._seconds)
            async for attempt in try_patterns(action, self._context.core.workspace.index, limits, after):
                progress.pending += self._context.calls.decided()
                decided = [one for one in progress.pending if one.action == action.name]
                progress.pending[:] = [one for one in progress.pending if one.action != action.name]
                if decided:
                    return await self._follow(decided[-1])
                self._seconds += attempt.ms / 1000
                if attempt.outcome == "hit":
                    hit = attempt
                    break
                if attempt.outcome == "looking":
                    await self._emit(e.AttemptStarted(attempt))
                else:
                    missed.append(attempt)
                    await self._emit(e.AttemptEnded(attempt))
            if hit is None:
                path = await self._defined_in(action, missed)
                if not path:
                    return await self._fall_back(action, missed)
                action, after = replace(action, extra=(*action.extra, escape(path))), missed[-1]
                continue
            refused = await self._load(action, hit, loaded_by)
            if not refused:
                return None
            after = hit
            missed.append(replace(hit, outcome="invalid", why=refused, paths=hit.paths[:PATHS_KEPT]))
            await self._emit(e.AttemptEnded(missed[-1]))

    async def _defined_in(self, action: FileAction, missed: Sequence[Attempt]) -> str:
        """Returns the only file that defines an identifier of the action, at least in a folder that its
        patterns name, or "".
        """
        index = self._context.core.workspace.index
        tried = any(attempt.outcome != "miss" for attempt in missed)
        if action.fallback != "ask_user" or action.all or tried or len(index) > MOST_SEARCHED:
            return ""
        files = [pattern.rpartition("/")[2] for pattern in action.patterns]
        said = _WORD.findall(" ".join((action.name, *files)))
        words = [word for word in said if looks_like_identifier(word)]
        stems = [stem for file in files if _WORD.fullmatch(stem := file.partition(".")[0])]
        found = list(dict.fromkeys((*words, *stems)))[:MOST_WORDS]
        # With other spellings of its file names: `select_tasks.ts` gives `selectTasks`.
        spelled = dict.fromkeys(it for word in found for it in (*spellings(word), word.upper()))
        names = [it for it in spelled if it.isidentifier() and (it in words or not it.islower() or "_" in it)]
        if not names:
            return ""
        expression = _DEFINES.format(names="|".join(names))
        result = await search_text(self._context, SearchRequest(expression, regex=True))
        paths = {path for path, _ in result.hits}
        if len(paths) > 1:
            folders = {
                part for pattern in action.patterns for part in pattern.split("/")[:-1] if part.isidentifier()
            }
            paths = {path for path in paths if folders & {*path.split("/")[:-1]}}
        return "" if len(paths) != 1 or escape(*paths) in action.extra else paths.pop()

    async def _carry_on(self, action: FileAction, loaded_by: LoadedBy) -> None:
        state, root = self._context.core.state, self._context.core.workspace.root
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
        now = next((one for one in self._context.core.state.batches if one.id == action.batch), None)
        if now is not None and now.now:
            first = now.done + 1
            self._add_fact(
                f"The files of “{batch.name}” that are shown now are {first} to {now.done + len(now.now)} of "
                f"{now.total}, for the request: {batch.request}. The files before them are done: leave those alone."
            )

    async def follow_all(self) -> None:
        pending = self._context.progress.pending
        pending += self._context.calls.decided()
        while pending:
            await self._follow(pending.pop(0))

    async def _follow(self, decision: Decision) -> None:
        plan = self._context.core.state.plan
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
            self._add_fact(f"The user excluded {action.name}.")
            await self._emit(e.FallbackTaken(action.name, "skip", action.patterns))

    def _add_fact(self, fact: str) -> None:
        self.loaded = self.loaded.plus(LoadedFiles(facts=(fact,)))

    async def _load(self, action: FileAction, hit: Attempt, loaded_by: LoadedBy) -> str:
        chosen: Sequence[str] = hit.paths
        if action.all:
            root = self._context.core.workspace.root
            chosen = await asyncio.to_thread(sorted_by, root, hit.paths, lambda status: status.st_size)
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
        elif action.batch and not fitting:
            fitting, rest = await named_fit(self._context, held, fitting, rest, self._emit, most=1)
        lines = sum(file.lines for file in fitting)
        await self._emit(e.AttemptEnded(replace(hit, lines=lines, paths=hit.paths[:PATHS_KEPT])))
        if hit.why == OTHER_CASE:
            paths = ", ".join(hit.paths[:PATHS_KEPT])
            await self._emit(e.NoticeGiven("info", f"{hit.pattern} was {OTHER_CASE}: {paths}"))
        found = await add_fitting_files(self._context, read, fitting, rest, self._emit, action.name)
        self.loaded = self.loaded.plus(found)
        if action.all and hit.matches > len(hit.paths):
            more = (
                f"{hit.matches - len(hit.paths):,} more files match “{hit.pattern}” than one batch may hold"
            )
            await self._emit(e.FilesLeftOut(action.name, (), more, "limit"))
            await self._emit(e.NoticeGiven("warning", f"{more}; narrow the pattern"))
            self._add_fact(f"{more}; narrow the pattern.")
        return ""

    async def _choose(self, action: FileAction, hit: Attempt) -> Sequence[str]:
        """Returns the nearest of several files, the user's choice, or all; none to skip."""
        ask = self._context.ask
        best = nearest(action, hit.paths)
        if len(best) == 1:
            await self._emit(e.MatchChosen(action.name, best, hit.paths, "nearness"))
            if ask is None:
                await self._tell_match(action, hit, f"{best[0]}, the nearest, was selected")
            return best
        if ask is None or action.fallback != "ask_user":
            await self._emit(e.MatchChosen(action.name, hit.paths, hit.paths, "all"))
            if ask is None:
                await self._tell_match(action, hit, "all are loaded")
            return hit.paths
        await self._emit(e.AttemptStarted(hit))
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
        assert self._context.ask is not None
        while True:
            async with self._context.progress.asking:
                await self._emit(e.QuestionAsked(action.name, tuple(offered) if several else ()))
                answer = await self._context.ask(action.name, offered)
            if answer.action == action.name:
                break
            await self._follow(answer)
        shown = answer.path or (offered[0] if answer.everything else "")
        await self._emit(e.QuestionAnswered(action.name, shown))
        return answer

    async def _fall_back(self, action: FileAction, missed: Sequence[Attempt]) -> None:
        reasons = [f"{attempt.pattern}: {attempt.why}" for attempt in missed if attempt.outcome != "miss"]
        tried = f"(tried {', '.join(attempt.pattern for attempt in missed)})"
        if not reasons:
            outcome = f"{action.name} was not found {tried}"
        else:
            outcome = f"{action.name} was not loaded {tried}: {'; '.join(reasons)}"
        names: tuple[str, ...] = ()
        if action.fallback == "ask_user":
            index = self._context.core.workspace.index
            names = tuple(await asyncio.to_thread(index.nearest, action.patterns[0], NEAREST_SHOWN))
        tried = tuple(text for _, text in action.steps)
        await self._emit(e.FallbackTaken(action.name, action.fallback, tried, names))
        missing = all(attempt.outcome == "miss" for attempt in missed)
        match action.fallback:
            case "create_new" if missing:
                patterns = ", ".join(action.patterns)
                self._add_fact(f"{action.name} does not exist (tried {patterns}); you may create it.")
            case "ask_user" if self._context.ask is not None:
                answer = await self._ask(action, names)
                if answer.path or answer.patterns:
                    await self._follow(answer)
                else:
                    self._add_fact(f"{outcome}; continue without it.")
            case _:
                if action.fallback == "ask_user" or not missing:
                    await self._emit(e.NoticeGiven("warning", f"{outcome}. The turn continues without it"))
                self._add_fact(f"{outcome}.")


def _as_patterns(context: ToolContext, decision: Decision) -> Decision:
    path = decision.path.removeprefix("./").strip()
    if (
        not path
        or context.core.workspace.index.contains(path)
        or (context.core.workspace.root / path).is_file()
    ):
        return replace(decision, path=path)
    patterns = (path,) if path.startswith("**/") else (path, f"**/{path}")
    return replace(decision, path="", patterns=patterns)


async def run(call: Invocation, context: ToolContext, emit: Emit) -> ToolResult:
    # Before the first await, so that concurrent calls name their actions in order.
    taken = {slot.action.name for slot in context.core.state.plan.actions} | context.progress.names
    actions = named_once(call.entries[:MOST_ACTIONS], taken)
    context.progress.names |= taken
    actions = await asyncio.to_thread(completed, actions, context.core.workspace.index)
    actions = tuple(renamed(context, actions))
    await emit(ActionsAdded(actions))
    wanted: list[tuple[FileAction, LoadedBy]] = [(action, "request") for action in actions]
    refusal = partial(refusal_of_path, context.core.settings.permissions, call.name)
    loaded = await find_files(with_fields(context, refusal=refusal), wanted, (), emit)
    if refused := len(call.entries) - len(actions):
        fact = f"{refused:,} of {len(call.entries):,} requests are ignored: a call can make {MOST_ACTIONS}."
        loaded = loaded.plus(LoadedFiles(facts=(fact,)))
    lines, count = sum(file.lines for file in loaded.files), len(loaded.files)
    files = f"{counted(count, 'file')}, {counted(lines, 'line')}"
    names = {action.name for action in actions}
    out = sum(len(slot.left_out) for slot in context.core.state.plan.actions if slot.action.name in names)
    more = f"{out} without room" if out else ""
    return ToolResult(
        loaded=loaded,
        ok=bool(count) and not out,
        amount=", ".join(filter(None, (files if count else "", more))) or "nothing found",
        details="\n".join([*(f"{file.path}: {file.lines:,} lines" for file in loaded.files), *loaded.facts]),
    )


TOOL = Tool(
    name="read_files",
    key="fileRequests",
    parameter="actions",
    words="Files you need to see before you can go on.",
    entry={
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["file"]},
            "name": {"type": "string", "description": "What it is, for the person."},
            "patterns": {
                "type": "array",
                "description": (
                    "1-5 patterns, tried in order: exact path, **/name, folder/*, part of the name, extension."
                ),
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
            },
            "reason": {"type": "string"},
            "required": {"type": "boolean"},
            "fallbackAction": {"type": "string", "enum": ["ask_user", "skip", "create_new"]},
            "all": {"type": "boolean", "description": "Every file that fits, not one."},
            "lines": {
                "type": "array",
                "description": "Only these lines, such as 120-180: of a file that is shown in part.",
                "items": {"type": "string"},
            },
        },
        "required": ["patterns"],
    },
    example={
        "type": "file",
        "name": "Schema",
        "patterns": ["src/schema.ts", "**/schema.ts"],
        "required": True,
        "fallbackAction": "ask_user",
    },
    section=(
        '# Batches\nA request about many files ("all files in docs/", "every test") is one piece of work: ask for them '
        "with ONE request with `all` set, make ONE todo, and propose all changes in ONE reply."
    ),
    place=30,
    run=run,
    targets=lambda call: tuple(pattern for action in call.entries for pattern in action.patterns),
    line=lambda call: ", ".join(action.name or action.patterns[0] for action in call.entries),
)
