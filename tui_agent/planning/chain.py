"""Climbing a fallback chain: each pattern in order, the first that matches wins, every attempt told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import MAX_PATTERNS, FileAction
from tui_agent.workspace.index import Index, Matches
from tui_agent.workspace.patterns import InvalidPattern, compile_pattern

Outcome = Literal["looking", "hit", "miss", "too_broad", "invalid", "timeout"]
#: How many of a broad pattern's matches are shown.
SHOWN = 5
#: How long the chains of one plan may search all together.
PLAN_SECONDS = 20.0


class Attempt(Struct, frozen=True):
    """One pattern of one action: `index` of `total` from 1, how it ended, and how long it took.

    `matches` is how many paths fitted; `paths` are the first of them; `lines` are those of what was loaded.
    """

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


class ChainLimits(Struct, frozen=True):
    """`max_per_action` files are loaded for one pattern at most; a pattern ends after `pattern_timeout` seconds.

    Of a batch (`all`), which is never too broad, `max_batch` paths are handed on; what is loaded of them is up
    to the token budget.
    """

    max_per_action: int = 20
    pattern_timeout: float = 2.0
    #: What is left of the time for the whole plan, in seconds; of it, too, a pattern takes no more.
    plan_left: float = PLAN_SECONDS
    max_batch: int = 2000


async def climb(
    action: FileAction, index: Index, limits: ChainLimits | None = None, first: int = 1
) -> AsyncIterator[Attempt]:
    """Every attempt twice: when it starts (`looking`) and when it has ended; the last is the hit, if there is one.

    Begins with pattern number `first` (from 1), so that a chain can go on after a hit that could not be loaded.
    The paths of a hit stand best first: nearest to the root, then by name; those of a batch by name.
    """
    limits = limits or ChainLimits()
    patterns = action.patterns[:MAX_PATTERNS]
    for number, pattern in enumerate(patterns[first - 1 :], first):
        started = Attempt(action.name, pattern, number, len(patterns))
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
    pattern = compile_pattern(started.pattern, ignore_case=index.ignore_case)
    if isinstance(pattern, InvalidPattern):
        return replace(started, outcome="invalid", why=pattern.why)
    if limits.plan_left <= 0:
        return replace(started, outcome="timeout", why="the time for the whole plan is over")
    deadline = time.monotonic() + min(limits.pattern_timeout, limits.plan_left)
    most = limits.max_batch if action.all else limits.max_per_action
    found = await asyncio.to_thread(index.match, pattern, most, deadline)
    return _judged(started, found, action, limits)


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
        why = f"{found.count:,} files fit, more than {limits.max_per_action}"
        return replace(ended, outcome="too_broad", paths=found.paths[:SHOWN], why=why)
    return replace(ended, outcome="hit", paths=tuple(sorted(found.paths, key=_nearest_to_root)))


def _nearest_to_root(path: str) -> tuple[int, str]:
    return path.count("/"), path
