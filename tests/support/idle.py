"""Waiting until an application has nothing left to do, in place of Textual's own guess at it.

Textual's pilot sleeps 20 ms at a time, twice after each key, until the process used little of the processor meanwhile:
a quick screen is waited for in vain, and a busy machine, which gives the process no time, makes it look idle. Here the
event loop is asked: nothing is ready to run, nothing falls due within a moment, no thread of its executor is at work.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import textual.app
import textual.pilot

#: Seconds for which timers, threads and work that does not end are waited for, each from when nothing else is left;
#: work by the processor time that it took, since a busy machine gives it little.
TIMERS, THREADS, WORK = 0.05, 0.5, 1.0
#: How often a thread is looked at, which cannot be waited for: what it does is known to its caller alone.
LOOK_AGAIN = 0.002


async def wait_for_idle(min_sleep: float = 0.0, max_sleep: float = WORK) -> None:
    """Return when the running loop has nothing to do. The arguments are those of what it replaces, and not used."""
    loop = cast(Any, asyncio.get_running_loop())
    given_up = time.thread_time() + WORK
    calm_since: float | None = None
    looks = rounds = 0
    while looks < 2:
        await asyncio.sleep(0)
        now = loop.time()
        rounds += 1
        if loop._ready and (rounds % 32 or time.thread_time() < given_up):
            looks = 0
            continue
        calm_since = now if calm_since is None else calm_since
        due = _next_due(loop, calm_since + TIMERS)
        if due is not None:
            looks = 0
            await asyncio.sleep(max(0.0, due - now))
        elif now < calm_since + THREADS and _threads_work(loop):
            looks = 0
            await asyncio.sleep(LOOK_AGAIN)
        else:
            looks += 1


def _next_due(loop: Any, until: float) -> float | None:
    """When the next timer falls due, if that is before `until`."""
    times = (handle.when() for handle in loop._scheduled if not handle.cancelled())
    return min((when for when in times if when <= until), default=None)


def _threads_work(loop: Any) -> bool:
    """Whether the loop's executor has work that is waiting or going on."""
    executor = loop._default_executor
    if executor is None:
        return False
    return executor._work_queue.qsize() > 0 or executor._idle_semaphore._value < len(executor._threads)


async def _wait_for_screen(pilot: textual.pilot.Pilot[Any], timeout: float = 0.0) -> bool:
    """What is idle has handled its messages; Textual sends one to each widget to learn that, more than all others."""
    await wait_for_idle()
    return True


textual.app.wait_for_idle = wait_for_idle  # ty: ignore[invalid-assignment]
textual.pilot.wait_for_idle = wait_for_idle  # ty: ignore[invalid-assignment]
textual.pilot.Pilot._wait_for_screen = _wait_for_screen  # ty: ignore[invalid-assignment]
