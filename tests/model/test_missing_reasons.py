"""Streams of each format that end without the server's reason: they are cut, both ways to the model."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from support.asking import answer, request, text
from support.openai_wire import RawAnswer
from support.provider import Answer, Provider, sse

from tests.model.conftest import environment
from tui_agent.model.child_model import ChildModel, Transport
from tui_agent.model.client import EndChunk, UsageChunk
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


def aws(kind: str, **body: Any) -> bytes:
    """An event of Bedrock."""
    headers = b""
    for name, value in ((":event-type", kind), (":message-type", "event")):
        headers += bytes((len(name),)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
    payload = json.dumps(body).encode()
    head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def part(**body: Any) -> bytes:
    """An event of a vendor's format in one of Bedrock."""
    return aws("chunk", bytes=base64.b64encode(json.dumps(body).encode()).decode())


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
BEGUN["bedrock"] = [
    aws("messageStart", role="assistant"),
    aws("contentBlockDelta", contentBlockIndex=0, delta={"text": "one "}),
    aws("contentBlockDelta", contentBlockIndex=0, delta={"text": "two"}),
]
BEGUN["bedrock, vendor"] = [
    part(type="message_start", message={"usage": {"input_tokens": 7, "output_tokens": 1}}),
    part(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
    part(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "one "}),
    part(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "two"}),
]
AWS_STOP = aws("messageStop", stopReason="end_turn")
AWS_COUNTED = aws(
    "metadata", usage={"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}, metrics={"latencyMs": 3}
)
VENDOR_STOP = part(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2})
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
    "bedrock, nothing": ("bedrock", []),
    "bedrock, counts": ("bedrock", [aws("contentBlockStop", contentBlockIndex=0), AWS_COUNTED]),
    "bedrock, half": ("bedrock", [AWS_STOP[:30]]),
    "bedrock, null": ("bedrock", [aws("messageStop", stopReason=None), AWS_COUNTED]),
    "bedrock, empty": ("bedrock", [aws("messageStop", stopReason=""), AWS_COUNTED]),
    "bedrock, damaged": ("bedrock", [AWS_STOP[:-1] + b"x", AWS_COUNTED]),
    "bedrock, impossible size": ("bedrock", [b"\0\0\0\1" + AWS_STOP[4:]]),
    "bedrock, vendor, nothing": ("bedrock, vendor", []),
    "bedrock, vendor, null": (
        "bedrock, vendor",
        [
            part(type="message_delta", delta={"stop_reason": None}, usage={"output_tokens": 2}),
            part(type="message_stop"),
        ],
    ),
    "bedrock, vendor, half": ("bedrock, vendor", [VENDOR_STOP[:40]]),
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
WHOLE["bedrock"] = [*BEGUN["bedrock"], AWS_STOP, AWS_COUNTED]
WHOLE["bedrock, vendor"] = [*BEGUN["bedrock, vendor"], VENDOR_STOP, part(type="message_stop")]
HEADERS = {"bedrock": {"content-type": "application/vnd.amazon.eventstream"}}
MODELS = {
    "openai": "openai/test-model",
    "anthropic": "anthropic/test-model",
    "gemini": "gemini/gemini-2.5-flash",
    "responses": "openai/responses/gpt-5.2",
    "bedrock": "bedrock/converse/us.amazon.nova-pro-v1:0",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model(server: Provider, transport: Transport) -> AsyncGenerator[ChildModel, None]:
    """With a key and an address for Gemini and Bedrock, too."""
    address = server.url.removesuffix("/v1")
    gemini = {"GEMINI_API_BASE": address, "GEMINI_API_KEY": "test"}
    bedrock = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION_NAME": "us-east-1"}
    bedrock["AWS_BEDROCK_RUNTIME_ENDPOINT"] = address
    model = ChildModel(environment={**environment(server), **gemini, **bedrock}, transport=transport)
    yield model
    await model.close()


def model_of(format: str) -> str:
    if format == "bedrock, vendor":
        return "bedrock/invoke/anthropic.claude-3-5-sonnet-20240620-v1:0"
    return MODELS[format.partition(",")[0]]


def sent(format: str, *events: bytes) -> Answer:
    return Answer(raw=RawAnswer(events, HEADERS.get(format.partition(",")[0], {})))


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
    provider.answer(sent(format, *BEGUN[format], *rest))
    *chunks, end = await answer(model, request(model=model_of(format)))
    assert text(chunks) == "one two"
    assert isinstance(end, EndChunk) and end.reason == "cut", end
    said = (
        "early",
        "before any terminal event",
        "in the middle of an event",
        "wrong checksum",
        "impossible size",
    )
    assert any(words in end.why for words in said), end.why


@pytest.mark.parametrize("format", WHOLE)
async def test_with_one_it_is_whole(
    model: ChildModel, provider: Provider, transport: str, format: str
) -> None:
    if (format, transport) == ("responses", "auto"):
        assert reason_of(WHOLE[format]) == "stop"
        return
    provider.answer(sent(format, *WHOLE[format]))
    *chunks, end = await answer(model, request(model=model_of(format)))
    assert (text(chunks), end) == ("one two", EndChunk("stop")), (chunks, end)
    usage = next((chunk for chunk in chunks if isinstance(chunk, UsageChunk)), None)
    assert not format.startswith("bedrock") or (usage and usage.output == 2)
