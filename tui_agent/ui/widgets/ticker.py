"""A call at regular intervals while something runs."""

from __future__ import annotations

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


class Ticker:
    def __init__(self, owner: MessagePump, tick: Callable[[], object], seconds: float = 1.0) -> None:
        self._owner = owner
        self._tick = tick
        self._seconds = seconds
        #: `None` while nothing runs.
        self.timer: Timer | None = None

    def run(self, runs: bool) -> None:
        if runs and self.timer is None:
            self.timer = self._owner.set_interval(self._seconds, self._tick)
        elif not runs and self.timer is not None:
            self.timer.stop()
            self.timer = None
