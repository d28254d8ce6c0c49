"""One pace and one allowance for everybody who asks the same provider on behalf of one prompt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from tui_agent.errors import LimitReached
from tui_agent.model.client import Abilities, Chunk, Model, ModelRequest, RetryChunk, TokenCount

#: What waited goes on one after the other, so many seconds apart, and not all in the same moment.
APART = 0.25
RAISE_REQUESTS = "send “continue” to allow as many again, or raise it with --set limits.requests=…"


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


class Allowance:
    """How many requests a prompt of the person may still make, those of its sub-tasks included; 0 means no limit."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._made = 0
        #: Counted already, and about to be made.
        self._reserved = 0
        #: Whether the person has been told that it is used up.
        self.told = False

    @property
    def made(self) -> int:
        """How many were made."""
        return self._made

    @property
    def why(self) -> str:
        """Why no more requests may be made; empty while they may."""
        if not self._most or self._made < self._most:
            return ""
        made = "1 request" if self._made == 1 else f"{self._made} requests"
        return f"This prompt has made {made}, as many as limits.requests allows"

    def renew(self) -> None:
        """The person has asked for something: count from the beginning."""
        self._made, self.told = 0, False

    def reserve(self) -> None:
        """Count a request before it is announced. Raises `LimitReached` where there may be none."""
        self._count()
        self._reserved += 1

    def take(self) -> None:
        """A request is about to be made: it is counted, unless it was. Raises `LimitReached` if there may be none."""
        if self._reserved:
            self._reserved -= 1
        else:
            self._count()

    def _count(self) -> None:
        if why := self.why:
            raise LimitReached(why, RAISE_REQUESTS, "limits.requests")
        self._made += 1


class PacedModel:
    """A `Model` that keeps to a pace and an allowance which it shares with others. Closing it leaves the model open."""

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
        left = self._pace.take_a_place()
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
                    if chunk.attempt != attempt:  # told each second of the wait before it
                        self._allowance.take()
                        attempt = chunk.attempt
                yield chunk

    async def close(self) -> None: ...
