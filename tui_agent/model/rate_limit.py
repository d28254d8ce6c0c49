"""Shared rate limit and request allowance of one prompt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from tui_agent.errors import LimitReached
from tui_agent.model.client import Abilities, Chunk, Model, ModelRequest, RetryChunk, TokenCount

APART = 0.25
RAISE_REQUESTS = "send “continue” to allow the same number again, or raise it with --set limits.requests=…"


class Pace:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self.why = ""

    @property
    def seconds(self) -> float:
        return max(0.0, self._until - self._clock())

    def hold(self, seconds: float, why: str) -> None:
        self._until, self.why = max(self._until, self._clock() + seconds), why

    def wait_for_slot(self) -> float:
        """Queues behind other delayed requests. Returns the delay in seconds."""
        if not self.seconds:
            return 0.0
        self._until += APART
        return self.seconds


class Allowance:
    """Requests allowed for a prompt and its sub-tasks; 0 means no limit."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self.made = 0
        self._reserved = 0
        self.told = False

    @property
    def why(self) -> str:
        """Why no more requests are allowed, or ""."""
        if not self._most or self.made < self._most:
            return ""
        made = "1 request" if self.made == 1 else f"{self.made} requests"
        return f"This prompt has made {made}, the limit of limits.requests"

    def renew(self) -> None:
        self.made, self.told = 0, False

    def reserve(self) -> None:
        """Call before the request is announced. Raises `LimitReached`."""
        self._count()
        self._reserved += 1

    def take(self) -> None:
        """Counts a request unless it was reserved. Raises `LimitReached`."""
        if self._reserved:
            self._reserved -= 1
        else:
            self._count()

    def _count(self) -> None:
        if why := self.why:
            raise LimitReached(why, RAISE_REQUESTS, "limits.requests")
        self.made += 1


class PacedModel:
    """Closing it leaves the inner model open."""

    def __init__(self, model: Model, pace: Pace, allowance: Allowance | None = None) -> None:
        self._model = model
        self._pace = pace
        self._allowance = allowance or Allowance()

    async def start(self) -> None:
        await self._model.start()

    async def abilities(self, model: str) -> Abilities:
        return await self._model.abilities(model)

    async def count(self, model: str, texts: Sequence[str], *, wait: bool = False) -> TokenCount:
        return await self._model.count(model, texts, wait=wait)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        left = self._pace.wait_for_slot()
        while left > 0:
            yield RetryChunk(1, left, self._pace.why)
            step = min(left, left % 1 or 1.0)
            await asyncio.sleep(step)
            left -= step
        self._allowance.take()
        attempt = 1
        async with aclosing(self._model.stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, RetryChunk):
                    self._pace.hold(chunk.seconds, chunk.why)
                    if chunk.attempt != attempt:
                        self._allowance.take()
                        attempt = chunk.attempt
                yield chunk

    async def close(self) -> None: ...
