"""`tui-agent stats`: questions, failed loads, refused changes and turns, counted over sessions."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tui_agent.errors import SessionError, UsageError
from tui_agent.headless import arguments
from tui_agent.headless.output import json_line, row
from tui_agent.headless.sessions import count, entries_of, log_of, write_lost
from tui_agent.log.log import timed_events_of
from tui_agent.log.stats import SPENT_SHOWN, Figures, figures_over_time

#: Width of `--plot` bars, in cells.
BAR_CELLS = 24


@click.command()
@click.option(
    "--session",
    default="",
    metavar="ID|last",
    shell_complete=arguments.sessions,
    help="One session; default: all of this workspace.",
)
@arguments.all_option
@arguments.json_option
@click.option("--plot", is_flag=True, help="Draw bars with goals.")
def stats(session: str, everywhere: bool, as_json: bool, plot: bool) -> int:
    """Show statistics of turns, files and changes."""
    if session and everywhere:
        raise UsageError("--session and --all cannot be combined", "use one of them")
    if as_json and plot:
        raise UsageError("--json and --plot cannot be combined", "use one of them")
    here, one = arguments.workspace_folder("."), arguments.session_id(session)
    names = [one] if one else [entry.id for entry in entries_of(here, everywhere)]
    total = Figures()
    for name in names:
        lost: list[str] = []
        try:
            total = total.plus(figures_over_time(timed_events_of(log_of(name), lost), name))
        except SessionError as error:
            if one:
                raise
            lost.append(str(error))
        write_lost(lost)
    if as_json:
        json_line(total.values())
    elif plot:
        for line in _plot(total):
            row(line)
    else:
        for words, value in total.in_words():
            row(f"{words:<36} {value}")
    return 0


def _plot(figures: Figures) -> Iterator[str]:
    """Each figure against its goal, and the outcomes of the patterns."""
    yield f"{count(figures.sessions, 'session')}, {count(figures.turns, 'turn')}"
    for goal in figures.goals():
        value = "–" if goal.value is None else f"{goal.value:g}"
        scale = max(goal.value or 0, (goal.most or 0) * 2, goal.least or 0)
        missed = "" if goal.met else "  missed"
        yield f"{goal.words:<38} {_bar(goal.value or 0, scale)} {value:>7}  {goal.bound}{missed}"
    found = {f"matched by pattern {place}": number for place, number in sorted(figures.hits.items())}
    if figures.built_in:
        found["matched by a built-in pattern"] = figures.built_in
    found |= {
        outcome.replace("_", " "): number
        for outcome, number in sorted(figures.outcomes.items())
        if outcome != "hit"
    }
    for words, number in found.items():
        yield f"{words:<38} {_bar(number, max(found.values()))} {number:>7}"
    spent = {
        folder: (sums["input"] or 0) + (sums["output"] or 0)
        for folder, sums in figures.spent("workspace").items()
    }
    for folder, tokens in sorted(spent.items(), key=lambda one: -one[1])[:SPENT_SHOWN]:
        name = folder if len(folder) <= 38 else f"…{folder[-37:]}"
        yield f"{name:<38} {_bar(tokens, max(spent.values()))} {tokens:>7,} tokens"


def _bar(value: float, scale: float) -> str:
    eighths = round(8 * BAR_CELLS * min(value / scale, 1.0)) if scale else 0
    return ("█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")).ljust(BAR_CELLS)
