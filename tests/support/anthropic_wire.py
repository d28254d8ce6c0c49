"""The Anthropic messages API as it looks on the wire, for the same scripted answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from support.openai_wire import Answer

_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
SIGNATURE = "signed"


def events(answer: Answer, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The stream's events. Reasoning becomes one signed block of thought, whose text comes in words."""
    given, made, cached = answer.usage or (0, 0, 0)
    usage = {"input_tokens": given - cached, "cache_read_input_tokens": cached, "output_tokens": 1}
    yield {"type": "message_start", "message": _message(request, usage)}
    for index, (block, deltas) in enumerate(_blocks(answer)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = _STOPS.get(answer.finish_reason, answer.finish_reason)
    yield {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": made}}
    yield {"type": "message_stop"}


def error_body(answer: Answer) -> dict[str, Any]:
    return answer.body or {
        "type": "error",
        "error": {"type": answer.code or "api_error", "message": answer.message},
    }


def message(answer: Answer, request: dict[str, Any]) -> dict[str, Any]:
    """The whole answer at once, for a request that does not stream."""
    given, made, cached = answer.usage or (0, 0, 0)
    usage = {"input_tokens": given - cached, "cache_read_input_tokens": cached, "output_tokens": made}
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {
            "type": "tool_use",
            "id": call.id or f"call_{index}",
            "name": call.name,
            "input": json.loads(call.text),
        }
        for index, call in enumerate(answer.calls)
    ]
    stop = _STOPS.get(answer.finish_reason, answer.finish_reason)
    return {**_message(request, usage), "content": content, "stop_reason": stop}


def _message(request: dict[str, Any], usage: dict[str, int]) -> dict[str, Any]:
    fixed = {"id": "msg_test", "type": "message", "role": "assistant", "content": [], "stop_reason": None}
    return {**fixed, "model": request.get("model", "test-model"), "usage": usage}


def _blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.reasoning:
        thoughts = [{"type": "thinking_delta", "thinking": word + " "} for word in answer.reasoning.split()]
        signature = {"type": "signature_delta", "signature": SIGNATURE}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signature]
    if answer.pieces:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.pieces]
    for index, call in enumerate(answer.calls):
        block = {"type": "tool_use", "id": call.id or f"call_{index}", "name": call.name, "input": {}}
        pieces = [call.text[start : start + 12] for start in range(0, len(call.text), 12)]
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def sse(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
