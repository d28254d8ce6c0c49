"""The wire of Anthropic's messages: a request in its form, an event of the answer as a piece.

https://docs.anthropic.com/en/api/messages, https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

import json
from typing import Any

from tui_agent.model.client import Message, ModelRequest
from tui_agent.model.openai_wire import count
from tui_agent.model.pieces import (
    StreamCall,
    StreamDelta,
    StreamDetails,
    StreamFunction,
    StreamPiece,
    StreamUsage,
)
from tui_agent.model.table import Route

PATH = "/v1/messages"
VERSION = "2023-06-01"
SHAPED = "structured-outputs-2025-11-13"
#: How long an answer of a model may be that nobody knows, in tokens.
MOST_TOKENS = 4096
_MARK = "cache_control"
#: Why a model ended, in OpenAI's words.
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


def headers(route: Route) -> dict[str, str]:
    return {"x-api-key": route.key, "anthropic-version": VERSION}


def body(request: ModelRequest, route: Route, shape: dict[str, Any] | None) -> dict[str, Any]:
    system = [message for message in request.messages if message["role"] == "system"]
    options: dict[str, Any] = {}
    if parts := [part for message in system for part in _text_parts(message)]:
        options["system"] = parts
    if request.tools:
        options["tools"] = [_tool(tool["function"]) for tool in request.tools]
    if shape is not None:
        options["output_format"] = {"type": "json_schema", "schema": _taken(shape["json_schema"]["schema"])}
    most = route.known.output if route.known else 0
    messages = _turns([message for message in request.messages if message["role"] != "system"])
    return {
        "model": route.model,
        "messages": messages,
        **options,
        "max_tokens": most or MOST_TOKENS,
        "stream": True,
    }


def _taken(schema: Any) -> Any:
    """The schema as it is taken: beside a list of values there is no list of types."""
    match schema:
        case dict():
            kept = {key: _taken(value) for key, value in schema.items()}
            if "enum" in kept and isinstance(kept.get("type"), list):
                del kept["type"]
            return kept
        case list():
            return [_taken(one) for one in schema]
    return schema


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    tool = {"name": function["name"], "input_schema": function.get("parameters") or {"type": "object"}}
    described = {"description": function["description"]} if function.get("description") else {}
    return {**tool, "type": "custom", **described}


def _turns(messages: list[Message]) -> list[dict[str, Any]]:
    """The messages as turns of the two sides: what one of them says in a row is one turn of parts."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        parts = _said(message) if role == "assistant" else _asked(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += parts
        elif parts:
            turns.append({"role": role, "content": parts})
    return turns


def _asked(message: Message) -> list[dict[str, Any]]:
    if message["role"] != "tool":
        return _text_parts(message)
    mark = {_MARK: message[_MARK]} if _MARK in message else {}
    content = message.get("content") or ""
    return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content, **mark}]


def _said(message: Message) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") or ()
    return [
        *(message.get("thinking_blocks") or ()),
        *_text_parts(message),
        *({"type": "tool_use", "id": call["id"], **_called(call["function"])} for call in calls),
    ]


def _called(function: dict[str, Any]) -> dict[str, Any]:
    try:
        given = json.loads(function.get("arguments") or "{}")
    except ValueError:
        given = {}
    return {"name": function["name"], "input": given if isinstance(given, dict) else {}}


def _text_parts(message: Message) -> list[dict[str, Any]]:
    """The content as parts, the mark of the message at the last one; an empty text is not taken."""
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*map(_part, content)]
    parts = [part for part in parts if part.get("text") != ""]
    if parts and _MARK in message:
        parts[-1] = {**parts[-1], _MARK: message[_MARK]}
    return parts


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "image_url":
        return part
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


class MessageReader:
    """Events of one answer, one after the other; `reason` is why the model ended, in OpenAI's words."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._calls: dict[int, int] = {}
        self._usage: dict[str, Any] = {}

    def piece(self, event: dict[str, Any]) -> StreamPiece:
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self._usage = usage
            case {"type": "content_block_start", "index": int(at), "content_block": dict(block)}:
                return self._begun(at, block)
            case {"type": "content_block_delta", "index": int(at), "delta": dict(delta)}:
                return self._grown(at, delta)
            case {"type": "message_delta"}:
                if isinstance(reason := (event.get("delta") or {}).get("stop_reason"), str):
                    self.reason = _REASONS.get(reason, "stop")
                self._usage = {**self._usage, **(event.get("usage") or {})}
                return StreamPiece((), self._counted())
        return StreamPiece(())

    def _begun(self, at: int, block: dict[str, Any]) -> StreamPiece:
        match block:
            case {"type": "tool_use", "name": str(name)}:
                index = self._calls.setdefault(at, len(self._calls))
                given = block.get("input")
                arguments = json.dumps(given, ensure_ascii=False) if given else ""
                call = StreamCall(index, str(block.get("id") or ""), StreamFunction(name, arguments))
                return StreamPiece.of(StreamDelta(tool_calls=(call,)))
            case {"type": "text", "text": str(text)} if text:
                return StreamPiece.of(StreamDelta(content=text))
            case {"type": "redacted_thinking"}:
                return StreamPiece.of(StreamDelta(thinking_blocks=(block,)))
        return StreamPiece(())

    def _grown(self, at: int, delta: dict[str, Any]) -> StreamPiece:
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                return StreamPiece.of(StreamDelta(content=text))
            case {"type": "input_json_delta", "partial_json": str(text)} if at in self._calls:
                call = StreamCall(self._calls[at], None, StreamFunction(None, text))
                return StreamPiece.of(StreamDelta(tool_calls=(call,)))
            case {"type": "thinking_delta", "thinking": str(text)}:
                block = {"type": "thinking", "thinking": text}
                return StreamPiece.of(StreamDelta(reasoning_content=text, thinking_blocks=(block,)))
            case {"type": "signature_delta", "signature": str(signature)}:
                block = {"type": "thinking", "thinking": "", "signature": signature}
                return StreamPiece.of(StreamDelta(thinking_blocks=(block,)))
        return StreamPiece(())

    def _counted(self) -> StreamUsage:
        read = count(self._usage.get("cache_read_input_tokens"))
        made = count(self._usage.get("cache_creation_input_tokens"))
        given = count(self._usage.get("input_tokens")) + read + made
        return StreamUsage(given, count(self._usage.get("output_tokens")), StreamDetails(read, made))
