"""Fallback chains: patterns are tried in order until one matches; every attempt is reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import Author, FileAction
from tui_agent.workspace.index import Index, Matches
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern

Outcome = Literal["looking", "hit", "miss", "too_broad", "invalid", "timeout"]
SHOWN = 5
OTHER_CASE: Final = "found with different letter case"
#: Time limit for all chains of a plan.
PLAN_SECONDS = 20.0


class Attempt(Struct, frozen=True):
    """`index` counts from 1 among the `total` patterns of the same author; duration in ms. `matches` counts
    matching paths, `paths` are the first of them, `lines` the number of loaded lines."""

    action: str
    pattern: str
    index: int
    total: int
    outcome: Outcome = "looking"
    matches: int = 0
    ms: float = 0.0
    paths: tuple[str, ...] = ()
    lines: int = 0
    why: str = ""
    by: Author = "program"

    @property
    def step(self) -> tuple[Author, int]:
        return self.by, self.index


class ChainLimits(Struct, frozen=True):
    """At most `max_per_action` files are loaded per pattern; `pattern_timeout` is in seconds.

    A batch (`all`) is never too broad: `max_batch` paths are passed on, and the token budget limits loading.
    """

    max_per_action: int = 20
    pattern_timeout: float = 2.0
    #: Remaining time for the whole plan, in seconds; also limits each pattern.
    plan_left: float = PLAN_SECONDS
    max_batch: int = 10_000


async def try_patterns(
    action: FileAction, index: Index, limits: ChainLimits | None = None, after: Attempt | None = None
) -> AsyncIterator[Attempt]:
    """Each attempt at its start (`looking`) and at its end; the last one is the hit, if any.

    Starts after the attempt `after`, to continue if the matches could not be loaded. Paths of a hit are
    sorted by depth and name; those of a batch by name.
    """
    limits = limits or ChainLimits()
    authors = [by for by, _ in action.steps]
    planned = [
        Attempt(action.name, text, authors[: at + 1].count(by), authors.count(by), by=by)
        for at, (by, text) in enumerate(action.steps)
    ]
    if after is None:
        attempts = planned
    else:
        passed = next(n for n, one in enumerate(planned, 1) if one.step == after.step)
        attempts = planned[passed:]
    for started in attempts:
        yield started
        began = time.perf_counter()
        ended = await _attempt(started, action, index, limits)
        seconds = time.perf_counter() - began
        limits = replace(limits, plan_left=limits.plan_left - seconds)
        yield replace(ended, ms=round(seconds * 1000, 2))
        if ended.outcome == "hit":
            return


async def _attempt(started: Attempt, action: FileAction, index: Index, limits: ChainLimits) -> Attempt:
    if index.contains(started.pattern):
        return replace(started, outcome="hit", matches=1, paths=(started.pattern,))
    if limits.plan_left <= 0:
        return replace(started, outcome="timeout", why="the time limit of the plan was reached")
    deadline = time.monotonic() + min(limits.pattern_timeout, limits.plan_left)
    most = limits.max_batch if action.all else limits.max_per_action
    ended = started
    for ignore_case in (True,) if index.ignore_case else (False, True):
        pattern = compile_pattern(started.pattern, ignore_case=ignore_case)
        if isinstance(pattern, InvalidPattern):
            return replace(started, outcome="invalid", why=pattern.why)
        found = await asyncio.to_thread(index.match, pattern, most, deadline)
        ended = _judged(started, found, action, limits)
        if ended.outcome != "miss":
            only_so = ignore_case and not index.ignore_case and ended.outcome == "hit"
            return replace(ended, why=OTHER_CASE) if only_so else ended
    return ended


def _judged(started: Attempt, found: Matches, action: FileAction, limits: ChainLimits) -> Attempt:
    ended = replace(started, matches=found.count)
    if not found.complete:
        why = f"stopped after {limits.pattern_timeout:g} s, the limit for one pattern"
        return replace(ended, outcome="timeout", why=why)
    if not found.count:
        return replace(ended, outcome="miss")
    if action.all:
        return replace(ended, outcome="hit", paths=found.paths)
    if found.count > limits.max_per_action:
        why = f"{found.count:,} files match; narrow the pattern"
        return replace(ended, outcome="too_broad", paths=found.paths[:SHOWN], why=why)
    nearest = sorted(found.paths, key=lambda path: (path.count("/"), path))
    return replace(ended, outcome="hit", paths=tuple(nearest))
