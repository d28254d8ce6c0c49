"""How starting and resuming grow: with the files of the folder and with the turns of the session, drawn as curves.

Files up to 10,000 and turns up to 100; `python tests/benchmarks growth --whole` goes to 100,000 and 2,000. The picture
in docs/performance.svg is drawn again by a whole run.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_sessions import talk
from figures import Figure, show
from programs import ECHO, KEY, OUR_MARK, ROOT, TUI_AGENT, big_workspace, home, small_workspace
from terminal import Terminal

from tui_agent.log.fork import write
from tui_agent.store import events as e

FILES, TURNS = (1_000, 10_000, 100_000), (10, 100, 1_000, 2_000)
RUNS = 3
LAST_REPLY = 0.45
PICTURE = ROOT / "docs" / "performance.svg"
WIDTH, HEIGHT, LEFT, TOP = 640, 300, 60, 30
Curves = Mapping[str, Mapping[int, float]]


def main() -> None:
    whole = "--whole" in sys.argv or bool(os.environ.get("TUI_AGENT_BENCH_WHOLE"))
    files = {count: starting(count) for count in (FILES if whole else FILES[:2])}
    turns = {count: resuming(count) for count in (TURNS if whole else TURNS[:2])}
    show(
        [
            *(Figure(f"start to a key, {count:,} files", took, None, " s") for count, took in files.items()),
            *(
                Figure(f"resume to the last reply, {count:,} turns", took, LAST_REPLY, " s")
                for count, took in turns.items()
            ),
        ]
    )
    if whole:
        PICTURE.write_text(
            drawn({"start to a key, by files": files, "resume to the last reply, by turns": turns})
        )


def starting(files: int) -> float:
    """Seconds from the start until a key is shown in the input; the median of some runs."""

    def once(workspace: Path, env: dict[str, str]) -> float:
        with Terminal([*TUI_AGENT, "."], workspace, env) as terminal:
            terminal.wait_for(OUR_MARK)
            terminal.press(KEY)
            return terminal.wait_for(ECHO) - terminal.started

    with big_workspace(files, files // 2) as workspace, home() as env:
        once(workspace, env)
        return statistics.median(once(workspace, env) for _ in range(RUNS))


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
    """The curves as a picture: counts from left to right, each ten times the one before, seconds from the bottom."""
    most = max(max(points.values()) for points in curves.values()) * 1.1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 60}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT + 60}" fill="white"/>',
    ]
    for step in range(5):
        y = TOP + HEIGHT - HEIGHT * step / 4
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        lines.append(f'<text x="8" y="{y + 4:.0f}" fill="#555">{most * step / 4:.2f} s</text>')
    for number, (name, points) in enumerate(curves.items()):
        colour = ("#1f6feb", "#c2410c")[number % 2]
        lines += curve(points, most, colour)
        lines.append(f'<text x="{LEFT + 10}" y="{TOP + 6 + 18 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


def curve(points: Mapping[int, float], most: float, colour: str) -> Sequence[str]:
    """One line through its points, each with its count below it."""
    places = [
        (
            LEFT + 40 + (WIDTH - LEFT - 100) * at / max(len(points) - 1, 1),
            TOP + HEIGHT * (1 - took / most),
            count,
        )
        for at, (count, took) in enumerate(points.items())
    ]
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y, _ in places)
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{colour}"/>' for x, y, _ in places),
        *(f'<text x="{x:.0f}" y="{y - 8:.0f}" fill="{colour}">{count:,}</text>' for x, y, count in places),
    ]


if __name__ == "__main__":
    main()
