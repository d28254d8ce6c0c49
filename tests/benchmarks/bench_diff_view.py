"""The views that draw their own lines: a long diff opened and scrolled, a graph laid out, a long list."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable

from figures import Figure, show
from support.panes import ThemedApp
from textual.app import ComposeResult
from textual.geometry import Region
from textual.widget import Widget

from tui_agent.context.known_files import KnownFile
from tui_agent.edits.change import Diff, Hunk
from tui_agent.store.graph import SubTask
from tui_agent.ui.diff.diff_view import DiffView
from tui_agent.ui.garbage_collection import Garbage
from tui_agent.ui.graph.graph_view import GraphView
from tui_agent.ui.panes.known_files import known_rows
from tui_agent.ui.widgets.line_view import Rows
from tui_agent.ui.widgets.syntax import LONGEST

LINES = 20_000
FRAMES = 60
SIZE = (100, 45)


class OneWidget(ThemedApp):
    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


async def measured() -> list[Figure]:
    gc.disable()  # as the program does until its first screen is complete
    return [
        *await diff(scattered()),
        *await diff(rewritten()),
        *await diff(coloured()),
        *await graph(),
        *await known(),
    ]


def scattered() -> Diff:
    """Every tenth line of a file is another."""
    base = tuple(f"    value_{n} = compute(argument_{n}, other={n})\n" for n in range(LINES))
    hunks = (Hunk(n, (base[n],), (base[n].replace("other", "another"),)) for n in range(0, LINES, 10))
    return Diff("scattered", base, tuple(hunks))


def coloured() -> Diff:
    """The longest file that is shown with the colours of its language."""
    base = scattered().base[:LONGEST]
    hunks = (Hunk(n, (base[n],), (base[n].replace("other", "another"),)) for n in range(0, LONGEST, 10))
    return Diff("coloured.py", base, tuple(hunks))


def rewritten() -> Diff:
    """Every line gives way to another: one hunk."""
    base = tuple(f"    value_{n} = compute(argument_{n})\n" for n in range(LINES // 2))
    new = tuple(f"    value_{n} = compute(argument_{n}, timeout=5)\n" for n in range(LINES // 2))
    return Diff("rewritten", base, (Hunk(0, base, new),))


async def diff(sample: Diff) -> list[Figure]:
    view = DiffView()
    async with OneWidget(view).run_test(size=SIZE) as pilot:
        Garbage(lambda: 0.0).begin()
        begin = time.thread_time()
        view.show_diff(sample, ["pending"] * len(sample.hunks), 0)
        frame(view)
        opened = time.thread_time() - begin
        await pilot.pause()
        shown = view.virtual_size.height
        steps = scroll(view, lambda n: n * (shown // FRAMES))
        lines = scroll(view, lambda n: n)
    name = f"diff {sample.path}"
    return [
        Figure(
            f"{name}: opened", opened * 1000, 100, " ms", f"{shown} lines shown of {len(sample.hunks)} hunks"
        ),
        Figure(
            f"{name}: a frame somewhere else",
            statistics.quantiles(steps, n=10)[-1] * 1000,
            16,
            " ms",
            f"nine of ten; median {statistics.median(steps) * 1000:.1f}, slowest {max(steps) * 1000:.1f}",
        ),
        Figure(f"{name}: a frame one line on", statistics.median(lines) * 1000, 16, " ms", "median"),
    ]


def scroll(view: Widget, to: Callable[[int], int]) -> list[float]:
    """Seconds to scroll to each place and draw it."""
    taken = []
    for n in range(FRAMES):
        begin = time.thread_time()
        view.scroll_to(y=to(n), animate=False, force=True)
        frame(view)
        taken.append(time.thread_time() - begin)
    return taken


def frame(view: Widget) -> None:
    """Draw all that is visible."""
    view.render_lines(Region(0, 0, *SIZE))


async def graph() -> list[Figure]:
    names = [f"task-{n}" for n in range(60)]
    needs = {n: {n - 1 - (n * k) % 7 for k in (1, 2, 3)} for n in range(60)}
    tasks = [
        SubTask(name, "goal", dependencies=tuple(names[d] for d in sorted(needs[n]) if d >= 0))
        for n, name in enumerate(names)
    ]
    view = GraphView()
    async with OneWidget(view).run_test(size=SIZE):
        begin = time.thread_time()
        view.show_tasks(tasks, names[0])
        frame(view)
        taken = time.thread_time() - begin
        begin = time.thread_time()
        view.show_tasks(tasks, names[1])
        frame(view)
        again = time.thread_time() - begin
    return [
        Figure("graph of 60: laid out and drawn", taken * 1000, 50, " ms"),
        Figure("graph of 60: drawn again", again * 1000, 16, " ms"),
    ]


async def known() -> list[Figure]:
    files = [KnownFile(f"src/part_{n % 20}/module_{n}.py", f"{n:032x}", n % 9, n * 37) for n in range(500)]
    view = Rows()
    async with OneWidget(view).run_test(size=SIZE):
        begin = time.thread_time()
        view.set_rows(known_rows(files, 98))
        frame(view)
        taken = time.thread_time() - begin
    return [Figure("500 known files: listed and drawn", taken * 1000, 16, " ms")]


def main() -> None:
    show(asyncio.run(measured()))


if __name__ == "__main__":
    main()
