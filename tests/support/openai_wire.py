"""The OpenAI chat completions API as it looks on the wire, for the provider of the tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call; its arguments are streamed in pieces of a few characters."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What the server sends byte by byte, with status 200 unless `status` says otherwise.

    After the pieces it `close`s the connection as HTTP has it, `hold`s it open, sends `beats` of them again and again,
    `reset`s it, or closes only its own half in the middle of a chunk (`half`).
    """

    pieces: tuple[bytes, ...]
    headers: dict[str, str] = field(default_factory=dict)
    ends: Literal["close", "hold", "beat", "reset", "half"] = "close"
    beats: bytes = b": keep-alive\n\n"
    status: int = 200
    #: Between two pieces, in seconds.
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to one request; all times in seconds.

    `chunks` are the pieces to stream `text` in (default: its words). `usage` is (input, output, cached) tokens, and
    `thinking` how many of the output were thinking.
    A `status` other than 200 is an error with `message`, `code` and `retry_after`, or with `body` as it is.
    `raw` takes the place of everything else.
    `cut_after`, `hang_after` and `hold_after` count pieces; a clean cut looks like the end of a stream that
    simply never said why it ended, any other like a broken connection.
    """

    text: str = ""
    chunks: tuple[str, ...] = ()
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    usage: tuple[int, int, int] | None = (100, 10, 0)
    thinking: int = 0
    refusal: str = ""
    status: int = 200
    message: str = ""
    code: str | None = None
    body: dict[str, Any] | None = None
    retry_after: float | None = None
    delay: float = 0.0
    pause: float = 0.0
    hang: bool = False
    cut_after: int | None = None
    cut_cleanly: bool = False
    hang_after: int | None = None
    hold_after: int | None = None
    raw: RawAnswer | None = None

    @property
    def pieces(self) -> tuple[str, ...]:
        return self.chunks or tuple(re.findall(r"\s*\S+|\s+$", self.text))

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


def events(answer: Answer, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The stream's events: a piece of the answer each, then why it ended, then usage if that was asked for."""

    def event(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return _envelope(
            request, "chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": finish}]
        )

    for piece in answer.reasoning.split():
        yield event({"role": "assistant", "reasoning_content": piece + " "})
    for piece in answer.pieces:
        yield event({"role": "assistant", "content": piece})
    if answer.refusal:
        yield event({"role": "assistant", "refusal": answer.refusal})
    for index, call in enumerate(answer.calls):
        for piece in _call_pieces(index, call):
            yield event({"role": "assistant", "tool_calls": [piece]})
    yield event({}, answer.finish_reason)
    if answer.usage and request.get("stream_options", {}).get("include_usage"):
        yield {
            **_envelope(request, "chat.completion.chunk", []),
            "usage": _usage(answer.usage, answer.thinking),
        }


def _call_pieces(index: int, call: ToolCall) -> Iterator[dict[str, Any]]:
    function = {"name": call.name, "arguments": ""}
    yield {"index": index, "id": call.id or f"call_{index}", "type": "function", "function": function}
    for start in range(0, len(call.text), 12):
        yield {"index": index, "function": {"arguments": call.text[start : start + 12]}}


def responses(answer: Answer) -> Iterator[dict[str, Any]]:
    """The text of an answer as OpenAI's Responses stream it: as one message."""
    content = [{"type": "output_text", "text": answer.text, "annotations": []}]
    item = {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    given, made, cached = answer.usage or (0, 0, 0)
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": answer.thinking},
        "total_tokens": given + made,
    }
    yield {"type": "response.created", "response": {"id": "resp_test"}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
    for piece in answer.pieces:
        yield {"type": "response.output_text.delta", "item_id": "msg_test", "output_index": 0, "delta": piece}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_test", "output": [item], "usage": usage}}


def completion(answer: Answer, request: dict[str, Any]) -> dict[str, Any]:
    """The whole answer at once, for a request that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_whole_call(index, call) for index, call in enumerate(answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    usage = _usage(answer.usage or (0, 0, 0), answer.thinking)
    return {**_envelope(request, "chat.completion", [choice]), "usage": usage}


def _whole_call(index: int, call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.text}
    return {"id": call.id or f"call_{index}", "type": "function", "function": function}


def error_body(answer: Answer) -> dict[str, Any]:
    if answer.body is not None:
        return answer.body
    message = answer.message or f"the test answers with status {answer.status}"
    kind = "server_error" if answer.status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": answer.code}}


def _usage(counts: tuple[int, int, int], thinking: int) -> dict[str, Any]:
    given, made, cached = counts
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": cached},
        **({"completion_tokens_details": {"reasoning_tokens": thinking}} if thinking else {}),
    }


def _envelope(request: dict[str, Any], kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-test",
        "object": kind,
        "created": 1700000000,
        "model": request.get("model", "test-model"),
        "choices": choices,
    }
