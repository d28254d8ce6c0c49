"""Refusals in the words of OpenAI: names, types, lengths, values, schemas and pictures that are not accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from support.strict import pictures, schemas

if TYPE_CHECKING:
    from support.strict.dialect import Dialect

MOVED = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "messages": "input",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "functions": "tools",
}
NAME = "^[a-zA-Z0-9_-]+$"
LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def listed(values: Iterable[object]) -> str:
    """Values as OpenAI lists them: 'a', 'b', and 'c'."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return ", ".join(quoted[:-1]) + f", and {quoted[-1]}"


def check_names(dialect: Dialect, given: dict[str, Any], known: Iterable[str], path: str) -> None:
    """Refuse names that are not known."""
    for name in given:
        full = f"{path}.{name}" if path else name
        if not path and name in MOVED and "input" in known:
            dialect.refuse(
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{MOVED[name]}'."
                " Try again with the new parameter. See the API documentation for more information:"
                " https://platform.openai.com/docs/api-reference/responses/create.",
                param=name,
                code="unsupported_parameter",
            )
        if name not in known:
            dialect.refuse(f"Unknown parameter: '{full}'.", param=full, code="unknown_parameter")


def missing(dialect: Dialect, path: str) -> NoReturn:
    dialect.refuse(f"Missing required parameter: '{path}'.", param=path, code="missing_required_parameter")


def wrong_type(dialect: Dialect, path: str, expected: str, given: Any) -> NoReturn:
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a decimal",
    }
    got = "null" if given is None else names.get(type(given), "another type")
    dialect.refuse(
        f"Invalid type for '{path}': expected {expected}, but got {got} instead.",
        param=path,
        code="invalid_type",
    )


def check_length(dialect: Dialect, path: str, value: str, most: int) -> None:
    """Refuse a string that is empty or longer than `most`."""
    if not value:
        dialect.refuse(
            f"Invalid '{path}': empty string. Expected a string with minimum length 1, but got an empty string"
            " instead.",
            param=path,
            code="empty_string",
        )
    if len(value) > most:
        dialect.refuse(
            f"Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a string with"
            f" length {len(value)} instead.",
            param=path,
            code="string_above_max_length",
        )


def check_name(dialect: Dialect, path: str, value: Any) -> None:
    """Refuse a function's name that is not one."""
    if not isinstance(value, str):
        wrong_type(dialect, path, "a string", value)
    check_length(dialect, path, value, 64)
    if not re.match(NAME, value):
        dialect.refuse(
            f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '{NAME}'.",
            param=path,
            code="invalid_value",
        )


def check_value(dialect: Dialect, path: str, value: Any, allowed: Iterable[str]) -> None:
    if value not in allowed:
        dialect.refuse(
            f"Invalid value: '{value}'. Supported values are: {listed(allowed)}.",
            param=path,
            code="invalid_value",
        )


def effort_of(given: str | None, model: str) -> str:
    """The level of effort of a request: the given one, or the default of the model."""
    return given or ("none" if re.search(r"gpt-5\.[124](?![\d])", model) else "medium")


def check_effort(dialect: Dialect, path: str, effort: Any, levels: Iterable[str], model: str) -> None:
    """Refuse a level of effort that the model does not have."""
    levels = tuple(levels)
    if not levels:
        dialect.refuse(
            f"Unsupported parameter: '{path}' is not supported with this model.",
            param=path,
            code="unsupported_parameter",
        )
    check_value(dialect, path, effort, LEVELS)
    if effort not in levels:
        dialect.refuse(
            f"Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are:"
            f" {listed(levels)}.",
            param=path,
            code="unsupported_value",
        )


def check_schema(dialect: Dialect, name: str, schema: Any, strict: bool, path: str) -> None:
    """Refuse a function's parameters that are no object, or break the strict subset."""
    wrong = ""
    if schema is not None and schema.get("type") != "object":
        wrong = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    elif strict and schema is not None:
        wrong = next(schemas.openai(schema), "")
    if wrong:
        dialect.refuse(
            f"Invalid schema for function '{name}': {wrong}", param=path, code="invalid_function_parameters"
        )


def check_picture(dialect: Dialect, url: Any, path: str, elsewhere: bool = False) -> None:
    """Refuse a picture that is not one."""
    if elsewhere and url is None:
        return
    match pictures.wrong_with_url(url):
        case "base64":
            dialect.refuse(
                f"Invalid '{path}'. Expected a base64-encoded data URL with an image MIME type (e.g."
                " 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got an invalid base64-encoded value.",
                param=path,
                code="invalid_value",
            )
        case "media_type" | "mismatch":
            dialect.refuse(
                "You uploaded an unsupported image. Please make sure your image has of one the following formats:"
                " ['png', 'jpeg', 'gif', 'webp'].",
                param=path,
                code="invalid_image_format",
            )
        case "broken":
            dialect.raise_fault("bad_image")
