"""Random files and edits in every form, disturbed as models disturb them: the intended file, or a refusal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.proofs.tally import Tally

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.edit_replies import DISTURBANCES, FLOORS, FORMS, PLACED, Tried, foreign_lines, tried

#: How long it takes at full scale, in seconds, and how many cases of each kind a process does at a time.
HOUR = 3600.0
ROUNDS = 6
PROCESSES = 2
VERDICTS = ("right", "refused", "wrong", "wrong depth", "silent")
#: The share of the cases with exactly one place that must be right.
RIGHT = 0.93


def kinds() -> list[tuple[str, str]]:
    """Every disturbance with every form that it can disturb."""
    return [(name, form) for name, one in DISTURBANCES.items() for form in FORMS if form in one.forms]


def batch(seed: int) -> tuple[Counter[tuple[str, str, str, bool]], list[str]]:
    """So many cases of each kind: how they ended, and what is to be seen of those that are wrong."""
    found: Counter[tuple[str, str, str, bool]] = Counter()
    wrong: list[str] = []
    for name, form in kinds():
        for number in range(ROUNDS):
            one = tried(Random(f"{seed}/{name}/{form}/{number}"), form, name)
            found[name, form, one.verdict, one.unique] += 1
            if name != "cut" and one.result and (foreign := foreign_lines(one)):
                wrong.append(f"{seed}/{name}/{form}/{number} wrote what nobody wrote: {foreign[:3]}")
            elif one.verdict not in ("right", "refused"):
                wrong.append(f"{seed}/{name}/{form}/{number} {_told(one)}")
    return found, wrong


def _told(one: Tried) -> str:
    return f"{one.verdict}:\n{one.reply}\n--- wanted\n{one.wanted}\n--- became\n{one.result}"


def prove(tally: Tally, scale: float) -> None:
    found, wrong = _tried_for(HOUR * scale)
    for (name, form, verdict, _), count in sorted(found.items()):
        for _ in range(count):
            tally.case(name, verdict in ("right", "refused"), column=form)
    tally.failures[:] = wrong
    sys.stdout.write("\n".join(figures(found)) + "\n")
    for name, floor in FLOORS.items():
        once = {key: count for key, count in found.items() if key[0] == name and key[3]}
        right, placed = sum(count for key, count in once.items() if key[2] == "right"), sum(once.values())
        tally.case(
            "right as often as it should", right >= floor * placed, what=f"{name}: {right} of {placed}"
        )
    right, placed = _right(found)
    tally.case("right where there is one place", right >= RIGHT * placed, what=f"{right} of {placed}")


def _tried_for(seconds: float) -> tuple[Counter[tuple[str, str, str, bool]], list[str]]:
    """Cases for about so long, on all processes; the seeds rise from 0, so that more time only adds to them."""
    until = time.monotonic() + seconds
    total: Counter[tuple[str, str, str, bool]] = Counter()
    wrong: list[str] = []
    seeds = iter(range(10**9))
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(batch, next(seeds)) for _ in range(PROCESSES)}
        while waiting:
            done = next(as_completed(waiting))
            waiting.remove(done)
            found, failed = done.result()
            total += found
            wrong += failed
            if time.monotonic() < until:
                waiting.add(pool.submit(batch, next(seeds)))
    return total, wrong


def _right(found: Counter[tuple[str, str, str, bool]]) -> tuple[int, int]:
    """Of the cases in which exactly one place is meant, those that are right, and all."""
    placed = {key: count for key, count in found.items() if key[0] in PLACED and key[3]}
    return sum(count for key, count in placed.items() if key[2] == "right"), sum(placed.values())


def figures(found: Counter[tuple[str, str, str, bool]]) -> Iterator[str]:
    """What came of each form and of each disturbance, and the shares."""
    for title, part in (("disturbance", 0), ("form", 1)):
        yield f"\n{title:28} " + " ".join(f"{verdict:>12}" for verdict in VERDICTS)
        for name in dict.fromkeys(key[part] for key in found):
            row = [sum(n for key, n in found.items() if key[part] == name and key[2] == v) for v in VERDICTS]
            yield f"{name:28} " + " ".join(f"{count:12,}" for count in row)
    cases = sum(found.values())
    right, placed = _right(found)
    bad = {verdict: sum(n for key, n in found.items() if key[2] == verdict) for verdict in VERDICTS[2:]}
    told = ", ".join(f"{count} {verdict}" for verdict, count in bad.items())
    yield f"\n{cases:,} cases: {told}; right where there is one place: {right / max(placed, 1):.2%} of {placed:,}"
