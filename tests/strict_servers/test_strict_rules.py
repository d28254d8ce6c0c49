"""The rules of Anthropic and of Responses: one request breaks each, and gets the provider's own refusal."""

from __future__ import annotations

from typing import Any

import pytest
from support.strict import StrictServer
from support.strict.by_hand import ASKED, PIXEL, SCHEMA, brain, messages, respond

OPUS, SONNET, HAIKU, OLD = "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-haiku-4-5"
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "hello"}
MARK = {"type": "ephemeral"}
Case = tuple[str, dict[str, Any], str]


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A conversation with one message of blocks."""
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def turns(uses: list[dict[str, Any]], results: list[dict[str, Any]], *more: dict[str, Any]) -> dict[str, Any]:
    """A conversation with calls and results."""
    asked = {"role": "assistant", "content": uses}
    return {"messages": [ASKED, asked, {"role": "user", "content": results}, *more]}


def picture(media_type: str, data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": data}
    return said({"type": "image", "source": source}, {"type": "text", "text": "Look."})


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(**changes: Any) -> dict[str, Any]:
    return {"tools": [{"name": "read", "input_schema": SCHEMA} | changes]}


def form(schema: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


ANTHROPIC: list[Case] = [
    (OPUS, {"key": "wrong"}, "invalid x-api-key"),
    (OPUS, {"key": ""}, "x-api-key header is required"),
    (OPUS, {"version": ""}, "anthropic-version: header is required"),
    (OPUS, {"foo": 1}, "foo: Extra inputs are not permitted"),
    (OPUS, {"max_tokens": None}, "max_tokens: Field required"),
    (OPUS, {"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
    (OPUS, {"max_tokens": 200_000}, "max_tokens: 200000 > 128000, which is the maximum"),
    (OLD, {"max_tokens": 100_000, "thinking": None}, "max_tokens: 100000 > 64000"),
    ("gpt-5", {}, "model: gpt-5"),
    (OPUS, {"temperature": 0.5}, "`temperature` is deprecated for this model."),
    ("claude-opus-4-6", {"temperature": 0.5}, "`temperature` may only be set to 1 when thinking is enabled."),
    (OPUS, {"thinking": {"type": "disabled"}}, "thinking.type.disabled"),
    (OPUS, {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.type.enabled"),
    (SONNET, {"thinking": {"type": "disabled"}}, "thinking.type.disabled"),
    (OPUS, {"thinking": {"type": "between_tools"}}, "thinking.type.between_tools"),
    (OLD, {"thinking": {"type": "adaptive"}}, "adaptive thinking is not supported on this model"),
    (OLD, {"thinking": {"type": "enabled", "budget_tokens": 10}}, "greater than or equal to 1024"),
    (OLD, {"thinking": {"type": "enabled", "budget_tokens": 4000}}, "`max_tokens` must be greater than"),
    (
        OPUS,
        {"thinking": {"type": "adaptive", "budget_tokens": 2000}},
        "thinking.adaptive.budget_tokens: Extra inputs",
    ),
    (OPUS, {"thinking": {"type": "adaptive", "block_binding": {}}}, "block_binding: Extra inputs"),
    (OPUS, {"output_config": {"effort": "huge"}}, "output_config.effort: Input should be"),
    ("claude-opus-4-6", {"output_config": {"effort": "xhigh"}}, "does not support effort level 'xhigh'"),
    (OLD, {"output_config": {"effort": "low"}, "thinking": None}, "does not support the effort parameter"),
    (
        HAIKU,
        {"output_config": {"effort": "max"}, "thinking": {"type": "disabled"}},
        "is not supported with effort",
    ),
    (OPUS, {"output_format": {}}, "output_format: This field is deprecated"),
    (
        OPUS,
        form({"type": "object", "properties": {}}),
        "'additionalProperties' must be explicitly set to false",
    ),
    (
        OPUS,
        form({"type": "array", "uniqueItems": True}),
        "For 'array' type, property 'uniqueItems' is not supported",
    ),
    (OPUS, form({"type": "integer", "minimum": 1}), "property 'minimum' is not supported"),
    (OPUS, form({"oneOf": []}), "Schema type 'oneOf' is not supported"),
    (OPUS, tool(name="a b"), "tools.0.custom.name: String should match pattern"),
    (OPUS, tool(strict_=True), "tools.0.custom.strict_: Extra inputs are not permitted"),
    (OPUS, tool(input_schema={}), "tools.0.custom.input_schema.type: Field required"),
    (OPUS, tool(input_schema={"type": "object", "oneOf": []}), "does not support oneOf, allOf, or anyOf"),
    (OPUS, {"tools": tool()["tools"] * 2}, "tools: Tool names must be unique."),
    (OPUS, {"tool_choice": {"type": "any"}}, "tool_choice.type.any"),
    (
        HAIKU,
        {"tool_choice": {"type": "any"}},
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    (OPUS, {"tool_choice": "auto"}, "tool_choice: Input should be a valid dictionary"),
    (OPUS, {"messages": []}, "messages: at least one message is required"),
    (OPUS, {"messages": [{"role": "system", "content": "Hello."}]}, 'Unexpected role "system"'),
    (
        OPUS,
        {"messages": [{"role": "assistant", "content": "Hello."}]},
        'first message must use the "user" role',
    ),
    (OPUS, {"messages": [ASKED, ASKED]}, "roles must alternate"),
    (
        OPUS,
        {"messages": [ASKED, {"role": "assistant", "content": "I"}]},
        "does not support assistant message prefill",
    ),
    (OPUS, {"messages": [{"role": "user", "content": ""}]}, "all messages must have non-empty content"),
    (OPUS, {"messages": [{**ASKED, "name": "me"}]}, "messages.0.name: Extra inputs are not permitted"),
    (OPUS, said(text("")), "messages: text content blocks must be non-empty"),
    (OPUS, said(text(" ")), "messages: text content blocks must contain non-whitespace text"),
    (OPUS, {"system": [text("")]}, "system: text content blocks must be non-empty"),
    (OPUS, said(text("a", foo=1)), "messages.0.content.0.text.foo: Extra inputs are not permitted"),
    (OPUS, picture("image/bmp", PIXEL), "media_type: Input should be 'image/jpeg'"),
    (OPUS, picture("image/png", "!"), "invalid base64 data"),
    (OPUS, picture("image/jpeg", PIXEL), "does not match the provided media type"),
    (OPUS, picture("image/png", "aGVsbG8="), "Could not process image"),
    (OPUS, turns([USE], [text("No.")]), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    (OPUS, turns([USE], [text("No."), RESULT]), "`tool_use` ids were found without `tool_result` blocks"),
    (OPUS, turns([text("I.")], [RESULT]), "messages.2.content.0: unexpected `tool_use_id` found"),
    (OPUS, turns([USE], [RESULT, RESULT]), "each tool_use must have a single result"),
    (OPUS, turns([USE, USE], [RESULT]), "messages: `tool_use` ids must be unique"),
    (
        OPUS,
        turns([{**USE, "id": "a.b"}], [RESULT]),
        "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (OPUS, turns([{**USE, "input": "{}"}], [RESULT]), "tool_use.input: Input should be a valid dictionary"),
    (OPUS, turns([USE], [{**RESULT, "content": [text("")]}]), "text content blocks must be non-empty"),
    (
        OPUS,
        turns([USE], [{**RESULT, "content": "", "is_error": True}]),
        "cannot be empty if `is_error` is true",
    ),
    (OPUS, turns([{"type": "redacted_thinking", "data": "x"}, USE], [RESULT]), "Invalid `data`"),
    (
        OPUS,
        turns([{"type": "thinking", "thinking": "x"}, USE], [RESULT]),
        "thinking.signature: Field required",
    ),
    (
        OPUS,
        said(*[text("a", cache_control=MARK)] * 5),
        "A maximum of 4 blocks with cache_control may be provided.",
    ),
    (OPUS, said(text("a", cache_control={"type": "x"})), "expected tags: 'ephemeral'"),
    (OPUS, said(text("a", cache_control={**MARK, "ttl": "2h"})), "ttl: Input should be '5m' or '1h'"),
    (
        OPUS,
        said(text("a", cache_control=MARK), text("b", cache_control={**MARK, "ttl": "1h"})),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
]
GOOD_ANTHROPIC: list[tuple[str, dict[str, Any]]] = [
    (
        OPUS,
        {"output_config": {"effort": "xhigh"}, "system": [text("a", cache_control={**MARK, "ttl": "1h"})]},
    ),
    (SONNET, {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}}),
    (HAIKU, {"thinking": {"type": "disabled"}, "tool_choice": {"type": "any"}}),
    (OLD, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    (OLD, {"thinking": None, "temperature": 0.5}),
    (OPUS, form({"type": "object", "properties": {}, "additionalProperties": False})),
    (OPUS, picture("image/png", PIXEL)),
    (OPUS, turns([text("I."), USE], [RESULT, text("And?")])),
    (OPUS, turns([USE], [{**RESULT, "content": [text("a", cache_control=MARK)]}])),
]
GPT = "gpt-5.4"
CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "hello"}


def put(*items: Any) -> dict[str, Any]:
    return {"input": [ASKED, *items]}


def function(**changes: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False} | changes]}


def wanted(schema: dict[str, Any]) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}}


def seen(url: str) -> dict[str, Any]:
    return put({"role": "user", "content": [{"type": "input_image", "image_url": url}]})


RESPONSES: list[Case] = [
    (GPT, {"foo": 1}, "Unknown parameter: 'foo'."),
    (GPT, {"max_tokens": 100}, "this parameter has moved to 'max_output_tokens'"),
    (GPT, {"messages": []}, "this parameter has moved to 'input'"),
    (GPT, {"response_format": {}}, "this parameter has moved to 'text.format'"),
    (GPT, {"input": None}, "Missing required parameter: 'input'."),
    ("claude-opus-5", {}, "does not exist or you do not have access to it"),
    (GPT, {"previous_response_id": "resp_1"}, "Previous response with id 'resp_1' not found."),
    (GPT, {"max_output_tokens": 1}, "Expected a value >= 16"),
    (GPT, {"prompt_cache_key": "k" * 65}, "Expected a string with maximum length 64"),
    (GPT, {"include": ["everything"]}, "Invalid value: 'everything'."),
    (GPT, {"temperature": 0.5}, "Unsupported parameter: 'temperature'"),
    (GPT, {"reasoning": {"effort": "minimal"}}, "'minimal' is not supported with the 'gpt-5.4' model"),
    (GPT, {"reasoning": {"effort": "auto"}}, "Invalid value: 'auto'."),
    (GPT, {"reasoning": {"summary": "long"}}, "Invalid value: 'long'."),
    ("gpt-4.1", {"include": None}, "Unsupported parameter: 'reasoning.effort'"),
    (GPT, function(name="a b"), "string does not match pattern"),
    (GPT, {"tools": [{"type": "function", "function": {"name": "a"}}]}, "'tools[0].name'"),
    (GPT, function(strict=True), "'additionalProperties' is required to be supplied and to be false"),
    (GPT, function(parameters={"type": "array"}), "schema must be a JSON Schema of 'type"),
    (GPT, wanted({**SCHEMA, "required": [], "additionalProperties": False}), "Missing 'path'"),
    (GPT, wanted({**SCHEMA, "additionalProperties": False, "allOf": []}), "'allOf' is not permitted"),
    (GPT, {"tool_choice": "any"}, "Invalid value: 'any'."),
    (GPT, put({"role": "tool", "content": "x"}), "Invalid value: 'tool'."),
    (
        GPT,
        put({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "'output_text' and 'refusal'",
    ),
    (GPT, put({"role": "user", "content": None}), "but got null instead"),
    (GPT, put({**CALL, "foo": 1}, OUTPUT), "Unknown parameter: 'input[1].foo'."),
    (GPT, put({**CALL, "status": None}, OUTPUT), "'in_progress', 'completed', or 'incomplete', but got null"),
    (GPT, put({**CALL, "arguments": {}}, OUTPUT), "Invalid type for 'input[1].arguments'"),
    (GPT, put({**CALL, "call_id": "c" * 65}, OUTPUT), "length 65"),
    (GPT, put({**CALL, "call_id": ""}, OUTPUT), "empty string"),
    (GPT, put({**CALL, "id": "call_1"}, OUTPUT), "Expected an ID that begins with 'fc'."),
    (GPT, put(CALL), "No tool output found for function call call_1."),
    (GPT, put(OUTPUT), "No tool call found for function call output with call_id call_1."),
    (GPT, put(CALL, OUTPUT, OUTPUT), "No tool call found for function call output"),
    (GPT, put(CALL, CALL, OUTPUT), "Duplicate function call"),
    (GPT, put({"type": "reasoning", "id": "rs_1", "summary": []}, CALL, OUTPUT), "Items are not persisted"),
    (
        GPT,
        put({"type": "reasoning", "encrypted_content": "x"}),
        "Missing required parameter: 'input[1].summary'.",
    ),
    (GPT, seen("abc"), "Expected a base64-encoded data URL"),
    (GPT, seen("data:image/bmp;base64,aGVsbG8="), "unsupported image"),
    (GPT, seen("data:image/png;base64,aGVsbG8="), "does not represent a valid image"),
]
GOOD_RESPONSES: list[tuple[str, dict[str, Any]]] = [
    (GPT, {"reasoning": None, "temperature": 0.5}),
    (GPT, {"input": "Hello.", "reasoning": {"effort": "none"}, "temperature": 0.5}),
    ("gpt-4.1", {"include": None, "reasoning": None, "temperature": 0.5}),
    (GPT, put(CALL, OUTPUT)),
    (GPT, seen(f"data:image/png;base64,{PIXEL}")),
    (GPT, function(strict=True, parameters={**SCHEMA, "additionalProperties": False})),
]


@pytest.mark.parametrize(("model", "changes", "words"), ANTHROPIC)
def test_anthropic_refuses(model: str, changes: dict[str, Any], words: str) -> None:
    with StrictServer("anthropic", brain=brain, model=model) as server:
        answer = messages(server, **changes)
        assert answer.status_code in (400, 401, 404)
        assert answer.json()["type"] == "error"
        assert words in answer.json()["error"]["message"]
        assert len(server.violations) == 1 and words in server.violations[0]


@pytest.mark.parametrize(("model", "changes"), GOOD_ANTHROPIC)
def test_anthropic_takes(model: str, changes: dict[str, Any]) -> None:
    with StrictServer("anthropic", brain=brain, model=model) as server:
        answer = messages(server, **changes)
        assert answer.status_code == 200, answer.text
        assert server.violations == []


@pytest.mark.parametrize(("model", "changes", "words"), RESPONSES)
def test_responses_refuse(model: str, changes: dict[str, Any], words: str) -> None:
    with StrictServer("openai", brain=brain, model=model) as server:
        answer = respond(server, **changes)
        assert answer.status_code in (400, 404)
        assert words in answer.json()["error"]["message"]
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("model", "changes"), GOOD_RESPONSES)
def test_responses_take(model: str, changes: dict[str, Any]) -> None:
    with StrictServer("openai", brain=brain, model=model) as server:
        answer = respond(server, **changes)
        assert answer.status_code == 200, answer.text
