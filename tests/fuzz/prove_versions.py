"""Edits that people made between two versions of packages, as models would write them: exactly those, or a refusal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest.mock import patch

from tests.proofs.tally import Tally

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import version_edits
from support.edit_replies import DISTURBANCES, FORMS, PLACED, Verdict, foreign_lines, read_back, tried
from support.transcripts import around, labelled

from tui_agent.edits import locate
from tui_agent.edits.locate import RUNGS, Replacement
from tui_agent.edits.source_text import Match, SourceText

#: Another one gives other cases.
SEED = "between versions"
#: Cases at full scale, and how many a process does at a time.
CASES = 100_000
AT_ONCE = 500
PROCESSES = 2
#: Whole files below a label, as a disturbance of their own.
LABELLED = "a label above the file"
#: Of the edits that are certain, the share that must come out right, in all and for each disturbance.
RIGHT = 0.96
FLOORS = {
    "look-alikes": 0.97,
    "blanks inside": 0.97,
    "commas": 0.94,
    "forgotten line": 0.88,
    "context without its blank": 0.88,
    "stray blank": 0.94,
    "first line bare": 0.93,
    "another width": 0.92,
    "tabs": 0.93,
    "line-number prefixes": 0.93,
    LABELLED: 0.9,
}
FLOOR = 0.96
#: The share of all cases whose new lines may be at another depth than they were meant to be.
WRONG_DEPTH = 0.0001

KINDS = [(name, form) for name, one in DISTURBANCES.items() for form in FORMS if form in one.forms]
KINDS += [(LABELLED, "file in a fence")] * 12

#: Disturbance, verdict, and whether the edit is certain.
Key = tuple[str, Verdict, bool]


def one_case(number: int) -> tuple[str, Verdict, bool, str]:
    """The disturbance of a case, how it ended, whether text and place of its edit are certain, and what to look at."""
    draw = Random(f"{SEED}/{number}")
    name, form = KINDS[number % len(KINDS)]
    if name == LABELLED:
        return (name, *_labelled(draw))
    one = tried(draw, form, name, version_edits.case, around(draw, form))
    verdict: Verdict = one.verdict
    told = ""
    if name != "cut" and one.result and (foreign := foreign_lines(one)):
        verdict, told = "wrong", f"wrote what nobody wrote: {foreign[:3]}\n"
    if verdict not in ("right", "refused"):
        told += f"{one.form}\n{one.reply}\n--- wanted\n{one.wanted}\n--- became\n{one.result}"
    return name, verdict, one.unique and name in PLACED, told or one.reason


def _labelled(draw: Random) -> tuple[Verdict, bool, str]:
    """A whole file, new or not, in a fence below a line that names it."""
    made = version_edits.case(draw)
    reply = labelled(draw, made.path, made.wanted.replace("\r", "").removesuffix("\n") + "\n")
    read = read_back(reply)
    text = made.wanted.replace("\r", "").removesuffix("\n") + "\n"
    for change in read.changes:
        first = (change.content or "").removeprefix(f"# {made.path}\n")
        if change.path != made.path or first != text:
            return "wrong", True, f"{change.path}\n{reply}"
        return "right", True, ""
    if read.faults or read.refused or read.offered or read.shown:
        return "refused", True, " ".join(read.faults)
    return "silent", True, reply


class Tried(NamedTuple):
    """How cases ended, on which steps the places of those were found that are right, and what is wrong."""

    ended: Counter[Key]
    rungs: Counter[str]
    wrong: list[str]


def batch(first: int) -> Tried:
    """So many cases from a number on."""
    all_of_them = Tried(Counter(), Counter(), [])
    for number in range(first, first + AT_ONCE):
        here: Counter[str] = Counter()
        with patch.object(locate, "placed", partial(_counted, here, locate.placed)):
            name, verdict, certain, told = one_case(number)
        all_of_them.ended[name, verdict, certain] += 1
        if verdict == "right":
            all_of_them.rungs.update(here)
        if verdict not in ("right", "refused"):
            all_of_them.wrong.append(f"{number} {name}, {verdict}: {told}")
    return all_of_them


def _counted(
    rungs: Counter[str], placed: Callable[[SourceText, Match], Replacement], source: SourceText, match: Match
) -> Replacement:
    rungs[match.rung] += 1
    return placed(source, match)


def prove(tally: Tally, scale: float) -> None:
    if missing := version_edits.fetch():
        sys.stdout.write(f"left out, for they cannot be fetched: {', '.join(missing)}\n")
    version_edits.changed()
    total = Tried(Counter(), Counter(), [])
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        for one in pool.map(batch, range(0, int(CASES * scale), AT_ONCE)):
            total.ended.update(one.ended)
            total.rungs.update(one.rungs)
            total.wrong.extend(one.wrong)
    _judge(tally, total.ended)
    placed = total.rungs.total()
    for rung in RUNGS:
        tally.case(
            "a step decides one place in 1,000",
            1_000 * total.rungs[rung] >= placed,
            what=f"{rung} of {placed}",
        )
    tally.failures[:0] = total.wrong
    tally.figures(_rows(total.ended))
    tally.figures([("step", "places that it decided", *[""] * 6)])
    tally.figures(
        (rung, f"{total.rungs[rung]:,}", f"{total.rungs[rung] / placed:.1%}", *[""] * 5) for rung in RUNGS
    )


def _judge(tally: Tally, total: Counter[Key]) -> None:
    cases = total.total()
    counts = Counter(dict.fromkeys(("wrong", "wrong depth", "silent"), 0))
    for (_, verdict, _), count in total.items():
        counts[verdict] += count
    for name, least in (("wrong", 0.0), ("wrong depth", WRONG_DEPTH), ("silent", 0.0)):
        tally.case(
            f"{name}: at most {least:.2%}", counts[name] <= least * cases, what=f"{counts[name]} of {cases}"
        )
    right, certain = _share(total, None)
    tally.case(
        f"right, of what is certain: at least {RIGHT:.0%}",
        right >= RIGHT * certain,
        what=f"{right} of {certain}",
    )
    for name in dict.fromkeys(key[0] for key in total):
        right, certain = _share(total, name)
        floor = FLOORS.get(name, FLOOR)
        tally.case("its own floor", right >= floor * certain, what=f"{name}: {right} of {certain}")


def _share(total: Counter[Key], name: str | None) -> tuple[int, int]:
    """How many of the edits that are certain came out right, and how many there are; None for all disturbances."""
    some = {key: count for key, count in total.items() if key[2] and name in (None, key[0])}
    return sum(count for key, count in some.items() if key[1] == "right"), sum(some.values())


def _rows(total: Counter[Key]) -> list[tuple[str, ...]]:
    verdicts: tuple[Verdict, ...] = ("right", "refused", "wrong", "wrong depth", "silent")
    rows = [("real edits, disturbed", "cases", *verdicts, "right, of what is certain")]
    for name in [*dict.fromkeys(key[0] for key in total), None]:
        some = {key: count for key, count in total.items() if name in (None, key[0])}
        counts = [sum(count for key, count in some.items() if key[1] == verdict) for verdict in verdicts]
        right, certain = _share(total, name)
        share = f"{right / certain:.1%}" if certain else "–"
        rows.append((name or "all", f"{sum(some.values()):,}", *(f"{count:,}" for count in counts), share))
    return rows
