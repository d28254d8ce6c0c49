"""The countdown before another attempt, without waiting for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tui_agent.errors import ModelError, RateLimited, Unreachable
from tui_agent.model.client import Chunk, EndChunk, RetryChunk, TextChunk
from tui_agent.model.provider_errors import (
    LONGEST_ASKED_SECONDS,
    SHORTEST_WAIT_SECONDS,
    AttemptFailed,
    Meaning,
    with_retries,
)


class Attempts:
    """Fails as often as there are meanings, then says "done"; `first` is said before each failure."""

    def __init__(self, *meanings: Meaning, first: str = "", end: EndChunk | None = None) -> None:
        self.made = 0
        self._end = end
        self._meanings = meanings
        self._first = first

    async def __call__(self) -> AsyncGenerator[Chunk, None]:
        self.made += 1
        if self._first:
            yield TextChunk(self._first)
        if self.made <= len(self._meanings):
            raise AttemptFailed(self._meanings[self.made - 1], self._end)
        yield TextChunk("done")


def busy(seconds: float | None = None) -> Meaning:
    return Meaning(RateLimited("The server is busy", "wait"), again=True, seconds=seconds)


class Sleeps(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def everything(attempts: Attempts, retries: int = 5) -> tuple[list[Chunk], Sleeps]:
    sleeps = Sleeps()
    return [chunk async for chunk in with_retries(attempts, retries, sleeps)], sleeps


async def test_each_second_of_waiting_is_told() -> None:
    chunks, sleeps = await everything(Attempts(busy(2.5)))
    waits = [(chunk.attempt, chunk.seconds) for chunk in chunks if isinstance(chunk, RetryChunk)]
    assert waits == [(2, 2.5), (2, 2.0), (2, 1.0)]
    assert sleeps == [0.5, 1.0, 1.0]
    assert chunks[-1] == TextChunk("done")
    assert all(chunk.why == "The server is busy" for chunk in chunks if isinstance(chunk, RetryChunk))


async def test_without_a_word_from_the_provider_waits_double() -> None:
    _, sleeps = await everything(Attempts(*[busy()] * 5))
    assert sum(sleeps) == 2 + 4 + 8 + 16 + 30


@pytest.mark.parametrize("asked", [0.0, 5e-324, 0.000001, 0.25, 0.999])
async def test_a_tiny_requested_wait_does_not_use_up_the_retries_at_once(asked: float) -> None:
    _, sleeps = await everything(Attempts(*[busy(asked)] * 5))
    assert sum(sleeps) == 5 * SHORTEST_WAIT_SECONDS


async def test_the_last_error_says_how_often_it_was_tried() -> None:
    attempts = Attempts(*[busy(0)] * 9)
    with pytest.raises(RateLimited, match="The server is busy, even after 2 retries: wait"):
        await everything(attempts, retries=2)
    assert attempts.made == 3


async def test_without_retries_the_error_is_as_it_was() -> None:
    with pytest.raises(RateLimited) as caught:
        await everything(Attempts(busy()), retries=0)
    assert str(caught.value) == "The server is busy: wait"


async def test_what_an_attempt_said_before_it_failed_is_void_and_said_again() -> None:
    chunks, _ = await everything(Attempts(busy(0), first="Well"))
    assert [type(chunk) for chunk in chunks] == [TextChunk, RetryChunk, TextChunk, TextChunk]


async def test_what_the_last_attempt_said_is_kept_as_cut() -> None:
    end = EndChunk("cut", why="The server is busy")
    chunks, _ = await everything(Attempts(*[busy(0)] * 3, first="Well", end=end), retries=1)
    assert chunks[-2:] == [TextChunk("Well"), end]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (LONGEST_ASKED_SECONDS + 1, "5 min 1 s"),
        (3600, "1 h"),
        (40_000, "11 h 6 min"),
        (1e9, "277777 h 46 min"),
    ],
)
@pytest.mark.parametrize("kind", [RateLimited, Unreachable])
async def test_a_long_wait_is_said_and_not_begun(seconds: float, said: str, kind: type[ModelError]) -> None:
    attempts = Attempts(Meaning(kind("The server is busy", "wait"), again=True, seconds=seconds))
    with pytest.raises(kind, match=f"The server is busy, and asks to wait {said}: wait"):
        await everything(attempts)
    assert attempts.made == 1
