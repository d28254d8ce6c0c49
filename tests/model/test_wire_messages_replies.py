"""Anthropic's Messages: replies as they stream, and malformed ones."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendering import fed

from tui_agent.model.client import CallChunk, EndReason, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.event_stream import BrokenStream
from tui_agent.model.parts import CallPart, TextPart, ThinkingPart
from tui_agent.model.wires import reader as reading
from tui_agent.model.wires.messages import MessageReader

BLOCK = {"type": "thinking", "thinking": "why", "signature": "sig"}
REDACTED = {"type": "redacted_thinking", "data": "opaque"}
SIGNED = ThinkingPart("why", BLOCK)


def start(index: Any, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


THOUGHT = [
    start(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, "thinking_delta", thinking="wh"),
    delta(0, "thinking_delta", thinking="y"),
    delta(0, "signature_delta", signature="si"),
    delta(0, "signature_delta", signature="g"),
    stop(0),
]


def test_a_reply_in_blocks() -> None:
    reader = MessageReader()
    chunks = fed(
        reader,
        {"type": "message_start", "message": {"usage": {"input_tokens": 10}}},
        *THOUGHT,
        start(1, {"type": "text", "text": ""}),
        delta(1, "text_delta", text="Looking."),
        stop(1),
        start(2, REDACTED),
        stop(2),
        start(3, {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}),
        delta(3, "input_json_delta", partial_json='{"path": '),
        delta(3, "input_json_delta", partial_json='"a"}'),
        stop(3),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )
    assert chunks == [
        ReasoningChunk("wh"),
        ReasoningChunk("y"),
        TextChunk("Looking."),
        CallChunk(0, "toolu_1", "read"),
        CallChunk(0, arguments='{"path": '),
        CallChunk(0, arguments='"a"}'),
    ]
    assert reader.parts() == (
        SIGNED,
        TextPart("Looking."),
        ThinkingPart("", REDACTED),
        CallPart("toolu_1", "read", '{"path": "a"}'),
    )
    assert reader.reason == "tool_calls" and reader.has_content
    assert reader.usage == UsageChunk(10, 7)


def test_the_input_of_a_call_may_come_whole() -> None:
    reader = MessageReader()
    fed(reader, start(0, {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "a"}}), stop(0))
    assert reader.parts() == (CallPart("c", "read", '{"path": "a"}'),)


def test_thinking_that_was_cut_before_its_end_is_not_kept_as_a_block() -> None:
    reader = MessageReader()
    fed(reader, *THOUGHT[:4])
    assert reader.parts() == (ThinkingPart("why"),)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("a_new_word", "stop"),
        (None, None),
        (3, None),
    ],
)
def test_reasons(word: Any, reason: EndReason | None) -> None:
    reader = MessageReader()
    reader.read({"type": "message_delta", "delta": {"stop_reason": word}})
    assert reader.reason == reason


def test_usage_is_the_newest_of_each_count() -> None:
    reader = MessageReader()
    started = {
        "input_tokens": 100,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "output_tokens": 1,
    }
    ended = {"output_tokens": 50, "input_tokens": None, "output_tokens_details": {"thinking_tokens": 40}}
    fed(
        reader,
        {"type": "message_start", "message": {"usage": started}},
        {"type": "message_delta", "delta": {}, "usage": ended},
    )
    assert reader.usage == UsageChunk(150, 50, 20, written=30, written_long=20, thinking=40)


@pytest.mark.parametrize("bad", [-5, "many", None, True, 1e13, float("nan"), {}, []])
def test_a_count_that_cannot_be_one_is_none(bad: Any) -> None:
    reader = MessageReader()
    usage = {"input_tokens": bad, "output_tokens": bad, "cache_read_input_tokens": bad, "cache_creation": bad}
    reader.read({"type": "message_delta", "delta": {}, "usage": usage})
    assert reader.usage == UsageChunk(0, 0)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "ping"},
        {"type": 3},
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_delta", "index": None, "delta": "x"},
        {"type": "message_start", "message": None},
        {"type": "message_delta", "delta": None, "usage": None},
        start(0, {"type": "server_tool_use", "id": "s", "name": "search"}),
        start("x", {"type": "text", "text": None}),
        start(-3, {"type": "thinking", "thinking": 3, "signature": 3}),
        delta(0, "citations_delta", citation={}),
        delta(7, "input_json_delta", partial_json="{}"),
        delta(0, "text_delta", text=3),
        delta(0, "signature_delta", signature={}),
        stop(99),
    ],
)
def test_events_that_are_unknown_or_malformed_say_nothing(event: dict[str, Any]) -> None:
    reader = MessageReader()
    assert reader.read(event) == [] and reader.parts() == ()
    assert fed(reader, start(0, {"type": "text", "text": "x"})) == [TextChunk("x")], "what follows is read"


def test_blocks_are_in_the_order_of_their_indexes() -> None:
    reader = MessageReader()
    fed(
        reader,
        start(2, {"type": "text", "text": "third"}),
        start(0, {"type": "thinking", "thinking": "first", "signature": "s"}),
        start(1, {"type": "text", "text": "second"}),
        stop(0),
    )
    assert [getattr(part, "text", "") for part in reader.parts()] == ["first", "second", "third"]


def test_blocks_with_one_index_are_kept_apart() -> None:
    reader = MessageReader()
    fed(
        reader,
        *THOUGHT,
        start(0, {"type": "text", "text": ""}),
        delta(0, "text_delta", text="Looking."),
        stop(0),
        start(0, {"type": "tool_use", "id": "c1", "name": "read", "input": {}}),
        delta(0, "input_json_delta", partial_json="{}"),
        start(0, {"type": "tool_use", "id": "c2", "name": "write", "input": {"a": 1}}),
    )
    assert reader.parts() == (
        SIGNED,
        TextPart("Looking."),
        CallPart("c1", "read", "{}"),
        CallPart("c2", "write", '{"a": 1}'),
    )


def test_an_endless_signature_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NATIVE", 1_000)
    reader = MessageReader()
    fed(reader, start(0, {"type": "thinking", "thinking": "x", "signature": ""}))
    fed(reader, *[delta(0, "signature_delta", signature="s" * 100)] * 10)
    with pytest.raises(BrokenStream, match="more than 1,000 letters"):
        reader.read(delta(0, "signature_delta", signature="s"))


def test_endless_blocks_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PARTS", 10)
    reader = MessageReader()
    fed(reader, *(start(number, {"type": "text", "text": "x"}) for number in range(10)))
    with pytest.raises(BrokenStream, match="more than 10 parts"):
        reader.read(start(10, {"type": "text", "text": "x"}))


def test_no_more_is_thought_than_came() -> None:
    reader = MessageReader()
    usage = {"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 500}}
    fed(reader, {"type": "message_delta", "delta": {}, "usage": usage})
    assert reader.usage == UsageChunk(9, 5, thinking=5)
