"""One pace for everybody who asks the same provider: who is told to wait makes the others wait too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from tui_agent.model.client import Abilities, Chunk, Model, ModelRequest, RetryChunk, TokenCount

#: What waited goes on one after the other, so many seconds apart, and not all in the same moment.
APART = 0.25


class Pace:
    """When the provider may be asked again, and why not now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self.why = ""

    @property
    def seconds(self) -> float:
        """What is left of the wait; 0 where there is none."""
        return max(0.0, self._until - self._clock())

    def hold(self, seconds: float, why: str) -> None:
        """The provider asks for a wait."""
        self._until, self.why = max(self._until, self._clock() + seconds), why

    def take_a_place(self) -> float:
        """How long to wait for a place behind those that wait already, in seconds; 0 while nobody has to."""
        if not self.seconds:
            return 0.0
        self._until += APART
        return self.seconds


class PacedModel:
    """A `Model` that keeps to a pace which it shares with others. Closing it leaves the model open."""

    def __init__(self, model: Model, pace: Pace) -> None:
        self._model = model
        self._pace = pace

    async def start(self) -> None:
        await self._model.start()

    async def abilities(self, model: str) -> Abilities:
        return await self._model.abilities(model)

    async def count(self, model: str, texts: Sequence[str]) -> TokenCount:
        return await self._model.count(model, texts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        left = self._pace.take_a_place()
        while left > 0:
            yield RetryChunk(1, left, self._pace.why)
            step = min(left, left % 1 or 1.0)
            await asyncio.sleep(step)
            left -= step
        async with aclosing(self._model.stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, RetryChunk):
                    self._pace.hold(chunk.seconds, chunk.why)
                yield chunk

    async def close(self) -> None: ...
