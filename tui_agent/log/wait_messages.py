"""Waiting messages (for example, for the disk), shown after a delay and removed at the end of the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

#: Delay before a wait is shown, in seconds.
SAY_AFTER = 1.0


class Wait:
    """One wait, with its description."""

    def __init__(self, words: str, changed: Callable[[], None]) -> None:
        self.words = words
        self._changed = changed

    def is_now(self, words: str) -> None:
        """Change the description; the elapsed time continues."""
        self.words = words
        self._changed()


class Waits:
    """All current waits. Belongs to the loop that runs at its creation."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` is called with the description of the newest long wait, or "" if none is left."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._long: list[Wait] = []
        self._told = ""

    @contextmanager
    def on(self, words: str) -> Generator[Wait]:
        """Mark the body as a wait."""
        wait = Wait(words, self._say)
        timer = self._loop.call_later(SAY_AFTER, self._took_long, wait)
        try:
            yield wait
        finally:
            timer.cancel()
            if wait in self._long:
                self._long.remove(wait)
                self._say()

    def _took_long(self, wait: Wait) -> None:
        self._long.append(wait)
        self._say()

    def _say(self) -> None:
        words = self._long[-1].words if self._long else ""
        if words != self._told:
            self._told = words
            self._tell(words)
