"""What a person waits for, the disk say: told when it takes longer than a moment, and taken back when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

#: After so many seconds of waiting it is told what is waited for.
SAY_AFTER = 1.0


class Wait:
    """One thing that is waited for, in words."""

    def __init__(self, words: str, changed: Callable[[], None]) -> None:
        self.words = words
        self._changed = changed

    def is_now(self, words: str) -> None:
        """It goes on with another step, which takes as long as the whole has taken already."""
        self.words = words
        self._changed()


class Waits:
    """Everything that is waited for now. Belongs to the loop that is running when it is made."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` is given the words of the newest of what has taken long; empty when nothing does any more."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._long: list[Wait] = []
        self._told = ""

    @contextmanager
    def on(self, words: str) -> Generator[Wait]:
        """Inside of this it is waited for."""
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
