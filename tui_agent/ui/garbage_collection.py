"""Garbage collection: none during startup, small steps during work, full collections when idle.

Widgets and their drawings form reference cycles. Python's default collects after 25 % growth, when the
rest is spread over so many arenas that hardly any returns to the system. Objects older than the first
drawing are frozen for good: visiting them takes 0.1 s and copies memory that forked processes share.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.geometry import Region

from tui_agent.processes.serve import trim_memory

#: Objects. With twice as many, generation 1 takes 19 ms while a reply streams.
COLLECT_AFTER = 5_000
#: New objects that are collected before they are frozen: 7 ms, in a program of the host, whose imports are
#: older. After other starts it would take 0.1 s.
FEW = 50_000
#: Thresholds of generations 1 and 2; no automatic full collections.
OFTEN, NEVER = 3, 1_000_000
#: Idle seconds before a collection after a turn.
QUIET = 0.25
#: Idle seconds before a full collection if the last took longer than `FRAME` seconds: 0.05 s in a long
#: session.
READING, FRAME = 5.0, 0.016
#: Idle seconds before a full collection in any case.
AWAY = 60.0
#: Seconds without key or resize before a full collection during a turn; longer than between two keys of a
#: word.
NO_KEY = 0.5
#: Memory blocks (70 bytes on average) added since the last full collection that trigger another: when idle,
#: between turns or without keys during a turn, and immediately.
MOST_ADDED, MANY_ADDED, TOO_MUCH_ADDED = 30_000, 100_000, 300_000
#: Maximum share of time spent in collections.
SHARE = 0.05


class Garbage:
    """`idle` returns the seconds since the last key; `running` whether a turn is shown."""

    def __init__(self, idle: Callable[[], float], running: Callable[[], bool] = lambda: False) -> None:
        self._idle = idle
        self._running = running
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Memory blocks in use after the last full collection, and the seconds it took.
        self._stayed, self._took = 0, 0.0
        #: Whether the next collection is a full one, and whether only because the person is away.
        self._full = self._away = self._collecting = False
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        if gc.isenabled():
            return
        self._loop = asyncio.get_running_loop()
        if gc.get_count()[0] < FEW:
            gc.collect()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, OFTEN, NEVER)
        gc.callbacks.append(self._on_collection)
        gc.enable()
        self._stayed = sys.getallocatedblocks()

    def collect_soon(self) -> None:
        """Called after work that leaves many objects."""
        if self._loop is not None and (self._timer is None or self._away):
            self._cancel()
            self._wait(QUIET)

    def close(self) -> None:
        self._cancel()
        if self._loop is not None:
            self._loop = None
            gc.callbacks.remove(self._on_collection)
            gc.disable()

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        """Called in any thread after about 20,000 new objects."""
        if phase == "stop" and info["generation"] == 1 and not self._collecting and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.collect_soon)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, quiet: float, away: bool = False) -> None:
        assert self._loop is not None
        self._away = away
        wait = max(quiet, self._not_before - time.monotonic())
        self._timer = self._loop.call_later(wait, self._collect, quiet)

    def _collect(self, quiet: float) -> None:
        self._timer = None
        begin, away = time.monotonic(), self._away
        idle, running = self._idle(), self._running()
        rests = idle >= (READING if self._full and self._took > FRAME else quiet) and not running
        much = MANY_ADDED if idle >= NO_KEY or not running else TOO_MUCH_ADDED
        if not rests and (away or self._added() < much):
            self._wait(quiet, away)
            return
        full, self._collecting = self._full or away, True
        if full:
            for method in dict(vars(Region)).values():
                if clear := getattr(method, "cache_clear", None):
                    clear()
            gc.collect()
            self._stayed = sys.getallocatedblocks()
        else:
            gc.collect(1)
        self._collecting = False
        self._full = not full and self._added() > MOST_ADDED
        end = time.monotonic()
        if full:
            self._took = end - begin
        asyncio.get_running_loop().run_in_executor(None, trim_memory)
        self._not_before = end + (end - begin) / SHARE
        if self._full:
            self._wait(quiet)  # separately, so that a key between them is handled
        elif not away:
            self._wait(AWAY, away=True)

    def _added(self) -> int:
        return sys.getallocatedblocks() - self._stayed
