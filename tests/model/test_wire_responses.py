"""OpenAI's Responses: bodies of requests that keep nothing at the provider, and replies as they stream."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendering import CALL, READ, STRICT, USER, body, fed, origin_of, reply, result, user

from tui_agent.model.client import CallChunk, EndReason, ReasoningChunk, TextChunk, UsageChunk
from tui_agent.model.event_stream import BrokenStream
from tui_agent.model.parts import CallPart, Message, Origin, Part, TextPart, ThinkingPart
from tui_agent.model.wires import reader as reading
from tui_agent.model.wires.responses import ResponsesReader

GPT_5 = "openai/gpt-5"
ENCRYPTED = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "opaque"}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
}
FUNCTION_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path": "a"}',
    "status": "completed",
}
REASONED = ThinkingPart("why", ENCRYPTED)
SAID = TextPart("Looking.", MESSAGE)
CALLED = CallPart("call_1", "read", '{"path": "a"}', FUNCTION_CALL)
ASKED = {"type": "message", "role": "user", "content": "Hello"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "text of a"}
FRESH_CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a"}'}


def fresh(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def sent(*messages: Message, model: str = GPT_5) -> list[dict[str, Any]]:
    return body(model, *messages)["input"]


def own(*parts: Part) -> Message:
    return reply(*parts, of=origin_of(GPT_5))


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_without_anything_optional() -> None:
    assert body("openai/gpt-4o") == {
        "model": "gpt-4o",
        "instructions": "Be brief.",
        "input": [ASKED],
        "stream": True,
        "store": False,
    }


def test_reasoning_is_asked_for_encrypted() -> None:
    made = body(GPT_5)
    assert made["include"] == ["reasoning.encrypted_content"]
    assert made["reasoning"] == {"effort": "medium", "summary": "auto"}
    assert made["store"] is False


LOW = {"reasoning": {"effort": "low", "summary": "auto"}}
NONE = {"reasoning": {"effort": "none"}}


@pytest.mark.parametrize(
    ("model", "options", "fields"),
    [
        (GPT_5, {"effort": "none"}, {"reasoning": {"effort": "minimal", "summary": "auto"}}),
        ("openai/gpt-5.1", {"effort": "none"}, NONE),
        ("openai/gpt-5.6-sol", {"effort": "max"}, {"reasoning": {"effort": "max", "summary": "auto"}}),
        (GPT_5, {"without": frozenset({"summary"})}, {"reasoning": {"effort": "medium"}}),
        (GPT_5, {"without": frozenset({"effort"})}, {}),
        (GPT_5, {"most": 99, "effort": "low"}, {**LOW, "max_output_tokens": 99}),
        ("openai/gpt-4o", {"temperature": 0.5, "effort": "max"}, {"temperature": 0.5}),
        ("openai/gpt-4o", {"session": "s"}, {"prompt_cache_key": "s"}),
        (GPT_5, {"temperature": 0.5, "effort": "high"}, {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("openai/gpt-5.1", {"temperature": 0.5, "effort": "none"}, {**NONE, "temperature": 0.5}),
        (
            "chatgpt/gpt-5.2",
            {"most": 99, "temperature": 0.5},
            {"reasoning": {"effort": "medium", "summary": "auto"}},
        ),
    ],
)
def test_fields_beside_the_input(model: str, options: dict[str, Any], fields: dict[str, Any]) -> None:
    made = body(model, **options)
    common = {"model", "instructions", "input", "stream", "store", "include"}
    assert {name: value for name, value in made.items() if name not in common} == fields


def test_functions_are_not_strict() -> None:
    bare = {"type": "function", "function": {"name": "list"}}
    parameters = READ["function"]["parameters"]
    assert body(GPT_5, tools=(READ, bare))["tools"] == [
        {
            "type": "function",
            "name": "read",
            "description": "Reads.",
            "parameters": parameters,
            "strict": False,
        },
        {
            "type": "function",
            "name": "list",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        },
    ]


@pytest.mark.parametrize(("shape", "strict"), [(STRICT, True), ({**STRICT, "required": []}, False)])
def test_a_schema_is_strict_if_it_is_closed(shape: dict[str, Any], strict: bool) -> None:
    form = {"type": "json_schema", "name": "reply", "schema": shape, "strict": strict}
    assert body(GPT_5, shape=shape)["text"] == {"format": form}


def test_items_go_back_unchanged_in_their_order() -> None:
    second = {**ENCRYPTED, "id": "rs_2"}
    parts = (REASONED, SAID, ThinkingPart("", second), CALLED)
    assert sent(USER, own(*parts), result()) == [ASKED, ENCRYPTED, MESSAGE, second, FUNCTION_CALL, OUTPUT]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    second = ThinkingPart("", {**ENCRYPTED, "id": "rs_2"})
    assert sent(USER, own(REASONED, SAID, second), user()) == [
        ASKED,
        ENCRYPTED,
        MESSAGE,
        {**ASKED, "content": "Go on"},
    ]
    assert sent(USER, own(REASONED), user()) == [ASKED, {**ASKED, "content": "Go on"}]


def test_reasoning_without_its_encrypted_content_is_left_out() -> None:
    plain = {name: value for name, value in ENCRYPTED.items() if name != "encrypted_content"}
    for thinking in (ThinkingPart("why", plain), ThinkingPart("why")):
        # what it led to is refused under its id without it
        expected = [ASKED, fresh("Looking."), FRESH_CALL, OUTPUT]
        assert sent(USER, own(thinking, SAID, CALLED), result()) == expected


def test_azure_gets_items_without_their_status() -> None:
    model = "azure/gpt-5.4"
    reasoned = ThinkingPart("why", {**ENCRYPTED, "status": "completed"})
    message = reply(reasoned, SAID, CALLED, of=origin_of(model))
    items = [{k: v for k, v in item.items() if k != "status"} for item in (ENCRYPTED, MESSAGE, FUNCTION_CALL)]
    assert sent(USER, message, result(), model=model) == [ASKED, *items, OUTPUT]


@pytest.mark.parametrize(
    ("part", "item"),
    [
        (CallPart("call_2", "read", '{"path": "a"}', FUNCTION_CALL), {**FRESH_CALL, "call_id": "call_2"}),
        (CallPart("call_1", "list", '{"path": "a"}', FUNCTION_CALL), {**FRESH_CALL, "name": "list"}),
        (CallPart("call_1", "read", "{}", FUNCTION_CALL), {**FRESH_CALL, "arguments": "{}"}),
        (CALLED, FUNCTION_CALL),
        (CALL, FRESH_CALL),
        (TextPart("Looked.", MESSAGE), fresh("Looked.")),
        (TextPart("Looking."), fresh("Looking.")),
        (TextPart("Looking.", {"content": "x"}), fresh("Looking.")),
        (SAID, MESSAGE),
    ],
)
def test_a_part_that_was_edited_is_rendered_anew(part: Part, item: dict[str, Any]) -> None:
    results = [result(part.id)] if isinstance(part, CallPart) else []
    assert sent(USER, own(REASONED, part), *results)[1:3] == [ENCRYPTED, item]


def test_another_models_reply_goes_out_without_its_items() -> None:
    message = reply(REASONED, SAID, CALLED, of=origin_of("openai/gpt-5.1"))
    assert sent(USER, message, result()) == [ASKED, fresh("Looking."), FRESH_CALL, OUTPUT]
    nowhere = reply(REASONED, SAID, CALLED, of=Origin())
    assert sent(USER, nowhere, result()) == [ASKED, fresh("Looking."), FRESH_CALL, OUTPUT]


def test_an_image_is_behind_the_words() -> None:
    picture = {**USER, "images": [{"media_type": "image/png", "data": "AAAA"}]}
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    assert sent(picture)[0]["content"] == [{"type": "input_text", "text": "Hello"}, image]
    assert sent({**picture, "content": ""})[0]["content"] == [image]


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────


def event(kind: str, index: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, **fields}


def done(index: Any, item: Any) -> dict[str, Any]:
    return event("output_item.done", index, item=item)


def completed(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": "completed", **response}}


def test_a_reply_in_pieces() -> None:
    reader = ResponsesReader()
    chunks = fed(
        reader,
        {"type": "response.created", "response": {}},
        event("output_item.added", item={"type": "reasoning", "id": "rs_1"}),
        event("reasoning_summary_part.added"),
        event("reasoning_summary_text.delta", delta="why"),
        event("reasoning_summary_part.added"),
        event("reasoning_summary_text.delta", delta="so"),
        done(0, ENCRYPTED),
        event("output_item.added", 1, item={**MESSAGE, "content": []}),
        event("output_text.delta", 1, delta="Look"),
        event("output_text.delta", 1, delta="ing."),
        done(1, MESSAGE),
        event("output_item.added", 2, item={**FUNCTION_CALL, "arguments": ""}),
        event("function_call_arguments.delta", 2, delta='{"path": '),
        event("function_call_arguments.delta", 2, delta='"a"}'),
        done(2, FUNCTION_CALL),
        completed(usage={"input_tokens": 10, "output_tokens": 7}),
    )
    assert [chunk for chunk in chunks if chunk != CallChunk(0)] == [
        ReasoningChunk("why"),
        ReasoningChunk("\n\n"),
        ReasoningChunk("so"),
        TextChunk("Look"),
        TextChunk("ing."),
        CallChunk(0, "call_1", "read"),
        CallChunk(0, arguments='{"path": '),
        CallChunk(0, arguments='"a"}'),
    ]
    assert reader.parts() == (ThinkingPart("why\n\nso", ENCRYPTED), SAID, CALLED)
    assert (reader.reason, reader.usage) == ("tool_calls", UsageChunk(10, 7))


@pytest.mark.parametrize("whole", [True, False], ids=["items", "completed"])
def test_a_reply_in_whole_items(whole: bool) -> None:
    reader = ResponsesReader()
    summary = {**ENCRYPTED, "summary": [{"type": "summary_text", "text": "why"}]}
    output = [summary, MESSAGE, FUNCTION_CALL]
    events = [done(index, item) for index, item in enumerate(output)] if whole else []
    chunks = fed(reader, *events, completed(output=output))
    assert chunks == [
        ReasoningChunk("why"),
        TextChunk("Looking."),
        CallChunk(0, "call_1", "read", '{"path": "a"}'),
    ]
    assert reader.parts() == (ThinkingPart("why", summary), SAID, CALLED)


def test_what_was_read_goes_back_as_it_came() -> None:
    reader = ResponsesReader()
    items = [ENCRYPTED, MESSAGE, FUNCTION_CALL]
    fed(reader, *(done(index, item) for index, item in enumerate(items)), completed())
    assert sent(USER, own(*reader.parts()), result())[1:4] == items


def test_fields_without_a_value_are_not_kept() -> None:
    reader = ResponsesReader()
    fed(reader, done(0, {**ENCRYPTED, "status": None, "content": None}))
    assert reader.parts() == (ThinkingPart("", ENCRYPTED),)


def test_items_are_known_by_their_index_if_their_ids_differ() -> None:
    reader = ResponsesReader()
    fed(
        reader,
        event("output_item.added", 0, item={**MESSAGE, "id": "one"}),
        event("output_text.delta", 0, item_id="two", delta="Look"),
        event("output_text.delta", 0, item_id="three", delta="ing."),
        done(0, {**MESSAGE, "id": "four"}),
    )
    assert reader.parts() == (TextPart("Looking.", {**MESSAGE, "id": "four"}),)


def test_items_without_an_index_are_known_by_their_ids() -> None:
    reader = ResponsesReader()
    fed(
        reader,
        event("output_text.delta", None, item_id="a", delta="1"),
        event("output_text.delta", "x", item_id="b", delta="2"),
        event("output_text.delta", -1, item_id="a", delta="1"),
    )
    assert reader.parts() == (TextPart("11"), TextPart("2"))


def test_items_are_in_the_order_of_their_indexes() -> None:
    reader = ResponsesReader()
    chunks = fed(reader, done(2, FUNCTION_CALL), done(0, ENCRYPTED), done(1, MESSAGE))
    assert reader.parts() == (ThinkingPart("", ENCRYPTED), SAID, CALLED)
    assert chunks == [CallChunk(0, "call_1", "read", '{"path": "a"}'), TextChunk("Looking.")]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({}, "stop"),
        ({"output": [FUNCTION_CALL]}, "tool_calls"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        ({"status": "incomplete"}, "length"),
        ({"incomplete_details": {"reason": "new_reason"}}, "length"),
    ],
)
def test_reasons(response: dict[str, Any], reason: EndReason) -> None:
    reader = ResponsesReader()
    assert reader.reason is None
    reader.read(completed(**response))
    assert reader.reason == reason


def test_a_refusal_is_no_text() -> None:
    refusal = {**MESSAGE, "content": [{"type": "refusal", "refusal": "I cannot."}]}
    for events in (
        [event("refusal.delta", delta="I "), event("refusal.delta", delta="cannot.")],
        [done(0, refusal)],
    ):
        reader = ResponsesReader()
        assert fed(reader, *events) == []
        assert (reader.refusal, reader.has_content, reader.parts()) == ("I cannot.", False, ())


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 90, "cache_write_tokens": 10},
                "output_tokens": 9,
                "output_tokens_details": {"reasoning_tokens": 5},
            },
            UsageChunk(100, 9, 90, written=10, thinking=5),
        ),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 90}}, UsageChunk(10, 0, 10)),
        ({"input_tokens": -1, "output_tokens": "x", "input_tokens_details": 3}, UsageChunk(0, 0)),
        (
            {"output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 5}},
            UsageChunk(0, 2, thinking=2),
        ),
    ],
)
def test_usage(usage: dict[str, Any], counted: UsageChunk) -> None:
    reader = ResponsesReader()
    reader.read(completed(usage=usage))
    assert reader.usage == counted


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"type": "response.new.event", "delta": "x"},
        {"type": 3},
        event("output_item.added", item="x"),
        event("output_item.added", 9, item={"type": "web_search_call"}),
        event("output_text.delta", delta=3),
        event("output_text.delta", "0", delta=None),
        event("refusal.delta", delta=3),
        event("function_call_arguments.delta", 5, delta="{}"),
        event("reasoning_summary_part.added"),
        done(0, None),
        done(0, {"type": "message", "content": "x"}),
        done(0, {"type": "image_generation_call"}),
    ],
)
def test_events_that_are_unknown_or_malformed_say_nothing(bad: dict[str, Any]) -> None:
    reader = ResponsesReader()
    assert reader.read(bad) == [] and reader.parts() == () and not reader.has_content
    assert fed(reader, event("output_text.delta", 3, delta="x")) == [TextChunk("x")], "what follows is read"


@pytest.mark.parametrize("response", [None, 3, {"output": "x", "usage": 3}, {"output": [3, None]}])
def test_an_end_that_is_malformed_is_an_end(response: Any) -> None:
    reader = ResponsesReader()
    assert reader.read({"type": "response.completed", "response": response}) == []
    assert reader.reason == "stop" and reader.usage is None


def test_an_endless_encrypted_item_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NATIVE", 1_000)
    long = {**ENCRYPTED, "encrypted_content": "e" * 600}
    with pytest.raises(BrokenStream, match="more than 1,000 letters"):
        fed(ResponsesReader(), done(0, long), done(1, long))
    fed(ResponsesReader(), done(0, long))
