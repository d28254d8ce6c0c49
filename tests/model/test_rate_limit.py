from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from support.asking import answer, request
from support.sessions import ScriptedModel

from tui_agent.errors import LimitReached
from tui_agent.model.client import Chunk, EndChunk, ModelRequest, RetryChunk, TextChunk
from tui_agent.model.rate_limit import Allowance, Pace, PacedModel


class Busy(ScriptedModel):
    """Asks for a wait before each answer while `waits` are left."""

    def __init__(self, *waits: float) -> None:
        super().__init__([])
        self.waits = list(waits)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        if self.waits:
            yield RetryChunk(2, self.waits.pop(0), "Too many requests")
        yield TextChunk("Yes.")
        yield EndChunk("stop")


async def test_who_is_told_to_wait_makes_the_others_wait_before_they_ask() -> None:
    pace, model = Pace(), Busy(0.05)
    first, second = PacedModel(model, pace), PacedModel(model, pace)
    stream = first.stream(request())
    assert await anext(stream) == RetryChunk(2, 0.05, "Too many requests")
    asked = second.stream(request())
    waits = await anext(asked)
    assert isinstance(waits, RetryChunk) and 0.05 < waits.seconds <= 0.31 and waits.why == "Too many requests"
    assert len(model.requests) == 1
    assert [chunk async for chunk in asked if isinstance(chunk, TextChunk)] == [TextChunk("Yes.")]
    assert len(model.requests) == 2
    await stream.aclose()


async def test_those_who_wait_go_on_one_after_the_other() -> None:
    moment = [100.0]
    pace = Pace(lambda: moment[0])
    assert pace.wait_for_slot() == 0.0
    pace.hold(2.0, "Too many requests")
    pace.hold(1.0, "a shorter wait changes nothing")
    places = [pace.wait_for_slot() for _ in range(3)]
    assert places == sorted(set(places)) and places[0] > 2.0
    moment[0] += places[-1]
    assert pace.wait_for_slot() == 0.0


async def test_without_a_wait_nothing_is_between_the_two() -> None:
    model = Busy()
    assert await answer(PacedModel(model, Pace())) == [TextChunk("Yes."), EndChunk("stop")]


async def test_what_is_reserved_is_made_and_the_next_is_refused_before_it_is_announced() -> None:
    model, allowance = Busy(), Allowance(1)
    allowance.reserve()
    with pytest.raises(LimitReached):
        allowance.reserve()
    assert await answer(PacedModel(model, Pace(), allowance)) == [TextChunk("Yes."), EndChunk("stop")]
    with pytest.raises(LimitReached):
        await answer(PacedModel(model, Pace(), allowance))
    assert len(model.requests) == 1
