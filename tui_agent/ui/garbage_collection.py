"""Garbage collection: none during startup, small steps during work, full collections when idle.

Widgets and their drawings form reference cycles. Python's default collects after 25 % growth, when the
rest is spread over so many arenas that hardly any returns to the system. Objects older than the first
drawing are frozen.
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
#: Thresholds of generations 1 and 2; no automatic full collections.
OFTEN, NEVER = 3, 1_000_000
#: Idle seconds before a collection after a turn.
QUIET = 0.25
#: Idle seconds before a full collection, which takes 0.1 s.
AWAY = 60.0
#: Seconds without key or resize before a full collection during a turn; longer than between two keys of a
#: word.
NO_KEY = 0.5
#: Memory blocks (70 bytes on average) added since the last full collection that trigger another: when idle,
#: during a turn without keys, and immediately.
MOST_ADDED, MANY_ADDED, TOO_MUCH_ADDED = 30_000, 60_000, 200_000
#: Idle seconds before it if many objects were frozen since the last.
READING = 2.0
#: Blocks added since the frozen objects were last collected that include these, which takes 0.15 s: after
#: `READING`, in the next full collection between turns, and in the next one.
MANY_FROZEN, MOST_FROZEN, TOO_MUCH_FROZEN = 40_000, 60_000, 800_000
#: Maximum share of time spent in collections.
SHARE = 0.05


class Garbage:
    """`idle` returns the seconds since the last key; `running` whether a turn is shown."""

    #: Whether other processes share the oldest objects: a collection would copy their memory, so they stay
    #: frozen.
    shares_memory = False

    def __init__(self, idle: Callable[[], float], running: Callable[[], bool] = lambda: False) -> None:
        self._idle = idle
        self._running = running
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Memory blocks in use after the last full collection, and after the last of the frozen objects.
        self._stayed = self._thawed = 0
        #: Whether the next collection includes older and frozen objects.
        self._older = self._everything = self._collecting = False
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        if gc.isenabled():
            return
        self._loop = asyncio.get_running_loop()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, OFTEN, NEVER)
        gc.callbacks.append(self._on_collection)
        gc.enable()
        self._stayed = self._thawed = sys.getallocatedblocks()

    def collect_soon(self) -> None:
        """Called after work that leaves many objects."""
        if self._loop is not None and (self._timer is None or self._everything):
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

    def _wait(self, quiet: float, everything: bool = False) -> None:
        assert self._loop is not None
        self._everything = everything
        wait = max(quiet, self._not_before - time.monotonic())
        self._timer = self._loop.call_later(wait, self._collect, quiet)

    def _collect(self, quiet: float) -> None:
        self._timer = None
        begin, everything = time.monotonic(), self._everything
        if not self._may_begin(quiet, everything):
            self._wait(quiet, everything)
            return
        older, self._collecting = self._older or everything, True
        grown = sys.getallocatedblocks() - self._thawed
        most = TOO_MUCH_FROZEN if self._running() else MOST_FROZEN
        thaws = (everything or (older and grown > most)) and not self.shares_memory
        if thaws:
            gc.unfreeze()
        if older:
            for method in dict(vars(Region)).values():
                if clear := getattr(method, "cache_clear", None):
                    clear()
            gc.collect()
            self._stayed = sys.getallocatedblocks()
            if thaws:
                self._thawed = self._stayed
            if not self.shares_memory:
                gc.freeze()  # the next full collection visits only newer objects
        else:
            gc.collect(1)
        self._collecting = False
        self._older = not older and self._added() > MOST_ADDED
        end = time.monotonic()
        asyncio.get_running_loop().run_in_executor(None, trim_memory)
        self._not_before = end + (end - begin) / SHARE
        if self._older:
            self._wait(quiet)  # separately, so that a key between them is handled
        elif not everything:
            many = grown > MANY_FROZEN and not self.shares_memory
            self._wait(READING if many else AWAY, everything=True)

    def _may_begin(self, quiet: float, everything: bool) -> bool:
        idle, added = self._idle(), self._added()
        if idle >= quiet and not self._running():
            return True
        return not everything and added >= (MANY_ADDED if idle >= NO_KEY else TOO_MUCH_ADDED)

    def _added(self) -> int:
        return sys.getallocatedblocks() - self._stayed
