"""The real model child, directly and through litellm, against a provider with an API of its own."""

from __future__ import annotations

import msgspec
import pytest
from support.anthropic_wire import SIGNATURE
from support.asking import answer, ending, request, text
from support.provider import Answer, Provider, ToolCall

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    ModelError,
    RequestRejected,
)
from tui_agent.model.child_model import ChildModel
from tui_agent.model.client import (
    CallChunk,
    EndChunk,
    RetryChunk,
    TextChunk,
    UsageChunk,
)
from tui_agent.model.parts import CallPart, TextPart, ThinkingPart, message_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


CLAUDE = "anthropic/test-model"
KNOWN_CLAUDE = "anthropic/claude-sonnet-4-5"
TOOL = {"type": "function", "function": {"name": "read_files", "parameters": {"type": "object"}}}


async def test_an_answer_streams_as_words_and_calls_and_ends_with_usage(
    model: ChildModel, provider: Provider
) -> None:
    call = ToolCall("read_files", {"actions": []})
    provider.answer(Answer("Looking.", reasoning="two and two", calls=(call,), usage=(1000, 7, 900)))
    chunks = await answer(model, request(model=CLAUDE))
    assert chunks[-1] == EndChunk("tool_calls")
    assert text(chunks) == "Looking."
    assert "".join(chunk.arguments for chunk in chunks if isinstance(chunk, CallChunk)) == call.text
    usage = next(chunk for chunk in chunks if isinstance(chunk, UsageChunk))
    assert (usage.input, usage.output, usage.cached) == (1000, 7, 900)


async def test_signed_thinking_is_returned_as_it_came(model: ChildModel, provider: Provider) -> None:
    call = ToolCall("read_files", {"actions": []}, id="toolu_1")
    provider.answer(Answer("Looking.", reasoning="two and two", calls=(call,)), "done")
    first = request(model=KNOWN_CLAUDE, tools=(TOOL,))
    end = await ending(model, first)
    assert end.origin is not None and end.origin.family == "claude-4"
    thinking, words, called = end.parts
    assert (thinking, words) == (ThinkingPart("two and two ", thinking.native), TextPart("Looking."))
    assert called == CallPart("toolu_1", "read_files", call.text)
    result = {"role": "tool", "tool_call_id": "toolu_1", "content": "nothing"}
    messages = (*first.messages, message_of(end.parts, end.origin), result)
    await answer(model, msgspec.structs.replace(first, messages=messages))
    sent = provider.requests[-1].body["messages"][1]
    block = {"type": "thinking", "thinking": "two and two ", "signature": SIGNATURE}
    assert sent["content"][:2] == [block, {"type": "text", "text": "Looking."}]
    assert (sent["content"][2]["id"], sent["content"][2]["input"]) == ("toolu_1", call.arguments)


async def test_messages_that_may_be_cached_have_a_mark(model: ChildModel, provider: Provider) -> None:
    provider.answer("done")
    talk = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"})
    await answer(model, msgspec.structs.replace(request(model=KNOWN_CLAUDE), messages=talk))
    body = provider.requests[-1].body
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body["system"] == [{"type": "text", "text": "Be brief."} | mark]
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "Hello"} | mark]


async def test_its_stream_that_just_ends_is_cut(model: ChildModel, provider: Provider) -> None:
    provider.answer(Answer("one two three", cut_after=4, cut_cleanly=True))
    chunks = await answer(model, request(model=CLAUDE))
    assert text(chunks) == "one two"
    why = "The server of anthropic/test-model ended the answer early"
    assert chunks[-1] == EndChunk("cut", why=why)


async def test_its_overload_is_waited_for(model: ChildModel, provider: Provider) -> None:
    overloaded = Answer(status=529, code="overloaded_error", message="Overloaded", retry_after=1)
    provider.answer(overloaded, "done")
    chunks = await answer(model, request(model=CLAUDE))
    assert [type(chunk) for chunk in chunks[:2]] == [RetryChunk, TextChunk]


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (401, "authentication_error", "invalid x-api-key", BadKey),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
        (404, "not_found_error", "model: test-model", RequestRejected),
    ],
)
async def test_its_errors(
    model: ChildModel, provider: Provider, status: int, code: str, message: str, kind: type[ModelError]
) -> None:
    provider.answer(Answer(status=status, code=code, message=message))
    with pytest.raises(kind) as caught:
        await answer(model, request(model=CLAUDE))
    assert type(caught.value) is kind
