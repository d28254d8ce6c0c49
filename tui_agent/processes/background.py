"""Work in a thread that lets the loop come first: imports, tables, colours.

Python runs one thread at a time. A thread that computes keeps its turn for as long as it may and takes every second
one, so that a key and a frame take twice as long meanwhile, and each call of the loop that gives its turn away waits.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

#: Seconds of work after which the loop comes first.
SLICE = 0.001
#: Seconds for which a slice waits for the loop, which may be drawing a frame.
AT_MOST = 0.005
#: Slices that found the loop busy in a row: it may be waiting for this work.
MOST_BUSY = 8
#: Where a thread is that waits for a module; None in a Python that does it in another way.
_MODULE_LOCK = getattr(getattr(importlib, "_bootstrap", None), "_ModuleLock", None)
_ACQUIRE = getattr(getattr(_MODULE_LOCK, "acquire", None), "__code__", None)
#: Calls between two looks at the clock.
CALLS = 16


class NotWanted(Exception):
    """The work was given up: what it was for has changed."""


class Standstill:
    """Whether work in the background that can wait stands still, since a person waits for something else."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._until = 0.0

    def begin(self, seconds: float) -> None:
        """Stand still for so long, or until `end`."""
        self._until = time.monotonic() + seconds
        self._over.clear()

    def end(self) -> None:
        self._over.set()

    @property
    def lasts(self) -> bool:
        return not self._over.is_set() and time.monotonic() < self._until

    def wait(self) -> None:
        """Wait while it lasts. Blocking."""
        while self.lasts:
            self._over.wait(max(0.0, self._until - time.monotonic()))


standstill = Standstill()


async def in_background(
    work: Callable[[], T], wanted: Callable[[], bool] = lambda: True, *, can_wait: bool = False
) -> T:
    """Do it in a thread, a slice at a time, with a round of the loop between two slices.

    The thread is held up where it calls a function: one long call, as of an expression, is not divided. It asks between
    two slices whether the work is still `wanted`, and raises NotWanted where it is not. Work that `can_wait`, and holds
    no lock that others want soon, stands still with `standstill`.
    """
    loop = asyncio.get_running_loop()

    def run() -> T:
        sys.setprofile(_between_slices(loop, wanted, standstill.wait if can_wait else None))
        try:
            return work()
        finally:
            sys.setprofile(None)

    return await asyncio.to_thread(run)


def _between_slices(
    loop: asyncio.AbstractEventLoop, wanted: Callable[[], bool], pause: Callable[[], None] | None
) -> Callable[[FrameType, str, object], None]:
    """Is called with each call of a thread."""
    came = threading.Event()
    loop_thread = getattr(loop, "_thread_id", None)
    busy = calls = 0
    begun = time.monotonic()

    def look(_frame: FrameType, _event: str, _arg: object) -> None:
        nonlocal begun, busy, calls
        calls += 1
        if calls % CALLS or time.monotonic() - begun < SLICE or _imports(loop_thread):
            return
        if not wanted():
            raise NotWanted
        if pause is not None:
            pause()
        if came.is_set():
            busy = 0
        if not busy:
            came.clear()
            try:
                loop.call_soon_threadsafe(came.set)
            except RuntimeError:  # it has ended
                sys.setprofile(None)
                return
        if busy < MOST_BUSY:
            busy = 0 if came.wait(AT_MOST) else busy + 1
        begun = time.monotonic()

    return look


def _imports(thread: int | None) -> bool:
    """Whether this thread waits for a module that another one imports."""
    frame = sys._current_frames().get(thread or 0)
    return frame is not None and frame.f_code is _ACQUIRE
