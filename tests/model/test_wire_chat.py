"""Chat completions: bodies of requests as each provider wants them."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendering import (
    CALL,
    ENVIRONMENT,
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

from tui_agent.model.model_table import route
from tui_agent.model.parts import CallPart, Message, TextPart, ThinkingPart
from tui_agent.model.wires.chat import NO_THINKING
from tui_agent.settings.schema import Effort

SERVER = "lm_studio/x"
DEEPSEEK = "deepseek/deepseek-v4-pro"
KIMI = "moonshot/kimi-k2.5"
ROUTED = "openrouter/deepseek/deepseek-v4-pro"
SENT_CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
WHY = ThinkingPart("why")


def sent(model: str, *messages: Message, **options: Any) -> list[dict[str, Any]]:
    return body(model, *messages, **options)["messages"]


def answered(model: str, *parts: Any, of: str = "") -> dict[str, Any]:
    """A reply with these parts as it is sent, with results of its calls; `of` is the model that made it."""
    message = reply(*parts, of=origin_of(of or model))
    results = [result(part.id) for part in parts if isinstance(part, CallPart)]
    return sent(model, SYSTEM, USER, message, *results)[2]


def test_a_body_without_anything_optional() -> None:
    assert body(SERVER) == {
        "model": "x",
        "messages": [SYSTEM, USER],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in body("mistral/mistral-small-2506"), "where the field is refused"


def test_content_of_a_reply_of_calls_alone_is_null() -> None:
    assert answered(SERVER, CALL) == {"role": "assistant", "content": None, "tool_calls": [SENT_CALL]}
    both = answered(SERVER, TextPart("One. "), CALL, TextPart("Two."))
    assert both == {"role": "assistant", "content": "One. Two.", "tool_calls": [SENT_CALL]}
    assert sent(SERVER, USER, reply(CALL), result())[2] == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "text of a",
    }


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (DEEPSEEK, "reasoning_content"),
        (KIMI, "reasoning_content"),
        ("zai/glm-4.6", "reasoning_content"),
        ("xai/grok-4", "reasoning_content"),
        ("groq/openai/gpt-oss-120b", "reasoning"),
    ],
)
def test_thinking_goes_back_in_the_providers_field(model: str, field: str) -> None:
    message = answered(model, ThinkingPart("w"), ThinkingPart("hy"), TextPart("x"), CALL)
    assert (message[field], message["content"]) == ("why", "x")


@pytest.mark.parametrize("model", [SERVER, "openai/test-model", "deepseek/deepseek-chat"])
def test_thinking_stays_here_if_the_provider_has_no_field_for_it(model: str) -> None:
    made = route(model, {**ENVIRONMENT, "OPENAI_API_BASE": "http://127.0.0.1:9/v1"})
    assert made is not None and made.wire == "chat"
    own = rendered(model, made=made)[1]
    (_, message) = rendered(model, USER, reply(WHY, TextPart("x"), of=own), made=made)[0]["messages"]
    assert message == {"role": "assistant", "content": "x"}


@pytest.mark.parametrize("model", [DEEPSEEK, KIMI])
def test_a_provider_that_demands_thinking_beside_calls_gets_a_placeholder(model: str) -> None:
    assert answered(model, CALL)["reasoning_content"] == NO_THINKING
    assert answered(model, WHY, CALL, of=SERVER)["reasoning_content"] == NO_THINKING, "in place of another's"
    assert "reasoning_content" not in answered(model, TextPart("x"))
    assert "reasoning_content" not in answered("zai/glm-4.6", CALL)


def test_thinking_of_mistral_is_a_part_of_the_content() -> None:
    model = "mistral/mistral-medium-latest"
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}
    assert answered(model, WHY, TextPart("x"))["content"] == [thinking, {"type": "text", "text": "x"}]
    assert answered(model, TextPart("x"))["content"] == "x"


def test_a_reply_of_thinking_alone_is_left_out() -> None:
    assert sent(DEEPSEEK, USER, reply(WHY, of=origin_of(DEEPSEEK)), user()) == [USER, user()]


def test_mistral_gets_its_ids_and_a_reply_between_result_and_message() -> None:
    _, call, answer, between, asked = sent(
        "mistral/devstral-medium-latest", USER, reply(CALL), result(), user()
    )
    id = call["tool_calls"][0]["id"]
    assert answer["tool_call_id"] == id and len(id) == 9 and id.isalnum()
    assert (between, asked) == ({"role": "assistant", "content": "Done."}, user())


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "why",
        "signature": "sig",
        "index": 0,
        "format": "anthropic-claude-v1",
    },
    {"type": "reasoning.encrypted", "data": "opaque", "index": 1},
]


def test_details_of_reasoning_go_back_unchanged() -> None:
    thinking = ThinkingPart("why", DETAILS)
    message = answered(ROUTED, thinking, CALL)
    assert message["reasoning_details"] == DETAILS and "reasoning_content" not in message
    assert "reasoning_details" not in answered(ROUTED, ThinkingPart("why"), CALL)
    assert "reasoning_details" not in answered("openrouter/z-ai/glm-4.6", thinking, CALL, of=ROUTED)


def test_a_signature_beside_a_call_goes_back_with_it() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "s"}}}
    signed = CallPart("call_1", "read", CALL.arguments, extra)
    assert answered(SERVER, signed)["tool_calls"] == [SENT_CALL | extra]
    assert answered(SERVER, signed, of=DEEPSEEK)["tool_calls"] == [SENT_CALL]


def test_an_image_is_behind_the_words() -> None:
    picture = {**USER, "images": [{"media_type": "image/png", "data": "AAAA"}]}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert sent(SERVER, picture)[0]["content"] == [{"type": "text", "text": "Hello"}, image]
    assert sent(SERVER, {**picture, "content": ""})[0]["content"] == [image]
    assert sent("deepseek/deepseek-v4-pro", picture) == [USER], "a model that is known not to see"


LOOSE = {**STRICT, "required": []}


def json_schema(schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": strict}}


@pytest.mark.parametrize(
    ("form", "shape", "format"),
    [
        ("", STRICT, json_schema(STRICT, True)),
        ("json_schema", LOOSE, json_schema(LOOSE, False)),
        ("json_object", STRICT, {"type": "json_object", "schema": STRICT}),
    ],
)
def test_forms_of_a_schema(form: str, shape: dict[str, Any], format: dict[str, Any]) -> None:
    assert body(SERVER, shape=shape, schema_form=form)["response_format"] == format


@pytest.mark.parametrize(
    ("model", "options", "fields"),
    [
        (SERVER, {"most": 9}, {"max_tokens": 9}),
        ("groq/openai/gpt-oss-120b", {"most": 9}, {"max_completion_tokens": 9, "reasoning_effort": "medium"}),
        (KIMI, {"most": 9, "effort": "none"}, {"max_completion_tokens": 9, "thinking": {"type": "disabled"}}),
        (SERVER, {"temperature": 0.0}, {"temperature": 0.0}),
        (KIMI, {"temperature": 0.5}, {"thinking": {"type": "enabled"}}),
        (SERVER, {"session": "s"}, {}),
        ("xai/grok-4", {"session": "s"}, {"prompt_cache_key": "s"}),
        (SERVER, {"options": {"id_slot": 1}}, {"id_slot": 1}),
        (ROUTED, {"effort": "max"}, {"usage": {"include": True}, "reasoning": {"effort": "xhigh"}}),
        (ROUTED, {"without": frozenset({"effort"})}, {"usage": {"include": True}}),
        ("minimax/MiniMax-M2", {}, {"reasoning_split": True}),
        (DEEPSEEK, {"effort": "none"}, {"thinking": {"type": "disabled"}}),
        ("dashscope/qwen3-max", {"effort": "low"}, {"enable_thinking": True, "thinking_budget": 2_048}),
        (
            "groq/qwen/qwen3-32b",
            {"effort": "none"},
            {"reasoning_format": "parsed", "reasoning_effort": "none"},
        ),
        (SERVER, {"tools": (READ,)}, {"tools": [READ]}),
    ],
)
def test_fields_beside_the_messages(model: str, options: dict[str, Any], fields: dict[str, Any]) -> None:
    made = body(model, **options)
    common = {"model", "messages", "stream", "stream_options"}
    assert {name: value for name, value in made.items() if name not in common} == fields


@pytest.mark.parametrize("effort", ["auto", "none", "low", "medium", "high", "max"])
def test_a_server_of_the_persons_own_is_asked_for_no_effort(effort: Effort) -> None:
    for model in ("hosted_vllm/openai/gpt-oss-120b", "llamafile/deepseek-v4-pro", "lm_studio/qwen3-8b"):
        assert set(body(model, effort=effort)) == {"model", "messages", "stream", "stream_options"}
