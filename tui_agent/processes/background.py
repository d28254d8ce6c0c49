"""Work beside the user's: tasks that nothing awaits, and threads that yield to the event loop, such as
imports and syntax colours.

A computing thread holds the interpreter lock for up to the switch interval, which doubles the time of a
key press. Work calls `pause` regularly; imports pause between modules.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds of work before the thread yields.
SLICE = 0.001
#: Seconds to wait for the loop, which may be drawing a frame.
AT_MOST = 0.005
#: Consecutive waits without a response: the loop may itself wait for this work, for example for a module.
MOST_BUSY = 4


def start_task(
    tasks: set[asyncio.Task[T]], work: Coroutine[Any, Any, T], name: str | None = None
) -> asyncio.Task[T]:
    """`tasks` holds the task until it is done, because the event loop does not."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


class WorkCancelled(Exception):
    """Its purpose has changed."""


class BackgroundPause:
    """Suspends deferrable work while the user waits for something urgent."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._until = 0.0

    def begin(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._over.clear()

    def end(self) -> None:
        self._over.set()

    @property
    def lasts(self) -> bool:
        return not self._over.is_set() and time.monotonic() < self._until

    def wait(self) -> None:
        while self.lasts:
            self._over.wait(max(0.0, self._until - time.monotonic()))


standstill = BackgroundPause()


async def in_background(
    work: Callable[[], T], wanted: Callable[[], bool] = lambda: True, *, can_wait: bool = False
) -> T:
    """The loop gets a turn at each call of `pause`, which raises `WorkCancelled` as soon as `wanted` returns
    False. Work that `can_wait` and holds no contended lock is suspended during `standstill`.
    """
    loop = asyncio.get_running_loop()

    def run() -> T:
        _working.turns = _Turns(loop, wanted, can_wait)
        try:
            with finding_first(_BetweenModules()):
                return work()
        finally:
            del _working.turns

    return await asyncio.to_thread(run)


@contextmanager
def finding_first(finder: Any) -> Generator[None, None, None]:
    """Asks `finder` first for each module, of all threads.

    Replaces the list of finders: an import in another thread that iterates over a list from which one is
    removed leaves out the next finder, and does not find its module.
    """
    with _finders:
        sys.meta_path = [finder, *sys.meta_path]
    try:
        yield
    finally:
        with _finders:
            sys.meta_path = [one for one in sys.meta_path if one is not finder]


def pause() -> None:
    """Yields to the loop after a slice of work; no effect outside `in_background`. Raises `WorkCancelled`."""
    turns: _Turns | None = getattr(_working, "turns", None)
    if turns is not None:
        turns.pause()


_working = threading.local()
_finders = threading.Lock()


class _Turns:
    def __init__(self, loop: asyncio.AbstractEventLoop, wanted: Callable[[], bool], can_wait: bool) -> None:
        self._loop = loop
        self._wanted = wanted
        self._can_wait = can_wait
        self._came = threading.Event()
        self._busy = 0
        self._begun = time.monotonic()

    def pause(self) -> None:
        if time.monotonic() - self._begun < SLICE:
            return
        if self._can_wait:
            standstill.wait()
        if not self._wanted():
            raise WorkCancelled
        if self._came.is_set():
            self._busy = 0
        if not self._busy:
            self._came.clear()
            try:
                self._loop.call_soon_threadsafe(self._came.set)
            except RuntimeError:
                return
        if self._busy < MOST_BUSY:
            self._busy = 0 if self._came.wait(AT_MOST) else self._busy + 1
        self._begun = time.monotonic()


class _BetweenModules:
    """A meta path finder that only pauses."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        pause()
