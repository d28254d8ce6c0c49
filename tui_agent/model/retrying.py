"""Retries with a visible, cancellable countdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from tui_agent.errors import ModelError
from tui_agent.model.client import Chunk, EndChunk, RetryChunk
from tui_agent.model.provider_errors import Meaning

FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 30.0
#: Longer requested delays are reported as errors.
LONGEST_ASKED_SECONDS = 300.0
#: Minimum delay after a partial reply, so that the user can keep it.
SHORTEST_WAIT_SECONDS = 1.0

Attempt = Callable[[], AsyncGenerator[Chunk, None]]
Sleep = Callable[[float], Awaitable[None]]


class AttemptFailed(Exception):
    """A failed attempt that may be retried. `end` ends a partial reply if there is no retry."""

    def __init__(self, meaning: Meaning, end: EndChunk | None = None) -> None:
        super().__init__(str(meaning.error))
        self.meaning = meaning
        self.end = end


async def with_retries(
    attempt: Attempt, retries: int, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[Chunk, None]:
    """Chunks of the first successful attempt, preceded by a `RetryChunk` per second of delay.

    A `RetryChunk` voids the failed attempt's chunks. The last attempt's partial reply is kept and ends as
    cut; without one, its error is raised.
    """
    for retry in range(1, retries + 2):
        said = False
        try:
            async with aclosing(attempt()) as chunks:
                async for chunk in chunks:
                    said = True
                    yield chunk
            return
        except AttemptFailed as refusal:
            failed = refusal
        seconds = max(SHORTEST_WAIT_SECONDS if said else 0.0, wait_seconds(retry, failed.meaning))
        if retry > retries or seconds > LONGEST_ASKED_SECONDS:
            if failed.end is None:
                raise _given_up(retry, retries, seconds, failed.meaning.error)
            yield failed.end
            return
        async for counted in _countdown(retry, seconds, failed.meaning.error.what, sleep):
            yield counted


async def _countdown(retry: int, left: float, why: str, sleep: Sleep) -> AsyncGenerator[Chunk, None]:
    while left > 0:
        yield RetryChunk(attempt=retry + 1, seconds=left, why=why)
        step = left % 1 or 1.0
        await sleep(step)
        left -= step


def wait_seconds(retry: int, meaning: Meaning) -> float:
    """The requested delay, otherwise 2, 4, 8, … up to 30 seconds."""
    if meaning.seconds is not None:
        return meaning.seconds
    return min(FIRST_WAIT_SECONDS * 2 ** (retry - 1), LONGEST_WAIT_SECONDS)


def _given_up(retry: int, retries: int, seconds: float, error: ModelError) -> ModelError:
    if retry <= retries:
        return type(error)(f"{error.what}, and asks to wait {_span(seconds)}", error.remedy)
    if not retries:
        return error
    times = "1 retry" if retries == 1 else f"{retries} retries"
    return type(error)(f"{error.what}, even after {times}", error.remedy)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (hours, "h"), (minutes, "min"), (rest, "s")
    return " ".join([f"{number} {unit}" for number, unit in parts if number][:2]) or "0 s"
