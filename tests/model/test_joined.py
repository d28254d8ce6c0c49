"""Pieces of an answer that come within a moment cross the pipe as one."""

from __future__ import annotations

from tui_agent.model.client import (
    CallChunk,
    Chunk,
    EndChunk,
    JoinedChunks,
    ReasoningChunk,
    TextChunk,
    joined_chunks,
)


def test_what_continues_a_text_is_joined_to_it_and_nothing_else_is() -> None:
    call = CallChunk(0, "call_0", "read_files", "{")
    assert joined_chunks(TextChunk("one"), TextChunk(" two")) == TextChunk("one two")
    assert joined_chunks(ReasoningChunk("one"), ReasoningChunk(" two")) == ReasoningChunk("one two")
    assert joined_chunks(call, CallChunk(0, arguments="}")) == CallChunk(0, "call_0", "read_files", "{}")
    for chunk in (CallChunk(1, arguments="}"), CallChunk(0, "call_1", "x"), TextChunk("x"), EndChunk("stop")):
        assert joined_chunks(call, chunk) is None
    assert joined_chunks(TextChunk("one"), ReasoningChunk("two")) is None


async def test_a_burst_is_few_chunks_in_order() -> None:
    sent: list[Chunk] = []

    async def send(chunk: Chunk) -> None:
        sent.append(chunk)

    out = JoinedChunks(send)
    for number in range(4_000):
        await out.add(TextChunk(f"{number} "))
    await out.add(CallChunk(0, "call_0", "read_files", "{"))
    await out.add(CallChunk(0, arguments="}"))
    await out.add(EndChunk("tool_calls"))
    texts = [chunk.text for chunk in sent if isinstance(chunk, TextChunk)]
    assert sent[0] == TextChunk("0 "), "the first goes on at once"
    assert "".join(texts) == "".join(f"{number} " for number in range(4_000))
    assert len(texts) < 40
    assert sent[len(texts) :][-1] == EndChunk("tool_calls")
    assert "".join(chunk.arguments for chunk in sent if isinstance(chunk, CallChunk)) == "{}"
