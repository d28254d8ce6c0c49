"""When garbage is collected: not while the program starts, a little while it works, all of it while nobody waits.

Widgets and what they draw refer to each other, so what a turn leaves behind is freed by Python's collector alone. By
itself it looks at everything only when a quarter has been added, which is tens of megabytes too late.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress

#: New objects after which the collector looks at them: about a millisecond's work.
COLLECT_AFTER = 10_000
#: Seconds without a key before everything is collected.
QUIET = 0.25
#: The share of the time that may go into it.
SHARE = 0.01


class Garbage:
    """`idle` says for how many seconds nobody has typed."""

    def __init__(self, idle: Callable[[], float]) -> None:
        self._idle = idle
        self._begun = False
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Switch the collector on, where it was off from the start of the process until every pane is there.

        What was made until then stays for good, so that looking through it again and again only holds up the keys:
        it is left out from now on. What comes later is collected in larger lots than usual.
        """
        if gc.isenabled():
            return
        self._begun = True
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, 10, 10)
        gc.enable()

    def collect_soon(self) -> None:
        """Collect everything as soon as it is quiet: something has ended that leaves much behind."""
        if self._begun and self._timer is None:
            wait = max(QUIET, self._not_before - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._collect)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _collect(self) -> None:
        self._timer = None
        begin = time.monotonic()
        if self._idle() < QUIET:
            self.collect_soon()
            return
        gc.collect()
        end = time.monotonic()
        asyncio.get_running_loop().run_in_executor(None, _give_back)
        self._not_before = end + (end - begin) / SHARE


def _give_back() -> None:
    """Hand what is free to the system: glibc keeps it else, in an arena for each thread."""
    import ctypes

    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
