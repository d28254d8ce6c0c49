"""How many sub-tasks work at once, counted over all of a session's and theirs."""

from __future__ import annotations

from collections.abc import Callable


class Slots:
    """Places for sub-tasks that work. Who waits for others gives its place to them meanwhile."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._listeners: list[Callable[[], None]] = []

    def on_free(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a place has become free."""
        self._listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Call it no more."""
        self._listeners.remove(listener)

    def take(self) -> bool:
        """Take a place; False where there is none."""
        if self._taken >= self._most:
            return False
        self._taken += 1
        return True

    def leave(self) -> None:
        """Give a place back."""
        self._taken -= 1
        for listener in tuple(self._listeners):
            listener()

    def come_back(self) -> None:
        """Go on after others had the place; where it is taken by now, one works more than should for a moment."""
        self._taken += 1
