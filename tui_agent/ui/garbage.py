"""When garbage is collected: not while the program starts, a little while it works, the rest while nobody waits.

Widgets and what they draw refer to each other, so what a turn leaves behind is freed by Python's collector alone. By
itself it looks at everything only when a quarter has been added, which is tens of megabytes too late. What the
transcript keeps grows with each turn, and a look at it takes as long as a few frames: so at the end of a turn only what
is new is looked at, and what was kept then only when nobody has typed for a while.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress

#: New objects after which the collector looks at them: about a millisecond's work.
COLLECT_AFTER = 10_000
#: Seconds without a key before what a turn left is collected.
QUIET = 0.25
#: Seconds without a key before everything is looked at, which takes a tenth of a second.
AWAY = 60.0
#: Seconds without a key after which that is done already, where many objects are kept.
PAUSE = 5.0
#: So many objects may be kept before everything is looked at in a pause, and before that cannot wait for one: 100 bytes
#: each.
MOST_KEPT, TOO_MANY_KEPT = 40_000, 100_000
#: The share of the time that may go into it.
SHARE = 0.01


class Garbage:
    """`idle` says for how many seconds nobody has typed."""

    def __init__(self, idle: Callable[[], float]) -> None:
        self._idle = idle
        self._begun = False
        #: How many objects were kept since everything was looked at.
        self._kept = 0
        self._all = False
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Switch the collector on, where it was off from the start of the process until every pane is there.

        What was made until then stays, so that looking through it again and again only holds up the keys: it is left
        out from now on. What comes later is collected in larger lots than usual.
        """
        if gc.isenabled():
            return
        self._begun = True
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, 10, 10)
        gc.enable()

    def collect_soon(self) -> None:
        """Collect what is new as soon as it is quiet: something has ended that leaves much behind."""
        if self._begun and (self._timer is None or self._all):
            self._cancel()
            self._wait(QUIET)

    def close(self) -> None:
        """Switch the collector off again: the screen of another session may come, and switches it on."""
        self._cancel()
        if self._begun:
            self._begun = False
            gc.disable()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, quiet: float, everything: bool = False) -> None:
        self._all = everything
        wait = max(quiet, self._not_before - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(wait, self._collect, quiet)

    def _collect(self, quiet: float) -> None:
        self._timer = None
        begin = time.monotonic()
        if self._idle() < quiet:
            self._wait(quiet, self._all)
            return
        everything = self._all or self._kept > TOO_MANY_KEPT
        if everything:
            gc.unfreeze()
        gc.collect()
        self._kept = 0 if everything else self._kept + len(gc.get_objects(2))
        gc.freeze()
        end = time.monotonic()
        asyncio.get_running_loop().run_in_executor(None, _give_back)
        self._not_before = end + (end - begin) / SHARE
        if not everything:
            self._wait(PAUSE if self._kept > MOST_KEPT else AWAY, everything=True)


def _give_back() -> None:
    """Hand what is free to the system: glibc keeps it else, in an arena for each thread."""
    import ctypes

    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
