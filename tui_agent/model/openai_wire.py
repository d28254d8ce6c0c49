"""The wire of OpenAI's chat completions, as many servers speak it: a request in its form, an event as a piece."""

from __future__ import annotations

import json
from typing import Any

from tui_agent.model.client import ModelRequest
from tui_agent.model.pieces import (
    StreamCall,
    StreamDelta,
    StreamDetails,
    StreamFunction,
    StreamPiece,
    StreamUsage,
)
from tui_agent.model.table import Route

PATH = "/chat/completions"


def headers(route: Route) -> dict[str, str]:
    return {"Authorization": f"Bearer {route.key}"}


def body(request: ModelRequest, route: Route, shape: dict[str, Any] | None) -> dict[str, Any]:
    drops = route.provider.drops
    messages = [
        {name: value for name, value in message.items() if name not in drops} for message in request.messages
    ]
    options: dict[str, Any] = {"tools": list(request.tools)} if request.tools else {}
    if shape is not None:
        options["response_format"] = shape
    if request.most:
        options["max_tokens"] = request.most
    options |= request.options
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    return {"model": route.model, "messages": messages, **streamed, **options, **route.provider.body}


class ChatReader:
    """Events of one answer, one after the other; `reason` is why the model ended, by its own word."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def piece(self, event: dict[str, Any]) -> StreamPiece:
        usage = _usage(event["usage"]) if isinstance(event.get("usage"), dict) else None
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return StreamPiece((), usage, _progress(event))
        if progress := _progress(event):
            return StreamPiece((), usage, progress)
        reason = choices[0].get("finish_reason")
        self.reason = reason if isinstance(reason, str) and reason else self.reason
        delta = choices[0].get("delta")
        return StreamPiece.of(_delta(delta) if isinstance(delta, dict) else StreamDelta(), usage)


def _progress(event: dict[str, Any]) -> tuple[int, int] | None:
    """What llama.cpp says of a request that it reads."""
    match event.get("prompt_progress"):
        case {"processed": int(read), "total": int(total)}:
            return read, total
    return None


def _delta(delta: dict[str, Any]) -> StreamDelta:
    calls = delta.get("tool_calls")
    blocks = delta.get("thinking_blocks")
    return StreamDelta(
        content=_words(delta.get("content")),
        reasoning_content=_words(delta.get("reasoning_content") or delta.get("reasoning")),
        refusal=_words(delta.get("refusal")),
        thinking_blocks=tuple(block for block in blocks if isinstance(block, dict))
        if isinstance(blocks, list)
        else (),
        tool_calls=tuple(_call(call) for call in calls if isinstance(call, dict))
        if isinstance(calls, list)
        else (),
    )


def _call(call: dict[str, Any]) -> StreamCall:
    given = call.get("function")
    function = given if isinstance(given, dict) else {}
    arguments, index = function.get("arguments"), call.get("index")
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return StreamCall(
        index if isinstance(index, int) else 0,
        _words(call.get("id")),
        StreamFunction(_words(function.get("name")), _words(arguments)),
    )


def _words(value: Any) -> str | None:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(str(part.get("text") or "") for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else None


def _usage(usage: dict[str, Any]) -> StreamUsage:
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    made = details.get("cache_creation_tokens") or details.get("cache_write_tokens")
    return StreamUsage(
        count(usage.get("prompt_tokens")),
        count(usage.get("completion_tokens")),
        StreamDetails(count(cached), count(made)),
    )


def count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else 0
