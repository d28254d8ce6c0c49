"""The rules of chat completions, provider by provider, and the counts that each server reports."""

from __future__ import annotations

from typing import Any

import pytest
from support.strict import Reply, Say, StrictServer, Think
from support.strict.by_hand import ASKED, PIXEL, SCHEMA, STRICT, brain, chat, events, messages, respond

CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "hello"}
OURS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
NINE = {"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": "abcdefghi"}]}
NINTH = {**RESULT, "tool_call_id": "abcdefghi"}
Case = tuple[str, str, dict[str, Any], str]


def talk(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [ASKED, *messages]}


def called(**changes: Any) -> dict[str, Any]:
    return {**OURS, "tool_calls": [{**CALL, **changes}]}


def function(**changes: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA} | changes}]}


def picture(data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def seen(data: str, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": [picture(data)]}]}


def form(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": schema, "strict": True},
        }
    }


OBJECT = {"response_format": {"type": "json_object"}}
MULTI = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b", "description": "x"}}}
DEEPSEEK, KIMI, GLM, QWEN, MINIMAX = "deepseek-v4", "kimi-k3", "glm-5", "qwen3.8-max", "MiniMax-M3"
MISTRAL, GROQ, GROK, CLAUDE = (
    "mistral-medium-latest",
    "openai/gpt-oss-120b",
    "grok-4.5",
    "anthropic/claude-opus-5.5",
)
GPT, OLD = "gpt-5.1", "gpt-4.1"
REFUSED: list[Case] = [
    ("openai", OLD, {"key": "x"}, "Incorrect API key provided"),
    ("openai", OLD, {"foo": 1}, "Unknown parameter: 'foo'."),
    ("openai", GPT, {"max_tokens": 10}, "Use 'max_completion_tokens' instead."),
    ("openai", GPT, {"reasoning_effort": "xhigh"}, "'xhigh' is not supported with the 'gpt-5.1' model"),
    ("openai", "gpt-5.6", {"reasoning_effort": "max", "tools": None}, "'max' is not supported"),
    (
        "openai",
        GPT,
        {"temperature": 0.5, "reasoning_effort": "low"},
        "Only the default (1) value is supported.",
    ),
    ("openai", "gpt-5.4", {}, "Function tools with reasoning_effort are not supported for gpt-5.4"),
    ("openai", "gpt-6.1-sol", {}, "only supported in v1/responses"),
    ("openai", "gpt-5.3-codex", {"tools": None}, "only supported in v1/responses"),
    ("openai", OLD, {"stream": False, "stream_options": {}}, "only allowed when 'stream' is enabled"),
    ("openai", OLD, {"tools": []}, "Expected an array with minimum length 1"),
    ("openai", OLD, {"tools": None, "tool_choice": "auto"}, "only allowed when 'tools' are specified"),
    ("openai", OLD, function(name="a b"), "string does not match pattern"),
    ("openai", OLD, function(strict=True), "'additionalProperties' is required"),
    ("openai", OLD, form(SCHEMA), "Invalid schema for response_format 'x'"),
    ("openai", OLD, talk({"role": "robot", "content": "x"}), "Invalid value: 'robot'."),
    ("openai", OLD, talk({**OURS, "reasoning_content": "x"}, RESULT), "'messages[1].reasoning_content'"),
    ("openai", OLD, talk({"role": "assistant", "content": None}), "expected a string, got null"),
    ("openai", OLD, talk(OURS), "did not have response messages: call_1"),
    ("openai", OLD, talk(RESULT), "must be a response to a preceeding message with 'tool_calls'"),
    ("openai", OLD, talk(OURS, RESULT, RESULT), "Duplicate value for 'tool_call_id'"),
    ("openai", OLD, talk(OURS, ASKED, RESULT), "did not have response messages"),
    ("openai", OLD, talk(called(id="c" * 41), RESULT), "string too long"),
    ("openai", OLD, talk(called(function={"name": "read", "arguments": {}}), RESULT), "expected a string"),
    ("openai", OLD, seen("aGVsbG8="), "does not represent a valid image"),
    (
        "openai",
        OLD,
        talk(OURS, {**RESULT, "content": [picture(PIXEL)]}),
        "only allowed for messages with role 'user'",
    ),
    (
        "deepseek",
        DEEPSEEK,
        talk(OURS, RESULT),
        "`reasoning_content` in the thinking mode must be passed back",
    ),
    ("deepseek", DEEPSEEK, form(SCHEMA), "This response_format type is unavailable now"),
    ("deepseek", DEEPSEEK, OBJECT, "must contain the word 'json'"),
    ("deepseek", DEEPSEEK, {"max_tokens": 500_000}, "valid range of max_tokens"),
    ("deepseek", DEEPSEEK, {"reasoning_effort": "huge"}, "unknown variant `huge`"),
    ("deepseek", DEEPSEEK, talk({"role": "developer", "content": "x"}), "unknown variant `developer`"),
    ("deepseek", DEEPSEEK, seen(PIXEL), "unknown variant `image_url`"),
    ("deepseek", DEEPSEEK, talk(OURS), "insufficient tool messages"),
    ("deepseek", DEEPSEEK, talk({"role": "assistant", "content": None}), "content or tool_calls must be set"),
    ("mistral", MISTRAL, {"stream_options": {"include_usage": True}}, "stream_options: Extra inputs"),
    ("mistral", MISTRAL, {"max_completion_tokens": 10}, "max_completion_tokens: Extra inputs"),
    ("mistral", MISTRAL, {"seed": 1}, "seed: Extra inputs are not permitted"),
    (
        "mistral",
        MISTRAL,
        talk({**NINE, "reasoning_content": "x"}, NINTH),
        "messages.1.assistant.reasoning_content",
    ),
    ("mistral", MISTRAL, talk(NINE, NINTH, ASKED), "Unexpected role 'user' after role 'tool'"),
    ("mistral", MISTRAL, talk({"role": "assistant", "content": "x"}), "Expected last role User or Tool"),
    ("mistral", MISTRAL, talk(OURS, RESULT), "Tool call id was call_1 but must be a-z, A-Z, 0-9"),
    ("mistral", MISTRAL, talk(NINE), "Not the same number of function calls and responses"),
    ("mistral", MISTRAL, talk({"role": "assistant", "content": ""}, ASKED), "either content or tool_calls"),
    ("mistral", MISTRAL, {"reasoning_effort": "low"}, "reasoning_effort: Input should be"),
    ("mistral", MISTRAL, talk({"role": "developer", "content": "x"}), "union"),
    ("openrouter", "opus", {}, "opus is not a valid model ID"),
    ("openrouter", CLAUDE, {"reasoning": {"effort": "high", "max_tokens": 2000}}, "Only one of"),
    ("openrouter", CLAUDE, {"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    ("openrouter", CLAUDE, talk(called(id="a.b"), {**RESULT, "tool_call_id": "a.b"}), "should match pattern"),
    (
        "openrouter",
        CLAUDE,
        talk({"role": "user", "content": [{"type": "text", "text": ""}]}),
        "must be non-empty",
    ),
    (
        "openrouter",
        CLAUDE,
        talk(
            {
                "role": "user",
                "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5,
            }
        ),
        "A maximum of 4 blocks",
    ),
    (
        "openrouter",
        "mistralai/mistral-medium-3",
        talk(NINE, NINTH, ASKED),
        "Unexpected role 'user' after role 'tool'",
    ),
    ("openrouter", "z-ai/glm-5", seen(PIXEL), "No endpoints found that support image input"),
    ("groq", GROQ, {"foo": 1}, "property 'foo' is unsupported"),
    (
        "groq",
        GROQ,
        talk({**OURS, "reasoning_content": "x"}, RESULT),
        "property 'reasoning_content' is unsupported",
    ),
    ("groq", GROQ, OBJECT, "cannot be combined with tool/function calling"),
    ("groq", GROQ, {**form(STRICT), "tools": None}, "does not support streaming"),
    ("groq", GROQ, {"reasoning_effort": "none"}, "must be one of"),
    ("groq", GROQ, {"reasoning_format": "parsed"}, "`reasoning_format` is not supported with this model"),
    ("xai", GROK, {"presence_penalty": 0}, "does not support parameter presencePenalty"),
    ("xai", GROK, {"reasoning_effort": "none"}, "Invalid reasoning effort: none."),
    ("xai", "grok-4-fast", {"reasoning_effort": "low"}, "does not support parameter reasoningEffort"),
    ("xai", GROK, talk({"role": "assistant", "content": ""}, ASKED), "at least one content element"),
    (
        "moonshot",
        KIMI,
        talk(OURS, RESULT),
        "reasoning_content is missing in assistant tool call message at index 1",
    ),
    ("moonshot", KIMI, {"temperature": 0.6}, "only 1 is allowed for this model"),
    ("moonshot", KIMI, function(name="1read"), "function name is invalid"),
    ("moonshot", KIMI, function(parameters=MULTI), "conflicting keywords found after $ref expansion"),
    ("moonshot", KIMI, function(parameters={"anyOf": []}), 'type is required and must be "object"'),
    ("moonshot", KIMI, talk({"role": "assistant", "content": ""}, ASKED), "must not be empty"),
    ("moonshot", KIMI, {"reasoning_effort": "medium"}, "invalid reasoning_effort"),
    ("moonshot", KIMI, talk(RESULT), "tool_call_id call_1 is not found"),
    ("zai", GLM, {"max_tokens": 200_000}, "Invalid API parameter"),
    ("zai", GLM, form(SCHEMA), "Invalid API parameter"),
    ("zai", GLM, talk(RESULT), "The messages parameter is illegal"),
    ("zai", GLM, {"messages": [{"role": "system", "content": "x"}]}, "The messages parameter is illegal"),
    ("zai", GLM, {"tool_choice": "required"}, "Invalid API parameter"),
    ("minimax", MINIMAX, talk(RESULT), "tool result's tool id(call_1) not found (2013)"),
    ("minimax", MINIMAX, talk({"role": "system", "content": "x"}), "invalid message role: system (2013)"),
    ("minimax", MINIMAX, function(parameters=None), "function parameters is empty (2013)"),
    (
        "minimax",
        MINIMAX,
        talk(called(function={"name": "read", "arguments": "{"}), RESULT),
        "arguments json string",
    ),
    ("minimax", MINIMAX, {"tool_choice": "auto"}, "invalid chat setting (2013)"),
    ("minimax", MINIMAX, OBJECT, "invalid chat setting (2013)"),
    (
        "dashscope",
        QWEN,
        {"enable_thinking": True, "stream": False},
        "must be set to false for non-streaming calls",
    ),
    (
        "dashscope",
        QWEN,
        {"enable_thinking": True, "tool_choice": "required"},
        "does not support being set to required",
    ),
    ("dashscope", QWEN, {"enable_thinking": True, **OBJECT}, "not supported when enable_thinking is true"),
    ("dashscope", QWEN, {"max_tokens": 100_000}, "Range of max_tokens should be"),
    ("dashscope", QWEN, talk(RESULT), 'messages with role "tool" must be a response'),
]
TAKEN: list[tuple[str, str, dict[str, Any]]] = [
    ("openai", OLD, {"max_tokens": 10, "temperature": 0.5, **form(STRICT), **talk(OURS, RESULT)}),
    ("openai", "gpt-5.6", {"reasoning_effort": "none"}),
    ("openai", OLD, seen(PIXEL)),
    ("deepseek", DEEPSEEK, {"thinking": {"type": "disabled"}, **talk(OURS, RESULT)}),
    ("deepseek", DEEPSEEK, talk({**OURS, "reasoning_content": ""}, RESULT)),
    ("mistral", MISTRAL, talk(NINE, NINTH, {"role": "assistant", "content": "Done."}, ASKED)),
    ("openrouter", CLAUDE, {"usage": {"include": True}, **talk(OURS, RESULT)}),
    ("groq", GROQ, {"tools": None, "stream": False, **form(STRICT)}),
    ("xai", GROK, {"reasoning_effort": "low", **talk(OURS, RESULT)}),
    ("moonshot", KIMI, {"reasoning_effort": "high", **talk({**OURS, "reasoning_content": " "}, RESULT)}),
    ("zai", GLM, {"thinking": {"type": "enabled", "clear_thinking": False}, **talk(OURS, RESULT)}),
    ("minimax", MINIMAX, {"reasoning_split": True, "messages": [{"role": "system", "content": "x"}, ASKED]}),
    ("dashscope", QWEN, {"enable_thinking": True, "thinking_budget": 100, **talk(OURS, RESULT)}),
]


@pytest.mark.parametrize(("provider", "model", "changes", "words"), REFUSED)
def test_a_chat_is_refused(provider: str, model: str, changes: dict[str, Any], words: str) -> None:
    with StrictServer(provider, brain=brain, model=model) as server:
        answer = chat(server, model, **changes)
        assert answer.status_code in (400, 401, 404, 422), answer.text
        assert answer.json()
        assert len(server.violations) == 1
        assert words in server.violations[0] or words in answer.text


@pytest.mark.parametrize(("provider", "model", "changes"), TAKEN)
def test_a_chat_is_taken(provider: str, model: str, changes: dict[str, Any]) -> None:
    with StrictServer(provider, brain=brain, model=model) as server:
        answer = chat(server, model, **changes)
        assert answer.status_code == 200, answer.text
        assert server.violations == [] and server.losses == []


def test_ignored_fields_are_losses() -> None:
    with StrictServer("deepseek", brain=brain, model=DEEPSEEK) as server:
        assert chat(server, DEEPSEEK, max_completion_tokens=10).status_code == 200
        assert server.losses == ["max_completion_tokens is ignored"]


LONG = {"role": "system", "content": "Be brief. " * 1000}
SPOKEN = Reply((Think("I think of it."), Say("Hello.")))
WITH = {"messages": [LONG, ASKED], "stream_options": {"include_usage": True}}
USAGE: list[tuple[str, str, dict[str, Any]]] = [
    ("openai", GPT, {"prompt_cache_key": "a"}),
    ("deepseek", DEEPSEEK, {}),
    ("mistral", MISTRAL, {"reasoning_effort": "high", "stream_options": None}),
    ("openrouter", CLAUDE, {"reasoning": {"effort": "low"}}),
    ("groq", GROQ, {}),
    ("xai", GROK, {}),
    ("moonshot", KIMI, {}),
    ("zai", GLM, {}),
    ("minimax", MINIMAX, {}),
    ("dashscope", QWEN, {"enable_thinking": True}),
]


@pytest.mark.parametrize(("provider", "model", "extra"), USAGE)
def test_usage_of_a_chat(provider: str, model: str, extra: dict[str, Any]) -> None:
    marked = [{"type": "text", "text": LONG["content"], "cache_control": {"type": "ephemeral"}}]
    system = {**LONG, "content": marked} if provider == "openrouter" else LONG
    with StrictServer(provider, brain=lambda view: SPOKEN, model=model) as server:
        for number in (0, 1):
            found = events(chat(server, model, **{**WITH, **extra, "messages": [system, ASKED]}).text)
            usage = [event["usage"] for event in found if event.get("usage")]
            usage += [event["x_groq"]["usage"] for event in found if "usage" in event.get("x_groq", {})]
            counted = server.counted[number]
            assert usage[0]["prompt_tokens"] == counted["input"]
            hidden = counted["thinking"] if provider == "xai" else 0
            assert usage[0]["completion_tokens"] == counted["output"] - hidden
        assert server.counted[0]["cached"] == 0 and server.counted[1]["cached"] > 1000
        match provider:
            case "deepseek":
                assert usage[0]["prompt_cache_hit_tokens"] == counted["cached"]
            case "moonshot":
                assert usage[0]["cached_tokens"] == counted["cached"]
            case "openrouter":
                assert usage[0]["cost"] == counted["cost"] > 0
                assert server.counted[0]["cache_write"] > 1000
            case _:
                assert usage[0]["prompt_tokens_details"]["cached_tokens"] == counted["cached"]


def test_usage_by_marks() -> None:
    hour, short = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}
    system = [{"type": "text", "text": LONG["content"], "cache_control": hour}]
    asked = [{"role": "user", "content": [{"type": "text", "text": "Read. " * 900, "cache_control": short}]}]
    with StrictServer("anthropic", brain=lambda view: SPOKEN, model="claude-opus-5-5") as server:
        first = events(messages(server, system=system, messages=asked).text)[0]["message"]["usage"]
        split = first["cache_creation"]
        assert split["ephemeral_1h_input_tokens"] > 2000 and split["ephemeral_5m_input_tokens"] > 1000
        assert first["cache_creation_input_tokens"] == sum(split.values())
        second = events(messages(server, system=system, messages=asked).text)[0]["message"]["usage"]
        assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
        assert second["cache_creation_input_tokens"] == 0
        other = messages(server, system=system, messages=asked, tools=None)
        assert events(other.text)[0]["message"]["usage"]["cache_read_input_tokens"] == 0
        assert server.counted[1]["cached"] == second["cache_read_input_tokens"]


def test_a_key_of_the_session_finds_its_prefix() -> None:
    with StrictServer("openai", brain=lambda view: SPOKEN, model="gpt-5.4") as server:
        for key in ("a", "b", "a"):
            respond(server, input=[LONG, ASKED], prompt_cache_key=key)
        cached = [counted["cached"] for counted in server.counted]
        assert cached[:2] == [0, 0] and cached[2] > 2000 and cached[2] % 128 == 0
