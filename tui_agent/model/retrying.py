"""Asking again when a provider says "not now", with a countdown that can be seen and stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from tui_agent.errors import ModelError, RateLimited
from tui_agent.model.client import Chunk, RetryChunk
from tui_agent.model.explain import Meaning

FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 30.0
#: A provider that asks for a longer wait than this is told on, not waited for.
LONGEST_ASKED_SECONDS = 300.0

Attempt = Callable[[], AsyncGenerator[Chunk, None]]
Sleep = Callable[[float], Awaitable[None]]


class NotNow(Exception):
    """An attempt failed, and another one may not."""

    def __init__(self, meaning: Meaning) -> None:
        super().__init__(str(meaning.error))
        self.meaning = meaning


async def with_retries(
    attempt: Attempt, retries: int, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[Chunk, None]:
    """The chunks of the first attempt that succeeds, a `RetryChunk` for each second of waiting before it.

    An attempt that had already said something is not repeated: its error is raised as it is, and so is the last
    one's.
    """
    for retry in range(1, retries + 2):
        said = False
        try:
            async with aclosing(attempt()) as chunks:
                async for chunk in chunks:
                    said = True
                    yield chunk
            return
        except NotNow as refusal:
            meaning = refusal.meaning
        if said or retry > retries:
            raise _after(retry - 1, meaning.error)
        async for counted in _countdown(retry, meaning, sleep):
            yield counted


async def _countdown(retry: int, meaning: Meaning, sleep: Sleep) -> AsyncGenerator[Chunk, None]:
    left = wait_seconds(retry, meaning)
    if left > LONGEST_ASKED_SECONDS:
        raise RateLimited(f"{meaning.error.what}, and asks to wait {left:.0f} s", meaning.error.remedy)
    while left > 0:
        yield RetryChunk(attempt=retry + 1, seconds=left, why=meaning.error.what)
        step = left % 1 or 1.0
        await sleep(step)
        left -= step


def wait_seconds(retry: int, meaning: Meaning) -> float:
    """What the provider asked for, else 2, 4, 8, … up to 30."""
    if meaning.seconds is not None:
        return meaning.seconds
    return min(FIRST_WAIT_SECONDS * 2 ** (retry - 1), LONGEST_WAIT_SECONDS)


def _after(retries: int, error: ModelError) -> ModelError:
    if not retries:
        return error
    times = "once" if retries == 1 else f"{retries} times"
    return type(error)(f"{error.what}, also after asking again {times}", error.remedy)
