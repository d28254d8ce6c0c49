"""Thirty tasks by `tui-agent run`, and each repository's five tasks in one session, with a scripted model that errs.

The table is written into docs/notes/tasks.md. `--seed N` chooses other errors.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `support`, as in the tests

from tests.proofs.tally import Tally
from tests.tasks.all_tasks import REPOSITORIES, TASKS
from tests.tasks.runs import Outcome, headless, in_one_session
from tui_agent.log.stats import Figures, Goal

DIALECTS = ("tools", "structured")
#: Tasks of three files, by the ending of their names.
THREE_FILES = ("in-three-files", "in-three-places")


def prove(tally: Tally, scale: float, seed: int = 1) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder, home = Path(temporary), Path(temporary, "home")
        home.mkdir()
        alone, together, sessions = [], [], []
        for number, (repository, task) in enumerate(TASKS[:: max(1, round(1 / scale))]):
            alone.append(headless(repository, task, folder, home, seed, DIALECTS[(number + seed) % 2]))
            print(_line(alone[-1]), flush=True)
        for repository in REPOSITORIES if scale == 1 else REPOSITORIES[:1]:
            outcomes, figures = asyncio.run(in_one_session(repository, folder / "sessions", home, seed))
            together += outcomes
            print("\n".join(map(_line, outcomes)), flush=True)
            sessions.append(figures)
    for way, outcomes in (("tui-agent run", alone), ("one session", together)):
        for one in outcomes:
            if one.solved is not None:
                tally.case(
                    one.repository,
                    one.solved and not one.wrong and not one.lost,
                    column=way,
                    what=_line(one),
                )
    tally.figures([("figure", "target", "30 sessions of one task", "6 sessions of five tasks")])
    tally.figures(_goals(_sum(one.figures for one in alone), _sum(sessions)))
    tally.figures(_rows(alone, together))


def _line(one: Outcome) -> str:
    ended = "solved" if one.solved else "not judged" if one.solved is None else "NOT SOLVED"
    counts = f"{one.turns} messages, {one.requests} requests, {one.questions} questions"
    bad = [*one.wrong, *one.lost, *one.faults]
    return f"{one.repository}/{one.task}: {ended}, {counts} ({', '.join(one.errors)}) {bad or ''}"


def _sum(parts: Iterable[Figures]) -> Figures:
    total = Figures()
    for part in parts:
        total = total.plus(part)
    return total


def _goals(alone: Figures, together: Figures) -> list[tuple[str, ...]]:
    pairs = [
        pair
        for pair in zip(alone.goals(), together.goals(), strict=True)
        if pair[0].words != "turns per task"
    ]
    return [(one.words, one.bound, _value(one), _value(two)) for one, two in pairs]


def _value(goal: Goal) -> str:
    return "–" if goal.value is None else f"{goal.value:g}{'' if goal.met else ' (missed)'}"


def _rows(*ways: Sequence[Outcome]) -> list[tuple[str, ...]]:
    def row(words: str, target: str, figure: Callable[[Sequence[Outcome]], str]) -> tuple[str, ...]:
        return words, target, *(figure(outcomes) for outcomes in ways)

    def mean(values: Sequence[float]) -> str:
        return f"{sum(values) / len(values):.1f}" if values else "–"

    def errors(outcomes: Sequence[Outcome]) -> str:
        return str(sum(len(one.errors) for one in outcomes)) if any(one.errors for one in outcomes) else "–"

    return [
        row(
            "solved (hidden tests)",
            "all",
            lambda all_: f"{sum(one.solved is True for one in all_)} of {len(all_)}",
        ),
        row("not judged (no compiler)", "0", lambda all_: str(sum(one.solved is None for one in all_))),
        row(
            "messages for a three-file task",
            "1",
            lambda all_: mean([one.turns for one in all_ if one.task.endswith(THREE_FILES)]),
        ),
        row("messages per task", "", lambda all_: mean([one.turns for one in all_])),
        row("requests per task", "", lambda all_: mean([one.requests for one in all_])),
        row("tokens in per task", "", lambda all_: f"{sum(one.tokens_in for one in all_) / len(all_):,.0f}"),
        row(
            "tokens out per task", "", lambda all_: f"{sum(one.tokens_out for one in all_) / len(all_):,.0f}"
        ),
        row("wrong edits (files)", "0", lambda all_: str(sum(len(one.wrong) for one in all_))),
        row("lines of the person lost", "0", lambda all_: str(sum(len(one.lost) for one in all_))),
        row("errors that the model made", "", errors),
        row("messages that ended with an error", "", lambda all_: str(sum(len(one.faults) for one in all_))),
    ]
