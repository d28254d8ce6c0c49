"""Rules of chat completions outside of the messages: fields, functions, formats, effort, sampling, limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from support.strict import openai_words, schemas

if TYPE_CHECKING:
    from support.strict.chat import Chat

_ALWAYS_RESPONSES = r"gpt-6-astra|gpt-6\.\d|codex|-pro|deep-research"


def check(dialect: Chat, body: dict[str, Any]) -> None:
    """Raises the refusal of the first rule that a request breaks."""
    for name in body:
        if dialect.fields is None:
            if name not in dialect.accepted:
                dialect.lose(f"{name} is ignored")
        elif name not in dialect.fields:
            dialect.refuse(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    for name in ("model", "messages"):
        if name not in body:
            dialect.refuse(
                "you must provide a model parameter"
                if name == "model"
                else f"Missing required parameter: '{name}'.",
                param=name,
                code="missing_required_parameter",
            )
    if not re.search(dialect.models, body["model"]):
        dialect.raise_fault("not_found", body["model"])
    dialect.check_limit(body)
    dialect.check_effort(body)
    dialect.check_sampling(body)
    _check_stream(dialect, body)
    _check_tools(dialect, body)
    if body.get("response_format") is not None:
        dialect.check_form(body, body["response_format"])


def check_limit(dialect: Chat, body: dict[str, Any]) -> None:
    """OpenAI: reasoning models want `max_completion_tokens`."""
    rules = dialect.rules(body["model"])
    if rules.output_limit == "max_completion_tokens" and body.get("max_tokens") is not None:
        dialect.refuse(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
            " instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )


def check_effort(dialect: Chat, body: dict[str, Any]) -> None:
    """OpenAI: levels of the model, `max` on Responses only, and functions only without effort where it says so."""
    model, effort = body["model"], body.get("reasoning_effort")
    rules = dialect.rules(model)
    if re.search(_ALWAYS_RESPONSES, model) and (body.get("tools") or "gpt-6" not in model):
        dialect.refuse(
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            status=404,
            param="model",
        )
    if effort is not None:
        levels = [level for level in rules.levels if level != "max"]
        openai_words.check_effort(dialect, "reasoning_effort", effort, levels, model)
    if rules.responses_only and body.get("tools") and effort != "none":
        dialect.refuse(
            f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use"
            " function tools, use /v1/responses or set reasoning_effort to 'none'.",
            param="reasoning_effort",
        )


def check_sampling(dialect: Chat, body: dict[str, Any]) -> None:
    """OpenAI: a model that thinks has one temperature only."""
    rules = dialect.rules(body["model"])
    thinks = (
        rules.temperature == "never"
        or openai_words.effort_of(body.get("reasoning_effort"), body["model"]) != "none"
    )
    if not rules.effort or rules.temperature == "always" or not thinks:
        return
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if value is not None and value != 1:
            dialect.refuse(
                f"Unsupported value: '{name}' does not support {value} with this model. Only the default (1) value is"
                " supported.",
                param=name,
                code="unsupported_value",
            )


def _check_stream(dialect: Chat, body: dict[str, Any]) -> None:
    if body.get("stream_options") is not None and not body.get("stream"):
        dialect.refuse(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )


def _check_tools(dialect: Chat, body: dict[str, Any]) -> None:
    tools = body.get("tools")
    if tools == []:
        dialect.refuse(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="tools",
            code="empty_array",
        )
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not tools:
            dialect.refuse(f"'{name}' is only allowed when 'tools' are specified.", param=name)
    for index, tool in enumerate(tools or ()):
        path = f"tools[{index}]"
        if tool.get("type") != "function" or not isinstance(tool.get("function"), dict):
            openai_words.missing(dialect, f"{path}.function")
        dialect.check_tool(body, tool["function"], f"{path}.function")


def check_function(dialect: Chat, function: dict[str, Any], path: str) -> None:
    """OpenAI: name, fields, and the strict subset if it is asked for."""
    openai_words.check_names(dialect, function, ("name", "description", "parameters", "strict"), path)
    openai_words.check_name(dialect, f"{path}.name", function.get("name"))
    schema = function.get("parameters")
    openai_words.check_schema(
        dialect, function["name"], schema, bool(function.get("strict")), f"{path}.parameters"
    )


def check_form(dialect: Chat, form: dict[str, Any]) -> None:
    """OpenAI: text, any object, or a schema in the strict subset."""
    openai_words.check_value(
        dialect, "response_format.type", form.get("type"), ("json_object", "json_schema", "text")
    )
    if form["type"] != "json_schema":
        return
    inner = form.get("json_schema")
    if not isinstance(inner, dict):
        openai_words.missing(dialect, "response_format.json_schema")
    openai_words.check_name(dialect, "response_format.json_schema.name", inner.get("name"))
    wrong = next(schemas.openai(inner.get("schema")), "") if inner.get("strict") else ""
    if wrong:
        dialect.refuse(
            f"Invalid schema for response_format '{inner['name']}': {wrong}",
            param="response_format",
            code="invalid_json_schema",
        )
