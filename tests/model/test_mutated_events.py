"""Events of good replies with values that no provider sends: they are read, or the stream is broken, and nothing else.

What was read can be kept, and goes back in the next request. The seed decides every mutation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest
from support.rendering import SYSTEM, USER, fed, result, way

from tui_agent.model.client import EndChunk, ModelRequest
from tui_agent.model.direct_client import reader, render
from tui_agent.model.event_stream import BrokenStream, ValidatingTransport, Wire, watch
from tui_agent.model.parts import message_of, parts_of
from tui_agent.model.rules import WireName
from tui_agent.processes import serve as protocol

ROUNDS = 400
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "why"}], "encrypted_content": "opaque"}
MESSAGE = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi"}]}
CALLED = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}"}
RESPONSES = [
    {"type": "response.created", "response": {}},
    {"type": "response.output_item.added", "output_index": 0, "item": REASONING},
    {"type": "response.reasoning_summary_part.added", "output_index": 0},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "why"},
    {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
    {"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "delta": "Hi"},
    {"type": "response.refusal.delta", "output_index": 1, "delta": "no"},
    {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
    {"type": "response.output_item.added", "output_index": 2, "item": CALLED},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
    {"type": "response.output_item.done", "output_index": 2, "item": CALLED},
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "output": [REASONING, MESSAGE, CALLED],
            "incomplete_details": {"reason": "max_output_tokens"},
            "usage": {
                "input_tokens": 9,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
                "output_tokens_details": {"reasoning_tokens": 2},
            },
        },
    },
]
USED = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "total_tokens": 14,
    "cost": 0.1,
    "is_byok": True,
    "cost_details": {"upstream_inference_cost": 0.2},
    "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
DETAILS = [
    {"type": "reasoning.text", "text": "why", "index": 0, "signature": "s", "id": "x", "format": "f"},
    {"type": "reasoning.encrypted", "data": "opaque", "index": 1},
]
FUNCTION = {"index": 0, "id": "call_1", "function": {"name": "read", "arguments": "{}"}, "extra_content": {}}
CONTENT = [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}, {"type": "text", "text": "x"}]
CHAT = [
    {"choices": [{"index": 0, "delta": {"content": "Hi", "reasoning_content": "why"}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_details": DETAILS, "reasoning": "why"}}]},
    {"choices": [{"index": 0, "delta": {"content": CONTENT, "refusal": "no"}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [FUNCTION]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": USED},
    {"choices": [], "prompt_progress": {"processed": 1, "total": 2}},
    {"choices": [], "x_groq": {"usage": USED}},
]
MESSAGES = [
    {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": 3}}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "why"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "d"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Hi"}},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "call_1", "name": "read", "input": {}},
    },
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]
GENERATE = [
    {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "why", "thought": True},
                        {"text": "Hi"},
                        {"text": "", "thoughtSignature": "s"},
                        {
                            "functionCall": {"name": "read", "args": {"a": 1}, "id": "i"},
                            "thoughtSignature": "s",
                        },
                    ]
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2},
        "promptFeedback": {"blockReason": "SAFETY"},
    }
]
DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 10**15, 10**400, -(10**400), 1.5, float("inf"), float("nan")),
    *("", "x", "\ud800", "\udc00", [], {}, [None], [[]], {"a": None}, {"type": []}, ["a", 1], DEEP),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every value inside, none of them long."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner if len(at) < 9 else ():
        yield (*at, name)
        yield from places(one, (*at, name))


def mutated(made: Random, event: dict[str, Any]) -> dict[str, Any]:
    """The event with one to three values replaced or taken out."""
    event = json.loads(json.dumps(event))
    for _ in range(made.randint(1, 3)):
        if not (ways := list(places(event))):
            break
        *way_there, last = made.choice(ways)
        holder: Any = event
        for name in way_there:
            holder = holder[name]
        if made.random() < 0.15:
            del holder[last]
        else:
            holder[last] = json.loads(json.dumps(made.choice(VALUES)))
    return event


def stream(made: Random, events: list[dict[str, Any]]) -> bytes:
    events = [mutated(made, event) if made.random() < 0.4 else event for event in events]
    if made.random() < 0.3:
        made.shuffle(events)
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


@pytest.mark.parametrize(
    ("model", "name", "events"),
    [
        ("openai/gpt-5.4", "responses", RESPONSES),
        ("anthropic/claude-opus-5-5", "messages", MESSAGES),
        ("gemini/gemini-3-pro-preview", "generate", GENERATE),
        ("openrouter/google/gemini-3-pro", "chat", CHAT),
        ("mistral/mistral-medium-latest", "chat", CHAT),
        ("xai/grok-4.5", "chat", CHAT),
    ],
)
async def test_events_are_read_or_the_stream_is_broken(
    model: str, name: WireName, events: list[dict[str, Any]]
) -> None:
    made, route, read = Random(f"mutated events of {model}"), way(model), 0
    origin = route.origin(name)
    assert len(fed(reader(name, route), *events)) > 1
    for _ in range(ROUNDS):
        body = stream(made, events)
        served = httpx.MockTransport(
            lambda _, body=body: httpx.Response(
                200, content=body, headers={"content-type": "text/event-stream"}
            )
        )
        wire, reading = Wire(), reader(name, route)
        watch(wire)
        await ValidatingTransport(served).handle_async_request(httpx.Request("POST", "http://127.0.0.1:9"))
        assert wire.events is not None
        try:
            async for together in wire.events:
                for event in together:
                    protocol.encode(protocol.StreamItem(1, reading.read(event)))
                    read += 1
        except BrokenStream:
            pass
        end = EndChunk("stop", parts=reading.parts(), origin=origin)
        protocol.encode(protocol.StreamItem(1, [end, reading.usage]))
        message = json.loads(json.dumps(message_of(reading.parts(), origin)))
        assert parts_of(message) == reading.parts()
        _, rendered, _ = render(ModelRequest(model, (SYSTEM, USER, message, result())), route, name, None)
        assert json.dumps(rendered.body)
    assert read > ROUNDS / 4
