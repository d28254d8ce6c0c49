"""The real model child, directly and through litellm, against a provider on loopback: what is answered."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from support.asking import answer, answering, request, text
from support.provider import Answer, Provider, ToolCall

from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import (
    CallChunk,
    EndChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_answer_streams_in_pieces_and_ends_with_usage(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", usage=(1000, 3, 900)))
    chunks = await answer(model)
    assert text(chunks[:1]).startswith("one")
    assert text(chunks) == "one two three"
    assert chunks[-2:] == [
        UsageChunk(input=1000, output=3, cached=900, cost=None),
        EndChunk("stop"),
    ]


async def test_the_first_piece_is_here_before_the_last_was_sent(
    model: ChildModel, provider: Provider
) -> None:
    provider.answer(Answer("one two", hold_after=1))
    async with aclosing(answering(model)) as stream:
        assert await anext(stream) == TextChunk("one")
        provider.release()
        assert await anext(stream) == TextChunk(" two")


async def test_a_server_is_reached_by_variables_that_are_told_later(
    model: ChildModel, provider: Provider
) -> None:
    provider.answer(Answer("here"))
    await model.reach({"LM_STUDIO_API_BASE": provider.url, "LM_STUDIO_API_KEY": "none"})
    assert text(await answer(model, request(model="lm_studio/test-model"))) == "here"


async def test_the_price_comes_from_litellms_own_table(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one", usage=(1_000_000, 0, 0)))
    chunks = await answer(model, request(model="openai/gpt-4o"))
    usage = next(chunk for chunk in chunks if isinstance(chunk, UsageChunk))
    assert usage.cost == pytest.approx(2.5)


async def test_function_calls_come_piece_by_piece(model: ChildModel, provider: Provider) -> None:
    calls = (ToolCall("read_files", {"actions": [1, 2, 3]}), ToolCall("set_todos", {"todos": []}))
    provider.answer(Answer("Looking.", calls=calls))
    tool = {"type": "function", "function": {"name": "read_files", "parameters": {"type": "object"}}}
    chunks = await answer(model, request(tools=(tool,)))
    pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk)]
    named = [(piece.index, piece.id, piece.name) for piece in pieces if piece.name]
    assert named == [(0, "call_0", "read_files"), (1, "call_1", "set_todos")]
    for index, call in enumerate(calls):
        assert "".join(piece.arguments for piece in pieces if piece.index == index) == call.text
    assert chunks[-1] == EndChunk("tool_calls")
    body = provider.requests[0].body
    assert body["tools"] == [tool]
    assert set(body) == {"model", "messages", "stream", "stream_options", "tools"}


async def test_reasoning_is_kept_apart_from_the_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("four", reasoning="two and two"))
    chunks = await answer(model)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk)) == "two and two "
    assert text(chunks) == "four"


async def test_a_json_schema_is_passed_on(model: ChildModel, provider: Provider) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    provider.answer("{}")
    await answer(model, request(schema=schema))
    sent = provider.requests[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == schema
    assert sent["json_schema"]["strict"] is False


async def test_a_server_that_takes_no_schema_is_asked_without(model: ChildModel, provider: Provider) -> None:
    refusal = Answer(status=400, message="'response_format.type' must be 'text'")
    provider.answer(refusal, "first", "second")
    asked = request(model="openai/schemaless", schema={"type": "object", "properties": {}})
    assert text(await answer(model, asked)) == "first"
    assert text(await answer(model, asked)) == "second"
    formats = ["response_format" in received.body for received in provider.requests]
    assert formats == [True, False, False], "asked once with, and not again"


async def test_the_request_holds_what_was_given_and_nothing_else(
    model: ChildModel, provider: Provider
) -> None:
    provider.answer("ok")
    messages = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"})
    await answer(model, request(messages=messages))
    assert provider.requests[0].body == {
        "model": "test-model",
        "messages": list(messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("name", "sees"), [("openai/gpt-4o", True), ("openai/test-model", True), ("openai/gpt-3.5-turbo", False)]
)
async def test_an_image_is_sent_unless_the_model_is_known_not_to_see(
    model: ChildModel, provider: Provider, name: str, sees: bool
) -> None:
    message = {"role": "user", "content": "Look", "images": [{"media_type": "image/png", "data": "AAAA"}]}
    provider.answer("ok")
    await answer(model, request(model=name, messages=(message,)))
    words = {"type": "text", "text": "Look"}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    (sent,) = provider.requests[-1].body["messages"]
    assert sent == {"role": "user", "content": [words, image] if sees else "Look"}


async def test_many_requests_at_once_each_get_their_own_answer(model: ChildModel, provider: Provider) -> None:
    provider.answer(*(lambda received: Answer(f"to {received.last_text}") for _ in range(12)))
    answers = await asyncio.gather(*(answer(model, request(f"number {n}")) for n in range(12)))
    assert [text(chunks) for chunks in answers] == [f"to number {n}" for n in range(12)]


async def test_closing_the_stream_hangs_up(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", hang_after=1))
    async with aclosing(answering(model)) as stream:
        assert await anext(stream) == TextChunk("one")
    assert await asyncio.to_thread(provider.requests[0].gone.wait, 20)


async def test_stopping_before_the_first_piece_hangs_up(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer(hang=True))
    asking = asyncio.create_task(answer(model))
    received = (await asyncio.to_thread(provider.wait_for, 1))[0]
    asking.cancel()
    assert await asyncio.to_thread(received.gone.wait, 20)
