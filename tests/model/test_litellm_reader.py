"""litellm's pieces as chunks and parts, for replies that the loopback provider cannot send."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.asking import request

from tui_agent.errors import EmptyReply
from tui_agent.model import model_table
from tui_agent.model.client import (
    Abilities,
    CallChunk,
    Chunk,
    EndChunk,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.model.completion import Refusals, complete
from tui_agent.model.event_stream import Wire
from tui_agent.model.litellm_client import LitellmReader, LitellmStream, LitellmTransport
from tui_agent.model.parts import CallPart, Origin, TextPart, ThinkingPart

ORIGIN = Origin("litellm", "anthropic", "x")


class Pieces:
    """litellm's stream: the pieces, then the provider's word for its reason."""

    def __init__(self, *pieces: SimpleNamespace, ends: str) -> None:
        self.received_finish_reason = ""
        self._pieces = list(pieces)
        self._ends = ends

    async def __anext__(self) -> SimpleNamespace:
        if self._pieces:
            return self._pieces.pop(0)
        if self.received_finish_reason:
            raise StopAsyncIteration
        self.received_finish_reason = self._ends
        return SimpleNamespace(choices=[])


class Carrying:
    """A transport that has one stream."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    async def abilities(self, model: str) -> Abilities:
        return Abilities(model)

    async def open(self, request: ModelRequest, wire: Wire, shape: dict[str, Any] | None) -> LitellmStream:
        return LitellmStream(self._pieces, ORIGIN, wire)

    async def cost(self, model: str, usage: UsageChunk) -> float | None:
        return None


async def reply(*pieces: SimpleNamespace, ends: str) -> list[Chunk]:
    """The chunks of a reply that litellm hands over in these pieces."""
    transport = Carrying(Pieces(*pieces, ends=ends))
    return [chunk async for chunk in complete(transport, request(), Refusals())]


def piece(**delta: Any) -> SimpleNamespace:
    whole = {"content": None, "tool_calls": None, **delta}
    return SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(**whole))])


def call(index: int, id: str, name: str, arguments: str) -> SimpleNamespace:
    return SimpleNamespace(index=index, id=id, function=SimpleNamespace(name=name, arguments=arguments))


async def test_blocks_of_thinking_are_put_together_as_they_were() -> None:
    redacted = {"type": "redacted_thinking", "data": "opaque"}
    blocks: tuple[dict[str, Any], ...] = (
        {"type": "thinking", "thinking": "two and ", "signature": None},
        {"type": "thinking", "thinking": "two", "signature": None},
        {"type": "thinking", "thinking": "", "signature": "first"},
        redacted,
        {"type": "thinking", "thinking": "four", "signature": "second"},
        {"type": "thinking", "thinking": "so", "signature": "third"},
    )
    pieces = [piece(thinking_blocks=[block]) for block in blocks]
    kept = [
        {"type": "thinking", "thinking": "two and two", "signature": "first"},
        redacted,
        {"type": "thinking", "thinking": "four", "signature": "second"},
        {"type": "thinking", "thinking": "so", "signature": "third"},
    ]
    parts = (ThinkingPart("", kept), TextPart("4"))
    assert await reply(*pieces, piece(content="4"), ends="stop") == [
        TextChunk("4"),
        EndChunk("stop", parts=parts, origin=ORIGIN),
    ]


async def test_thinking_alone_is_no_answer() -> None:
    with pytest.raises(EmptyReply, match="reached its output limit"):
        await reply(piece(reasoning_content="hm"), ends="length")


def test_a_piece_without_choices_says_nothing() -> None:
    reader = LitellmReader()
    assert reader.read(SimpleNamespace(choices=[])) == []
    assert reader.parts() == ()


@pytest.mark.parametrize(
    ("word", "reason"), [("eos_token", "stop"), ("network_error", "cut"), ("content_filter", "refused")]
)
async def test_an_answer_ends_as_the_provider_says(word: str, reason: str) -> None:
    *chunks, end = await reply(piece(reasoning_content="hm"), piece(content="4"), ends=word)
    assert chunks == [ReasoningChunk("hm"), TextChunk("4")]
    assert isinstance(end, EndChunk) and end.reason == reason
    assert end.parts == (ThinkingPart("hm"), TextPart("4"))


async def test_tokens_that_a_cache_keeps_for_an_hour_are_counted_and_paid_for() -> None:
    kept = SimpleNamespace(ephemeral_5m_input_tokens=100, ephemeral_1h_input_tokens=300)
    details = SimpleNamespace(cached_tokens=500, cache_creation_tokens=400, cache_creation_token_details=kept)
    usage = SimpleNamespace(prompt_tokens=1_000, completion_tokens=7, prompt_tokens_details=details)
    reader = LitellmReader()
    reader.read(SimpleNamespace(choices=[], usage=usage))
    assert reader.usage == UsageChunk(1_000, 7, 500, written=400, written_long=300)
    model = "anthropic/claude-sonnet-4-5"
    route = model_table.route(model, {})
    assert route is not None
    assert await LitellmTransport().cost(model, reader.usage) == pytest.approx(
        model_table.cost(route, reader.usage)
    )


def test_a_signature_beside_the_id_of_a_call_is_kept_apart_from_the_id() -> None:
    reader = LitellmReader()
    chunks = reader.read(piece(tool_calls=[call(0, "call_1__thought__c2ln", "read", '{"a":1}')]))
    assert chunks == [CallChunk(0, "call_1", "read", '{"a":1}')]
    assert reader.parts() == (CallPart("call_1", "read", '{"a":1}', {"id": "call_1__thought__c2ln"}),)
