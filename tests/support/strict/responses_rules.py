"""The rules of a request to Responses that need no memory: fields, items, functions, schemas, pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from support.strict import schemas
from support.strict.names import names
from support.strict.openai_words import (
    check_effort,
    check_length,
    check_name,
    check_names,
    check_picture,
    check_schema,
    check_value,
    effort_of,
    missing,
    wrong_type,
)

if TYPE_CHECKING:
    from support.strict.responses import Responses

FIELDS = names("""
    background conversation include input instructions max_output_tokens max_tool_calls metadata model
    parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention
    reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools
    top_logprobs top_p truncation user context_management
""")
INCLUDES = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
ITEM_FIELDS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
}
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
STATUSES = ("in_progress", "completed", "incomplete")


def items_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of a request, also if its input is a string."""
    given = body["input"]
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def check(dialect: Responses, body: dict[str, Any]) -> None:
    """Raises the refusal of the first rule that a request breaks."""
    check_names(dialect, body, FIELDS, "")
    for name in ("model", "input"):
        if name not in body:
            missing(dialect, name)
    if not re.search(r"gpt|^o\d|codex|chat|test|computer|daybreak", body["model"]):
        dialect.raise_fault("not_found", body["model"])
    _check_settings(dialect, body)
    _check_reasoning(dialect, body)
    _check_tools(dialect, body)
    _check_format(dialect, body)
    if body["input"] in ([], ""):
        dialect.refuse(
            "Missing required parameter: 'input'.", param="input", code="missing_required_parameter"
        )
    for index, item in enumerate(items_of(body)):
        _check_item(dialect, item, f"input[{index}]")
    _check_pairs(dialect, items_of(body))


def _check_settings(dialect: Responses, body: dict[str, Any]) -> None:
    if body.get("previous_response_id") is not None:
        dialect.refuse(
            f"Previous response with id '{body['previous_response_id']}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < 16):
        dialect.refuse(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {limit}"
            " instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    if isinstance(limit, int) and limit > 128_000:
        dialect.refuse(
            f"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got {limit}"
            " instead.",
            param="max_output_tokens",
            code="integer_above_max_value",
        )
    if "prompt_cache_key" in body:
        check_length(dialect, "prompt_cache_key", body["prompt_cache_key"], 64)
    for index, value in enumerate(body.get("include") or ()):
        check_value(dialect, f"include[{index}]", value, INCLUDES)
    rules = dialect.rules(body["model"])
    if rules.effort == "" and "reasoning.encrypted_content" in (body.get("include") or ()):
        dialect.refuse("Encrypted content is not supported with this model.", param="include")
    effort = effort_of((body.get("reasoning") or {}).get("effort"), body["model"])
    for name in ("temperature", "top_p"):
        thinks = rules.temperature == "never" or (
            rules.temperature == "without_thinking" and effort != "none"
        )
        if rules.effort and thinks and body.get(name) is not None:
            dialect.refuse(f"Unsupported parameter: '{name}' is not supported with this model.", param=name)


def _check_reasoning(dialect: Responses, body: dict[str, Any]) -> None:
    reasoning = body.get("reasoning")
    if reasoning is None:
        return
    check_names(dialect, reasoning, ("effort", "summary", "generate_summary", "context", "mode"), "reasoning")
    rules = dialect.rules(body["model"])
    if reasoning.get("effort") is not None:
        check_effort(dialect, "reasoning.effort", reasoning["effort"], rules.levels, body["model"])
    if reasoning.get("summary") is not None:
        if not rules.effort:
            check_effort(dialect, "reasoning.summary", "", (), body["model"])
        check_value(dialect, "reasoning.summary", reasoning["summary"], ("concise", "detailed", "auto"))


def _check_tools(dialect: Responses, body: dict[str, Any]) -> None:
    for index, tool in enumerate(body.get("tools") or ()):
        path = f"tools[{index}]"
        if tool.get("type") != "function":
            continue
        if "name" not in tool:
            missing(dialect, f"{path}.name")
        check_names(
            dialect,
            tool,
            ("type", "name", "description", "parameters", "strict", "defer_loading", "output_schema"),
            path,
        )
        check_name(dialect, f"{path}.name", tool["name"])
        check_schema(
            dialect, tool["name"], tool.get("parameters"), bool(tool.get("strict")), f"{path}.parameters"
        )
    choice = body.get("tool_choice")
    if choice is not None and not body.get("tools"):
        dialect.refuse("Tool choice must not be specified without tools.", param="tool_choice")
    if isinstance(choice, str):
        check_value(dialect, "tool_choice", choice, ("none", "auto", "required"))
    elif isinstance(choice, dict) and choice.get("type") == "function" and "name" not in choice:
        missing(dialect, "tool_choice.name")


def _check_format(dialect: Responses, body: dict[str, Any]) -> None:
    text = body.get("text") or {}
    check_names(dialect, text, ("format", "verbosity"), "text")
    form = text.get("format")
    if form is None:
        return
    check_value(dialect, "text.format.type", form.get("type"), ("text", "json_object", "json_schema"))
    if form["type"] == "json_schema":
        check_names(dialect, form, ("type", "name", "schema", "strict", "description"), "text.format")
        for name in ("name", "schema"):
            if name not in form:
                missing(dialect, f"text.format.{name}")
        check_name(dialect, "text.format.name", form["name"])
        wrong = next(schemas.openai(form["schema"]), "") if form.get("strict") else ""
        if wrong:
            dialect.refuse(
                f"Invalid schema for response_format '{form['name']}': {wrong}",
                param="text.format.schema",
                code="invalid_json_schema",
            )


def _check_item(dialect: Responses, item: Any, path: str) -> None:
    if not isinstance(item, dict):
        wrong_type(dialect, path, "an input item", item)
    kind = item.get("type", "message")
    if kind not in ITEM_FIELDS:
        check_value(dialect, path, kind, ITEM_FIELDS)
    check_names(dialect, item, ITEM_FIELDS[kind], path)
    if "status" in item and item["status"] not in STATUSES:
        wrong_type(
            dialect, f"{path}.status", "one of 'in_progress', 'completed', or 'incomplete'", item["status"]
        )
    begin = PREFIXES.get(kind)
    if begin and "id" in item:
        if not isinstance(item["id"], str):
            wrong_type(dialect, f"{path}.id", "a string", item["id"])
        check_length(dialect, f"{path}.id", item["id"], 64)
        if not item["id"].startswith(begin):
            dialect.refuse(
                f"Invalid '{path}.id': '{item['id']}'. Expected an ID that begins with '{begin}'.",
                param=f"{path}.id",
                code="invalid_value",
            )
    match kind:
        case "message":
            _check_message(dialect, item, path)
        case "reasoning":
            if not isinstance(item.get("summary"), list):
                missing(dialect, f"{path}.summary")
        case "function_call":
            _check_strings(dialect, item, path, ("call_id", "name", "arguments"))
            check_length(dialect, f"{path}.call_id", item["call_id"], 64)
            check_name(dialect, f"{path}.name", item["name"])
        case "function_call_output":
            _check_strings(dialect, item, path, ("call_id",))
            if "output" not in item:
                missing(dialect, f"{path}.output")
            _check_content(
                dialect, item["output"], f"{path}.output", ("input_text", "input_image", "input_file")
            )


def _check_strings(dialect: Responses, item: dict[str, Any], path: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in item:
            missing(dialect, f"{path}.{name}")
        if not isinstance(item[name], str):
            wrong_type(dialect, f"{path}.{name}", "a string", item[name])


def _check_message(dialect: Responses, item: dict[str, Any], path: str) -> None:
    check_value(dialect, f"{path}.role", item.get("role"), ("assistant", "system", "developer", "user"))
    if "content" not in item:
        missing(dialect, f"{path}.content")
    ours = item["role"] == "assistant"
    kinds = ("output_text", "refusal") if ours else ("input_text", "input_image", "input_file")
    _check_content(dialect, item["content"], f"{path}.content", kinds)


def _check_content(dialect: Responses, content: Any, path: str, kinds: tuple[str, ...]) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        wrong_type(dialect, path, "one of an array of objects or string", content)
    for index, part in enumerate(content):
        place = f"{path}[{index}]"
        check_value(dialect, place, part.get("type"), kinds)
        fields = {
            "input_text": ("type", "text", "prompt_cache_breakpoint"),
            "output_text": ("type", "text", "annotations", "logprobs"),
            "refusal": ("type", "refusal"),
            "input_image": ("type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"),
            "input_file": ("type", "file_data", "file_id", "filename", "file_url", "detail"),
        }[part["type"]]
        check_names(dialect, part, fields, place)
        if part["type"] in ("input_text", "output_text"):
            _check_strings(dialect, part, place, ("text",))
        if part["type"] == "input_image":
            check_picture(dialect, part.get("image_url"), f"{place}.image_url", "file_id" in part)


def _check_pairs(dialect: Responses, items: list[dict[str, Any]]) -> None:
    open_calls: set[str] = set()
    answered: set[str] = set()
    for item in items:
        call_id = item.get("call_id", "")
        if item.get("type") == "function_call":
            if call_id in open_calls | answered:
                dialect.refuse(
                    f"Duplicate function call with call_id {call_id} found in input.", param="input"
                )
            open_calls.add(call_id)
        elif item.get("type") == "function_call_output":
            if call_id not in open_calls:
                dialect.refuse(
                    f"No tool call found for function call output with call_id {call_id}.", param="input"
                )
            open_calls.remove(call_id)
            answered.add(call_id)
    if open_calls:
        unanswered = next(item["call_id"] for item in items if item.get("call_id") in open_calls)
        dialect.refuse(f"No tool output found for function call {unanswered}.", param="input")
