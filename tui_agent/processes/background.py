"""Work in a thread that lets the loop come first: imports, tables, colours.

Python runs one thread at a time. A thread that computes keeps its turn for as long as it may and takes every second
one, so that a key and a frame take twice as long meanwhile. Work that is done here calls `pause` between its pieces;
between two modules that it imports that is done for it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds of work after which the loop comes first.
SLICE = 0.001
#: Seconds for which a slice waits for the loop, which may be drawing a frame.
AT_MOST = 0.005
#: Slices that found the loop busy in a row: it may be waiting for this work, such as a module that it imports too.
MOST_BUSY = 4


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
    """Returns what `work` returns in a thread, in which the loop has a round whenever it calls `pause`.

    Between two slices it is asked whether the work is still `wanted`; if not, `pause` raises `NotWanted`. Work that
    `can_wait`, and holds no lock that others want soon, stands still with `standstill`.
    """
    loop = asyncio.get_running_loop()

    def run() -> T:
        _working.turns = _Turns(loop, wanted, can_wait)
        finder = _BetweenModules()
        sys.meta_path.insert(0, finder)
        try:
            return work()
        finally:
            sys.meta_path.remove(finder)
            del _working.turns

    return await asyncio.to_thread(run)


def pause() -> None:
    """Let the loop come first, if a slice of work has been done since it last did. Does nothing outside
    `in_background`. Raises `NotWanted`."""
    turns: _Turns | None = getattr(_working, "turns", None)
    if turns is not None:
        turns.pause()


#: What this thread works under.
_working = threading.local()


class _Turns:
    """The turns of one thread and the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wanted: Callable[[], bool], can_wait: bool) -> None:
        self._loop = loop
        self._wanted = wanted
        self._can_wait = can_wait
        self._came = threading.Event()
        #: Slices in a row that the loop did not come after.
        self._busy = 0
        self._begun = time.monotonic()

    def pause(self) -> None:
        if time.monotonic() - self._begun < SLICE:
            return
        if self._can_wait:
            standstill.wait()
        if not self._wanted():
            raise NotWanted
        if self._came.is_set():
            self._busy = 0
        if not self._busy:
            self._came.clear()
            try:
                self._loop.call_soon_threadsafe(self._came.set)
            except RuntimeError:  # it has ended
                return
        if self._busy < MOST_BUSY:
            self._busy = 0 if self._came.wait(AT_MOST) else self._busy + 1
        self._begun = time.monotonic()


class _BetweenModules:
    """Asked for each module before anybody else; finds none, and pauses there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        pause()
