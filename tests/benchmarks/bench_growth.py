"""How starting, asking and resuming grow: with the files of the folder and with the turns of the session.

The curves are drawn into docs/performance.svg. The turns of a session are written to its log, none is played.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_feel import awhile, enter, reply
from bench_sessions import talk
from figures import Figure, show
from programs import ECHO, KEY, OUR_MARK, ROOT, TUI_AGENT, big_workspace, home, small_workspace
from support.provider import Provider
from terminal import Terminal

from tui_agent.log.transfer import write
from tui_agent.store import events as e

FILES, TURNS = (1_000, 10_000, 100_000), (10, 100, 1_000, 2_000)
RUNS = 3
LATER_TURNS = 5
LAST_REPLY, LATER = 0.45, 60
PICTURE = ROOT / "docs" / "performance.svg"
WIDTH, HEIGHT, LEFT, TOP = 640, 300, 60, 30
Curves = Mapping[str, Mapping[int, float]]


def main() -> None:
    files = {count: by_files(count) for count in FILES}
    turns = {count: resuming(count) for count in TURNS}
    started = {count: took for count, (took, _) in files.items()}
    asked = {count: took for count, (_, took) in files.items()}
    show(
        [
            *(
                Figure(f"start to a key, {count:,} files", took, None, " s")
                for count, took in started.items()
            ),
            *(
                Figure(
                    f"Enter to the main request of a later turn, {count:,} files", took * 1000, LATER, " ms"
                )
                for count, took in asked.items()
            ),
            *(
                Figure(f"resume to the last reply, {count:,} turns", took, LAST_REPLY, " s")
                for count, took in turns.items()
            ),
        ]
    )
    PICTURE.write_text(
        drawn(
            {
                "start to a key in the input, by files": started,
                "resume to the last reply on the screen, by turns": turns,
                "Enter to the main request of a later turn, by files": asked,
            }
        )
    )


def by_files(files: int) -> tuple[float, float]:
    """Seconds from the start until a key is shown in the input, and from Enter to a later turn's main request; the
    medians of some runs and turns."""
    started, asked = [], []
    with Provider() as provider, big_workspace(files, 0) as workspace, home(provider.url) as env:
        provider.otherwise = reply
        for run in range(RUNS + 1):
            with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
                terminal.wait_for(OUR_MARK)
                terminal.press(KEY)
                started.append(terminal.wait_for(ECHO) - terminal.started)
                terminal.press("\x7f")
                if run == RUNS:
                    awhile(terminal, 4.0)
                    asked = [
                        enter(terminal, provider, "and once more")[-1] / 1000 for _ in range(LATER_TURNS + 1)
                    ]
    return statistics.median(started[1:]), statistics.median(asked[1:])


def resuming(turns: int) -> float:
    """Seconds from the start until the last reply of a session is on the screen; the median of some runs."""

    def once(workspace: Path, env: dict[str, str]) -> float:
        with Terminal([*TUI_AGENT, "--resume", "long", "."], workspace, env) as terminal:
            return terminal.wait_for(rf"Answer {turns}\.") - terminal.started

    with small_workspace() as workspace, home() as env:
        events = [e.SessionStarted("long", str(workspace)), *talk(turns, random.Random(1))]
        write(Path(env["TUI_AGENT_HOME"]) / "data", "long", events, workspace=str(workspace), turns=turns)
        once(workspace, env)
        return statistics.median(once(workspace, env) for _ in range(RUNS))


def drawn(curves: Curves) -> str:
    """The curves as a picture: counts from left to right by their logarithm, seconds from the bottom."""
    most = max(max(points.values()) for points in curves.values()) * 1.1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 100}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT + 100}" fill="white"/>',
    ]
    for step in range(5):
        y = TOP + HEIGHT - HEIGHT * step / 4
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        lines.append(f'<text x="8" y="{y + 4:.0f}" fill="#555">{most * step / 4:.2f} s</text>')
    for number, (name, points) in enumerate(curves.items()):
        colour = ("#1f6feb", "#c2410c", "#15803d")[number % 3]
        lines += curve(points, most, colour)
        lines.append(
            f'<text x="{LEFT + 10}" y="{TOP + HEIGHT + 20 + 18 * number}" fill="{colour}">{name}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def curve(points: Mapping[int, float], most: float, colour: str) -> Sequence[str]:
    """One line through its points, each with its count below it."""
    places = [
        (
            LEFT
            + 40
            + (WIDTH - LEFT - 100) * math.log(count / min(points)) / math.log(max(points) / min(points)),
            TOP + HEIGHT * (1 - took / most),
            count,
        )
        for count, took in points.items()
    ]
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y, _ in places)
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{colour}"/>' for x, y, _ in places),
        *(f'<text x="{x:.0f}" y="{y - 8:.0f}" fill="{colour}">{count:,}</text>' for x, y, count in places),
    ]


if __name__ == "__main__":
    main()
