"""Streams of each format that end without the server's reason: they are cut, both ways to the model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from support.asking import answer, request, text
from support.openai_wire import RawAnswer
from support.provider import Answer, Provider, sse

from tests.model.conftest import environment
from tui_agent.model.child_model import ChildModel, Transport
from tui_agent.model.client import EndChunk
from tui_agent.model.wires.responses import ResponsesReader

pytestmark = pytest.mark.asyncio(loop_scope="session")


def event(**value: Any) -> bytes:
    kind = f"event: {value['type']}\n" if "type" in value else ""
    return f"{kind}data: {json.dumps(value)}\n\n".encode()


def delta(**value: Any) -> bytes:
    return event(type="message_delta", **value)


def chat(reason: str | None) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": reason}])


def said(words: str, **more: Any) -> bytes:
    return event(candidates=[{"content": {"role": "model", "parts": [{"text": words}]}, "index": 0, **more}])


COUNTED = {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}
WHOLE = {
    name: list(sse(Answer("one two", usage=(70, 7, 0)), name))
    for name in ("openai", "anthropic", "responses")
}
BEGUN = {
    name: events[: next(i for i, one in enumerate(events) if b"two" in one) + 1]
    for name, events in WHOLE.items()
}
BEGUN["gemini"] = [said("one "), said("two")]
STOP = event(type="message_stop")
NULL = delta(delta={"stop_reason": None}, usage={"output_tokens": 3})
#: By name: the format, and the events behind the words.
CUT: dict[str, tuple[str, list[bytes]]] = {
    "null, then the end": ("anthropic", [NULL]),
    "null, then the last event": ("anthropic", [NULL, STOP]),
    "no reason": ("anthropic", [delta(delta={}, usage={"output_tokens": 3}), STOP]),
    "a number": ("anthropic", [delta(delta={"stop_reason": 1}), STOP]),
    "the last event alone": ("anthropic", [STOP]),
    "half of the reason": ("anthropic", [delta(delta={"stop_reason": "end_turn"})[:60]]),
    "chat, nothing": ("openai", []),
    "chat, null": ("openai", [chat(None)]),
    "chat, empty": ("openai", [chat("")]),
    "chat, null and a marker": ("openai", [chat(None), b"data: [DONE]\n\n"]),
    "chat, half": ("openai", [chat("stop")[:-12]]),
    "gemini, nothing": ("gemini", []),
    "gemini, counts": ("gemini", [event(candidates=[{"index": 0}], usageMetadata=COUNTED)]),
    "gemini, half": ("gemini", [said("", finishReason="STOP")[:-9]]),
    "responses, nothing": ("responses", []),
    "responses, in progress": (
        "responses",
        [event(type="response.in_progress", response={"status": "in_progress"})],
    ),
}
WHOLE["gemini"] = [
    said("one "),
    said("two", finishReason="STOP"),
    event(candidates=[], usageMetadata=COUNTED),
]
WHOLE["anthropic, counted before"] = [
    *BEGUN["anthropic"],
    NULL,
    *WHOLE["anthropic"][len(BEGUN["anthropic"]) :],
]
MODELS = {
    "openai": "openai/test-model",
    "anthropic": "anthropic/test-model",
    "gemini": "gemini/gemini-2.5-flash",
    "responses": "openai/responses/gpt-5.2",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model(server: Provider, transport: Transport) -> AsyncGenerator[ChildModel, None]:
    """With a key and an address for Gemini, too."""
    gemini = {"GEMINI_API_BASE": server.url.removesuffix("/v1"), "GEMINI_API_KEY": "test"}
    model = ChildModel(environment={**environment(server), **gemini}, transport=transport)
    yield model
    await model.close()


def model_of(format: str) -> str:
    return MODELS[format.partition(",")[0]]


def reason_of(events: list[bytes]) -> str | None:
    """Read directly: the Responses API is only used at OpenAI's own address."""
    reader = ResponsesReader()
    for one in events:
        if (data := one.partition(b"data: ")[2].strip()) != b"[DONE]":
            reader.read(json.loads(data))
    return reader.reason


@pytest.mark.parametrize("name", CUT)
async def test_without_a_reason_it_is_cut(
    model: ChildModel, provider: Provider, transport: str, name: str
) -> None:
    format, rest = CUT[name]
    if (format, transport) == ("responses", "auto"):
        assert reason_of([*BEGUN[format], *rest]) is None
        return
    provider.answer(Answer(raw=RawAnswer((*BEGUN[format], *rest))))
    *chunks, end = await answer(model, request(model=model_of(format)))
    assert text(chunks) == "one two"
    assert isinstance(end, EndChunk) and end.reason == "cut", end
    assert "early" in end.why or "before any terminal event" in end.why


@pytest.mark.parametrize("format", WHOLE)
async def test_with_one_it_is_whole(
    model: ChildModel, provider: Provider, transport: str, format: str
) -> None:
    if (format, transport) == ("responses", "auto"):
        assert reason_of(WHOLE[format]) == "stop"
        return
    provider.answer(Answer(raw=RawAnswer(tuple(WHOLE[format]))))
    *chunks, end = await answer(model, request(model=model_of(format)))
    assert (text(chunks), end) == ("one two", EndChunk("stop"))
