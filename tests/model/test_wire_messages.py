"""Anthropic's Messages: bodies of requests, with thinking where it is valid."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendering import (
    CALL,
    READ,
    STRICT,
    SYSTEM,
    USER,
    body,
    origin_of,
    rendered,
    reply,
    result,
    user,
)

from tui_agent.model.parts import CallPart, Message, TextPart, ThinkingPart
from tui_agent.model.wires.messages import accepted_schema
from tui_agent.settings.schema import Effort

SONNET = "anthropic/claude-sonnet-4-5"
ADAPTIVE = "anthropic/claude-opus-4-6"
BOUND = "anthropic/claude-opus-5-5"
BLOCK = {"type": "thinking", "thinking": "why", "signature": "sig"}
REDACTED = {"type": "redacted_thinking", "data": "opaque"}
SIGNED = ThinkingPart("why", BLOCK)


def contents(model: str, *messages: Message, **options: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """The messages of a body as (role, blocks without cache marks)."""
    sent = body(model, *messages, **options)["messages"]
    return [
        (
            message["role"],
            [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]],
        )
        for message in sent
    ]


def test_a_body_without_anything_optional() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body("anthropic/not-yet-known", USER) == {
        "model": "not-yet-known",
        "max_tokens": 8_192,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    }
    assert body("anthropic/not-yet-known")["system"] == [{"type": "text", "text": "Be brief."} | mark]


def test_a_known_model_may_write_its_longest_reply() -> None:
    assert body(SONNET)["max_tokens"] == 64_000
    assert body(SONNET, most=99)["max_tokens"] == 99


def test_functions_have_their_schemas() -> None:
    bare = {"type": "function", "function": {"name": "list"}}
    function = READ["function"]
    assert body(SONNET, tools=(READ, bare))["tools"] == [
        {"name": "read", "description": "Reads.", "input_schema": function["parameters"]},
        {"name": "list", "input_schema": {"type": "object"}},
    ]


def test_the_order_of_thinking_text_and_calls_is_kept() -> None:
    own = origin_of(SONNET)
    second = CallPart("call_2", "read", "{}")
    parts = (SIGNED, TextPart("One."), ThinkingPart("", REDACTED), CALL, TextPart("Two."), second)
    messages = (SYSTEM, USER, reply(*parts, of=own), result(), result("call_2", ""), user())
    assert contents(SONNET, *messages) == [
        ("user", [{"type": "text", "text": "Hello"}]),
        (
            "assistant",
            [
                BLOCK,
                {"type": "text", "text": "One."},
                REDACTED,
                {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}},
                {"type": "text", "text": "Two."},
                {"type": "tool_use", "id": "call_2", "name": "read", "input": {}},
            ],
        ),
        (
            "user",
            [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "text of a"},
                {"type": "tool_result", "tool_use_id": "call_2"},
                {"type": "text", "text": "Go on"},
            ],
        ),
    ]


def test_thinking_without_a_signature_and_blank_text_are_left_out() -> None:
    message = reply(ThinkingPart("cut"), TextPart(" \n"), TextPart("x"), of=origin_of(SONNET))
    assert contents(SONNET, SYSTEM, USER, message)[1] == ("assistant", [{"type": "text", "text": "x"}])


def test_turns_of_one_side_in_a_row_are_one_message() -> None:
    sent = contents(SONNET, USER, user(), reply(TextPart("a")), reply(TextPart("b")), user("x"))
    assert [(role, [block["text"] for block in blocks]) for role, blocks in sent] == [
        ("user", ["Hello", "Go on"]),
        ("assistant", ["a", "b"]),
        ("user", ["x"]),
    ]


@pytest.mark.parametrize("arguments", ["", "[1]", "{broken", "null", "[" * 100_000])
def test_arguments_that_are_not_an_object_become_an_empty_one(arguments: str) -> None:
    message = reply(CallPart("c", "read", arguments))
    block = contents(SONNET, USER, message, result("c"))[1][1][0]
    assert block["input"] == {}


def test_an_image_is_behind_the_words() -> None:
    image = {"media_type": "image/png", "data": "AAAA"}
    source = {"type": "base64", **image}
    sent = contents(SONNET, {**USER, "images": [image]})
    assert sent == [("user", [{"type": "text", "text": "Hello"}, {"type": "image", "source": source}])]


@pytest.mark.parametrize(
    ("effort", "temperature", "fields"),
    [
        ("auto", 0.5, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("none", 0.5, {"thinking": {"type": "disabled"}, "temperature": 0.5}),
        ("max", None, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
    ],
)
def test_effort_and_temperature(effort: Effort, temperature: float | None, fields: dict[str, Any]) -> None:
    sent = body(ADAPTIVE, effort=effort, temperature=temperature)
    assert {
        name: sent[name] for name in ("thinking", "output_config", "temperature") if name in sent
    } == fields


def test_effort_that_was_refused_is_left_out() -> None:
    sent = body(ADAPTIVE, effort="max", without=frozenset({"effort"}))
    assert not {"thinking", "output_config"} & set(sent)


def test_a_schema_is_beside_the_effort_in_the_output_config() -> None:
    shape = {**STRICT, "properties": {"a": {"type": "string", "minLength": 1}}}
    assert body(ADAPTIVE, shape=shape)["output_config"] == {
        "effort": "high",
        "format": {"type": "json_schema", "schema": STRICT},
    }


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        ({**INTEGER, "minimum": 0, "maximum": 9}, INTEGER),
        (
            {"type": "array", "items": {**TEXT, "pattern": "x"}, "maxItems": 3},
            {"type": "array", "items": TEXT},
        ),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"enum": ["a", None]}),
        ({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["a"]}),
        (
            {
                "properties": {"pattern": {**TEXT, "pattern": "x"}, "maximum": INTEGER},
                "required": ["pattern"],
            },
            {"properties": {"pattern": TEXT, "maximum": INTEGER}, "required": ["pattern"]},
        ),
        ({"anyOf": [{**INTEGER, "multipleOf": 2}, {"type": "null"}]}, {"anyOf": [INTEGER, {"type": "null"}]}),
    ],
)
def test_a_schema_loses_the_keywords_that_are_refused_and_no_property(given: Any, accepted: Any) -> None:
    assert accepted_schema(given) == accepted


def test_a_fixed_budget_is_left_out_within_calls_that_began_without_thinking() -> None:
    own = origin_of(SONNET)
    thought, silent = reply(SIGNED, CALL, of=own), reply(TextPart("x"), CALL, of=own)
    budget = {"type": "enabled", "budget_tokens": 31_999}
    assert body(SONNET, SYSTEM, USER, thought, result())["thinking"] == budget
    assert "thinking" not in body(SONNET, SYSTEM, USER, silent, result())
    assert body(SONNET, SYSTEM, USER, silent, result(), user())["thinking"] == budget
    foreign = reply(SIGNED, CALL, of=origin_of(ADAPTIVE.replace("opus-4-6", "opus-5")))
    assert "thinking" not in body(SONNET, SYSTEM, USER, foreign, result())
    assert "thinking" in body(ADAPTIVE, SYSTEM, USER, silent, result()), "adaptive thinking demands none"


# ── thinking that is bound to all that precedes it ───────────────────────────────────────────────────────

TOOLS = (READ,)
FIRST = (SYSTEM, USER)


def history(model: str = BOUND) -> tuple[Message, ...]:
    """Two replies with thinking, each with the origin that its request gave it."""
    one = rendered(model, *FIRST, tools=TOOLS)[1]
    so_far = (*FIRST, reply(SIGNED, CALL, of=one), result())
    two = rendered(model, *so_far, tools=TOOLS)[1]
    return (*so_far, reply(ThinkingPart("2", {**BLOCK, "thinking": "2"}), TextPart("Done."), of=two))


def kept(*messages: Message, model: str = BOUND, **options: Any) -> list[str]:
    """The thinking that goes back."""
    sent = contents(model, *messages, **{"tools": TOOLS, **options})
    return [block["thinking"] for _, blocks in sent for block in blocks if block["type"] == "thinking"]


def test_bound_thinking_goes_back_if_nothing_before_it_changed() -> None:
    assert kept(*history(), user()) == ["why", "2"]
    assert kept(*history(), user(), reply(TextPart("x")), user()) == ["why", "2"]


def test_cache_marks_and_settings_change_nothing() -> None:
    long: dict[str, Any] = {
        "cache": "long",
        "effort": "max",
        "most": 9_000,
        "temperature": 0.5,
        "session": "s",
    }
    assert kept(*history(), user(), **long) == ["why", "2"]


OTHER_READ = {"type": "function", "function": {**READ["function"], "description": "Reads a file."}}
CHANGES = {
    "system": (lambda talk: ({**SYSTEM, "content": "Be kind."}, *talk[1:]), TOOLS, []),
    "tools": (lambda talk: talk, (OTHER_READ,), []),
    "no tools": (lambda talk: talk, (), []),
    "earlier message": (lambda talk: (SYSTEM, user("Hi"), *talk[2:]), TOOLS, []),
    "a message more": (lambda talk: (SYSTEM, USER, user(), *talk[2:]), TOOLS, []),
    "result": (lambda talk: (*talk[:3], result(content="[left out]"), *talk[4:]), TOOLS, ["why"]),
    "no result": (lambda talk: (*talk[:3], *talk[4:]), TOOLS, ["why"]),
    "reply": (lambda talk: (*talk[:2], reply(CALL), *talk[3:]), TOOLS, []),
}


@pytest.mark.parametrize("change", CHANGES)
def test_bound_thinking_behind_a_change_is_left_out(change: str) -> None:
    make, tools, left = CHANGES[change]
    assert kept(*make(history()), user(), tools=tools) == left


@pytest.mark.parametrize("change", CHANGES)
def test_thinking_of_other_models_is_bound_to_nothing(change: str) -> None:
    make, tools, _ = CHANGES[change]
    changed = make(history(SONNET))
    assert kept(*changed, user(), model=SONNET, tools=tools)[-1] == "2"


def test_thinking_behind_thinking_that_is_left_out_is_left_out_too() -> None:
    talk = history()
    unknown = {**talk[2], "origin": {**talk[2]["origin"], "prefix": "another"}}
    assert kept(*talk[:2], unknown, *talk[3:], user()) == []


def test_a_request_has_a_digest_only_for_models_that_bind_their_thinking() -> None:
    assert origin_of(SONNET).prefix == ""
    assert origin_of(BOUND).prefix
    assert origin_of(BOUND, *FIRST).prefix != origin_of(BOUND, *FIRST, user()).prefix


def test_arguments_that_are_nested_deeply_bind_thinking_as_others_do() -> None:
    nested = CallPart("call_1", "read", '{"a": ' + "[" * 600 + "]" * 600 + "}")
    first = rendered(BOUND, USER)[1]
    told = (USER, reply(SIGNED, nested, of=first), result())
    assert contents(BOUND, *told)[1][1][0] == BLOCK
    assert len(rendered(BOUND, *told)[1].prefix) == 32
