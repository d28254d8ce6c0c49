"""Chat completions: replies as they stream, and malformed ones."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendering import fed

from tui_agent.model.client import CallChunk, EndReason, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.event_stream import BrokenStream
from tui_agent.model.parts import CallPart, TextPart, ThinkingPart
from tui_agent.model.rules import Rules, rules_of
from tui_agent.model.wires import reader as reading
from tui_agent.model.wires.chat import ChatReader


def piece(finish: Any = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(
    index: Any = 0, id: Any = None, name: Any = None, arguments: Any = None, **more: Any
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return piece(tool_calls=[{"index": index, "id": id, "type": "function", "function": function, **more}])


def test_a_reply_in_pieces() -> None:
    reader = ChatReader(Rules())
    chunks = fed(
        reader,
        piece(role="assistant", content=""),
        piece(reasoning_content="w"),
        piece(reasoning="hy"),
        piece(content="Look"),
        piece(content="ing."),
        call(0, "c1", "read", ""),
        call(0, arguments='{"path": "a"}'),
        call(1, "c2", "list", "{}"),
        piece("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 7}},
    )
    assert chunks == [
        ReasoningChunk("w"),
        ReasoningChunk("hy"),
        TextChunk("Look"),
        TextChunk("ing."),
        CallChunk(0, "c1", "read"),
        CallChunk(0, arguments='{"path": "a"}'),
        CallChunk(1, "c2", "list", "{}"),
    ]
    assert reader.parts() == (
        ThinkingPart("why"),
        TextPart("Looking."),
        CallPart("c1", "read", '{"path": "a"}'),
        CallPart("c2", "list", "{}"),
    )
    assert (reader.reason, reader.usage) == ("tool_calls", UsageChunk(10, 7))


def test_thinking_of_mistral_comes_in_parts_of_the_content() -> None:
    reader = ChatReader(Rules())
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}
    fed(reader, piece(content=[thinking, {"type": "text", "text": "x"}]), piece(content="y"))
    assert reader.parts() == (ThinkingPart("why"), TextPart("xy"))


def test_fragments_of_reasoning_details_are_merged() -> None:
    reader = ChatReader(Rules())
    text = {"type": "reasoning.text", "index": 0, "format": "f"}
    chunks = fed(
        reader,
        piece(reasoning="w", reasoning_details=[{**text, "text": "w"}]),
        piece(reasoning="hy", reasoning_details=[{**text, "text": "hy", "signature": None}]),
        piece(reasoning_details=[{**text, "text": "", "signature": "sig"}]),
        piece(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "id": "rs_1", "data": "one"}]),
        piece(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "id": "rs_2", "data": "two"}]),
        piece(reasoning_details=[{"type": "reasoning.summary", "index": 2, "summary": "so"}]),
        piece(content="x"),
    )
    assert chunks == [ReasoningChunk("w"), ReasoningChunk("hy"), ReasoningChunk("so"), TextChunk("x")]
    thinking, words = reader.parts()
    assert words == TextPart("x")
    assert thinking == ThinkingPart(
        "whyso",
        [
            {**text, "text": "why", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "id": "rs_1", "data": "one"},
            {"type": "reasoning.encrypted", "index": 1, "id": "rs_2", "data": "two"},
            {"type": "reasoning.summary", "index": 2, "summary": "so"},
        ],
    )


def test_long_thinking_in_details_is_no_endless_signature() -> None:
    reader = ChatReader(Rules())
    fragment = piece(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "four"}])
    fed(reader, *[fragment] * 20_000)
    (thinking,) = reader.parts()
    assert (
        isinstance(thinking, ThinkingPart) and thinking.native[0]["text"] == thinking.text == "four" * 20_000
    )


def test_an_entry_is_compared_with_the_newest_of_its_kind_only() -> None:
    looks = 0

    class Entry(dict[str, Any]):
        def get(self, *args: Any) -> Any:
            nonlocal looks
            looks += 1
            return super().get(*args)

    entries = [Entry(type="reasoning.encrypted", data=str(number)) for number in range(500)]
    reader = ChatReader(Rules())
    fed(reader, piece(reasoning_details=entries))
    (thinking,) = reader.parts()
    assert thinking == ThinkingPart("", entries)
    assert looks < 10 * len(entries)


def test_an_endless_encrypted_item_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NATIVE", 1_000)
    reader = ChatReader(Rules())
    fragment = piece(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "d" * 300}])
    with pytest.raises(BrokenStream, match="more than 1,000 letters"):
        fed(reader, *[fragment] * 4)


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ([call(0, "a", "read", "{"), call(0, "a", None, "}")], [("a", "read", "{}")]),
        (
            [call(0, "a", "read", "{}"), call(0, "b", "list", "{}")],
            [("a", "read", "{}"), ("b", "list", "{}")],
        ),
        (
            [call(None, "a", "read", "{}"), call(None, "b", "list", "{}")],
            [("a", "read", "{}"), ("b", "list", "{}")],
        ),
        ([call(0, None, "read", "{"), call(0, "a", None, "}")], [("a", "read", "{}")]),
        (
            [call(5, "a", "read", "{}"), call(2, "b", "list", "{}")],
            [("a", "read", "{}"), ("b", "list", "{}")],
        ),
        ([call(0, "a", "read", {"path": "ä"})], [("a", "read", '{"path": "ä"}')]),
        ([call([], "a", "read", "{}"), call({}, "a", None, None)], [("a", "read", "{}")]),
        ([call(0, 7, 8, 9)], [("", "", "")]),
        ([call(0, "a", "read", "{}"), call(0, "", "", "")], [("a", "read", "{}")]),
    ],
)
def test_calls_however_they_are_numbered(
    events: list[dict[str, Any]], calls: list[tuple[str, str, str]]
) -> None:
    reader = ChatReader(Rules())
    chunks = fed(reader, *events)
    assert [
        (part.id, part.name, part.arguments) for part in reader.parts() if isinstance(part, CallPart)
    ] == calls
    for index, (_, _, arguments) in enumerate(calls):
        pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == index]
        assert "".join(chunk.arguments for chunk in pieces) == arguments


def test_a_signature_beside_a_call_is_kept_with_it() -> None:
    extra = {"google": {"thought_signature": "s"}}
    reader = ChatReader(Rules())
    fed(reader, call(0, "a", "read", "{}", extra_content=extra))
    assert reader.parts() == (CallPart("a", "read", "{}", {"extra_content": extra}),)


def test_a_refusal_is_no_text() -> None:
    reader = ChatReader(Rules())
    assert fed(reader, piece(refusal="I can"), piece("stop", refusal="not.")) == []
    assert (reader.refusal, reader.has_content, reader.reason) == ("I cannot.", False, "stop")


@pytest.mark.parametrize(
    ("word", "reason", "failure"),
    [
        ("stop", "stop", ""),
        ("tool_calls", "tool_calls", ""),
        ("function_call", "tool_calls", ""),
        ("length", "length", ""),
        ("content_filter", "refused", ""),
        ("eos", "stop", ""),
        ("", None, ""),
        (None, None, ""),
        (3, None, ""),
        ("error", None, "error"),
        ("network_error", None, "network_error"),
        ("insufficient_system_resource", None, "insufficient_system_resource"),
    ],
)
def test_reasons(word: Any, reason: EndReason | None, failure: str) -> None:
    reader = ChatReader(Rules())
    reader.read(piece(word))
    assert (reader.reason, reader.failure) == (reason, failure)


def usage(given: Any = 100, made: Any = 9, cached: Any = 0, thinking: Any = 0, **more: Any) -> dict[str, Any]:
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thinking},
        **more,
    }


OWN_KEY = {"is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}


@pytest.mark.parametrize(
    ("provider", "given", "counted"),
    [
        ("openai", usage(cached=90), UsageChunk(100, 9, 90)),
        ("openai", usage(thinking=7), UsageChunk(100, 9, thinking=7)),
        ("openai", usage(thinking=70), UsageChunk(100, 9, thinking=9)),
        ("openai", usage(10, cached=90), UsageChunk(10, 9, 10)),
        ("deepseek", usage(prompt_cache_hit_tokens=64), UsageChunk(100, 9, 64)),
        ("moonshot", usage(cached_tokens=64), UsageChunk(100, 9, 64)),
        ("openrouter", usage(cost=0.25), UsageChunk(100, 9, cost=0.25)),
        ("openrouter", usage(cost=0.1, **OWN_KEY), UsageChunk(100, 9, cost=0.6)),
        (
            "openrouter",
            usage(prompt_tokens_details={"cache_write_tokens": 50}),
            UsageChunk(100, 9, written=50),
        ),
        ("xai", usage(thinking=20, total_tokens=129), UsageChunk(100, 29, thinking=20)),
        ("xai", usage(thinking=20), UsageChunk(100, 29, thinking=20)),
        ("openai", usage(-5, "x", prompt_tokens_details=[], cost=-1), UsageChunk(0, 0)),
        ("openai", usage(True, 1e30, cost=True), UsageChunk(0, 0)),
    ],
)
def test_usage(provider: str, given: dict[str, Any], counted: UsageChunk) -> None:
    reader = ChatReader(rules_of(provider))
    reader.read({"choices": [], "usage": given})
    assert reader.usage == counted


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 3, "reasoning": {}, "tool_calls": "x", "refusal": 3}}]},
        {"choices": [], "usage": "many"},
        {"prompt_progress": {"processed": "x"}},
        piece(content=[{"type": "audio"}, "x", {"type": "thinking", "thinking": 3}]),
        piece(reasoning_details=["x", 3]),
    ],
)
def test_events_that_are_unknown_or_malformed_say_nothing(event: dict[str, Any]) -> None:
    reader = ChatReader(Rules())
    assert reader.read(event) == [] and reader.parts() == () and reader.usage is None
    assert fed(reader, piece(content="x")) == [TextChunk("x")], "what follows is read"


def test_halves_of_a_character_wait_for_each_other() -> None:
    reader = ChatReader(Rules())
    chunks = fed(reader, piece(content="a\ud83d"), piece(content="\ude00b"), piece(content="\ude00"))
    assert chunks == [TextChunk("a"), TextChunk("😀b"), TextChunk("\ufffd")]
    assert reader.parts() == (TextPart("a😀b\ufffd"),)


def test_no_more_is_written_than_was_sent() -> None:
    reader = ChatReader(Rules())
    details = {"cached_tokens": 8, "cache_write_tokens": 50}
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": details}
    fed(reader, {"choices": [], "usage": usage})
    assert reader.usage == UsageChunk(10, 1, 8, written=10)
