"""The pane of the sub-tasks over the whole screen: sixty of them laid out and drawn, then states that change."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable

from figures import Figure, show
from msgspec.structs import replace
from support.panes import NotedSession, PaneApp
from textual.pilot import Pilot

from tui_agent.store.graph import SubTask
from tui_agent.store.state import State, SubTaskProgress, SubTasksSlice
from tui_agent.ui.panes.subtasks import SubTasksPane

COUNT, CHANGES, OPENINGS = 60, 40, 9
SIZES = ((160, 46), (30, 13))


def main() -> None:
    show([figure for size in SIZES for figure in asyncio.run(measured(size))])


async def measured(size: tuple[int, int]) -> list[Figure]:
    tasks = sixty()
    app = PaneApp(SubTasksPane, NotedSession(State()))
    async with app.run_test(size=size) as pilot:
        app.screen.set_focus(None)  # the person is in the chat
        await pilot.pause()
        gc.freeze()  # as the application does when every pane is there
        opened = []
        for _ in range(OPENINGS):
            await taken(pilot, lambda: app.show(State()))
            opened.append(await taken(pilot, lambda: app.show(state_of(tasks, 0))))
        changed = [await taken(pilot, lambda n=n: app.show(state_of(tasks, n))) for n in range(1, CHANGES)]
    where = f"pane of {size[0]} by {size[1]}"
    return [
        Figure(
            f"{COUNT} sub-tasks, {where}: laid out and drawn",
            statistics.median(opened),
            50,
            " ms",
            f"median of {OPENINGS}; the first, all of it new, {opened[0]:.1f}",
        ),
        Figure(
            f"  a state that changes: drawn, {where}",
            statistics.quantiles(changed, n=10)[-1],
            16,
            " ms",
            f"nine of ten; median {statistics.median(changed):.1f}, slowest {max(changed):.1f}",
        ),
    ]


async def taken(pilot: Pilot[None], change: Callable[[], None]) -> float:
    """Milliseconds of work from a change of the state until it stands on the screen."""
    began = time.thread_time()
    change()
    await pilot.pause(0.05)
    return (time.thread_time() - began) * 1000


def sixty() -> tuple[SubTask, ...]:
    """Each waits for up to three of the seven before it."""
    needs = {n: sorted({n - 1 - (n * k) % 7 for k in (1, 2, 3)}) for n in range(COUNT)}
    return tuple(
        SubTask(f"task-{n}", f"Part {n}", dependencies=tuple(f"task-{d}" for d in needs[n] if d >= 0))
        for n in range(COUNT)
    )


def state_of(tasks: tuple[SubTask, ...], step: int) -> State:
    """One more task has ended at each step, and three run."""
    now = time.time()
    states = ("completed",) * step + ("running",) * 3
    moved = tuple(
        replace(task, state=states[n], tokens=900 * n, seconds=30.0) if n < len(states) else task
        for n, task in enumerate(tasks)
    )
    progress = SubTaskProgress("streaming", f"line {step}", 100 * step, 0.01, now - step, now, 1)
    return State(subtasks=SubTasksSlice(moved, {f"task-{n}": progress for n in range(step, step + 3)}))


if __name__ == "__main__":
    main()
