"""When garbage is collected: not while the program starts, a little while it works, the rest while nobody waits.

Widgets and what they draw refer to each other, so what a turn leaves behind is freed by Python's collector alone. By
itself it looks at everything only when a quarter has been added, which is tens of megabytes too late, and memory that
was needed once is hardly ever given back. What is there when every pane is drawn stays, and is more than half of all:
it is left out. Of the rest, what is new is looked at after each turn, all of it whenever `MOST_ADDED` has been added.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: New objects after which the collector looks at them: about a millisecond's work.
COLLECT_AFTER = 10_000
#: How often it does so before it looks at those that were kept lately, too; all of them it never looks at by itself.
OFTEN, NEVER = 10, 1_000_000
#: Seconds without a key before what a turn left is collected.
QUIET = 0.25
#: Seconds without a key before everything is looked at, which takes a tenth of a second.
AWAY = 60.0
#: Pieces of memory, of 70 bytes on average, that may be added since everything was looked at: it is looked at again as
#: soon as it is quiet, and without waiting for that.
MOST_ADDED, TOO_MUCH_ADDED = 30_000, 400_000
#: The share of the time that may go into it.
SHARE = 0.05


class Garbage:
    """`idle` says for how many seconds nobody has typed."""

    def __init__(self, idle: Callable[[], float]) -> None:
        self._idle = idle
        self._loop: asyncio.AbstractEventLoop | None = None
        #: How many pieces of memory were in use when everything had been looked at.
        self._stayed = 0
        self._everything = self._collecting = False
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Switch the collector on, where it was off from the start of the process until every pane is there.

        What was made until then stays, so that looking through it again and again only holds up the keys: it is left
        out from now on.
        """
        if gc.isenabled():
            return
        self._loop = asyncio.get_running_loop()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, OFTEN, NEVER)
        gc.callbacks.append(self._looked)
        gc.enable()
        self._stayed = sys.getallocatedblocks()

    def collect_soon(self) -> None:
        """Collect as soon as it is quiet: something has ended that leaves much behind."""
        if self._loop is not None and (self._timer is None or self._everything):
            self._cancel()
            self._wait(QUIET)

    def close(self) -> None:
        """Switch the collector off again: the screen of another session may come, and switches it on."""
        self._cancel()
        if self._loop is not None:
            self._loop = None
            gc.callbacks.remove(self._looked)
            gc.disable()

    def _looked(self, phase: str, info: dict[str, Any]) -> None:
        """Called by the collector, in any thread: a hundred thousand objects were added, perhaps by a turn that goes
        on for hours."""
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
        if self._idle() < quiet and (everything or self._added() < TOO_MUCH_ADDED):
            self._wait(quiet, everything)
            return
        self._collecting = True
        if everything:
            gc.unfreeze()
        else:
            gc.collect(1)
        if everything or self._added() > MOST_ADDED:
            gc.collect()
            self._stayed = sys.getallocatedblocks()
        if everything:
            gc.freeze()
        self._collecting = False
        end = time.monotonic()
        asyncio.get_running_loop().run_in_executor(None, _give_back)
        self._not_before = end + (end - begin) / SHARE
        if not everything:
            self._wait(AWAY, everything=True)

    def _added(self) -> int:
        """How many pieces of memory came into use since everything was looked at.

        Objects are not counted with `gc.get_objects`: a tuple that is being made in another thread, or in a generator
        that is asked just now, cannot be finished while that refers to it.
        """
        return sys.getallocatedblocks() - self._stayed


def _give_back() -> None:
    """Hand what is free to the system: glibc keeps it else, in an arena for each thread."""
    import ctypes

    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
