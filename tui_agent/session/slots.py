"""How many sub-tasks work at once, counted over all of a session's and theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager


class Slots:
    """Places for sub-tasks that work. Who waits for others gives its place to them meanwhile."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._listeners: list[Callable[[], None]] = []
        self._coming: list[asyncio.Future[None]] = []

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
        """Give a place back: to one that comes back, else to what can begin, parts of a part before the others."""
        for coming in self._coming:
            if not coming.done():
                coming.set_result(None)
                return
        self._taken -= 1
        for listener in reversed(self._listeners):
            listener()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Give one's place to others meanwhile, and wait for one to go on; who is stopped has it at once, to leave."""
        self.leave()
        try:
            yield
        except BaseException:
            self._taken += 1
            raise
        await self._come_back()

    async def _come_back(self) -> None:
        if self.take():
            return
        coming = asyncio.get_running_loop().create_future()
        self._coming.append(coming)
        try:
            await coming
        finally:
            self._coming.remove(coming)
            if coming.cancelled():
                self._taken += 1
