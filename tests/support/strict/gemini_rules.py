"""Rules of a request to Gemini: fields, contents and parts, functions and their responses, thinking, schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from support.strict import pictures, schemas
from support.strict.names import names

if TYPE_CHECKING:
    from support.strict.gemini import Gemini

FIELDS = names(
    "contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent labels model"
)
CONFIG = names("""
    temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType responseSchema
    responseJsonSchema responseFormat presencePenalty frequencyPenalty seed responseLogprobs logprobs thinkingConfig
    mediaResolution speechConfig responseModalities imageConfig enableEnhancedCivicAnswers
""")
PARTS = names("text inlineData functionCall functionResponse fileData executableCode codeExecutionResult")
PART_FIELDS = PARTS | names("thought thoughtSignature videoMetadata mediaResolution partMetadata")
#: Fields whose inside is the client's own.
FREE = names("args response parameters parametersJsonSchema responseSchema responseJsonSchema labels")
NAME = r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$"
OUTPUT_MOST = 65_536


def camel(value: Any) -> Any:
    """A request with names such as `inline_data` in their other form, except inside of schemas and arguments."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {
        re.sub(r"_([a-z])", lambda found: found[1].upper(), name): item
        for name, item in value.items()
        if item is not None
    }
    return {name: item if name in FREE else camel(item) for name, item in named.items()}


def functions_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The declarations of functions."""
    return [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]


def check(dialect: Gemini, body: dict[str, Any], model: str) -> None:
    """Raises the refusal of the first rule that a request breaks."""
    if not re.match(r"gemini-|gemma-|models", model):
        dialect.raise_fault("not_found", model)
    only(dialect, body, FIELDS, "")
    _check_config(dialect, body, model)
    _check_tools(dialect, body, model)
    system = body.get("systemInstruction")
    if system is not None:
        only(dialect, system, ("parts", "role"), "system_instruction")
        if any(not part.get("text") for part in system.get("parts") or [{}]):
            dialect.refuse(
                "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.\n"
            )
    contents = body.get("contents")
    if not contents:
        dialect.refuse("* GenerateContentRequest.contents: contents is not specified\n")
    for index, content in enumerate(contents):
        _check_content(dialect, content, index)
    _check_turns(dialect, contents)


def only(dialect: Gemini, given: dict[str, Any], known: Any, path: str) -> None:
    """Refuse names that are not known."""
    for name in given:
        if name not in known:
            at = f" at '{path}'" if path else ""
            dialect.refuse(
                f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.', param=path
            )


def _check_config(dialect: Gemini, body: dict[str, Any], model: str) -> None:
    config = body.get("generationConfig") or {}
    only(dialect, config, CONFIG, "generation_config")
    limit = config.get("maxOutputTokens")
    if limit is not None and not 1 <= limit <= OUTPUT_MOST:
        dialect.refuse(
            f"Unable to submit request because it has a maxOutputTokens value of {limit} but the supported range is"
            f" from 1 (inclusive) to {OUTPUT_MOST + 1} (exclusive). Update the value and try again."
        )
    if dialect.rules(model).temperature == "never" and config.get("temperature") is not None:
        dialect.refuse("Temperature is not supported for this model.")
    if "thinkingConfig" in config:
        _check_thinking(dialect, config["thinkingConfig"], model)
    if "responseSchema" in config and "responseJsonSchema" in config:
        dialect.refuse("Only one of response_schema and response_json_schema can be set.")
    if ("responseSchema" in config or "responseJsonSchema" in config) and config.get(
        "responseMimeType"
    ) != "application/json":
        dialect.refuse(
            "* GenerateContentRequest.generation_config.response_schema: only allowed when mime type is"
            " 'application/json'\n"
        )
    if config.get("responseMimeType") == "application/json" and functions_of(body) and _old(model):
        dialect.refuse("Function calling with a response mime type: 'application/json' is unsupported")
    if "responseSchema" in config:
        for path, wrong in schemas.gemini(config["responseSchema"], "generation_config.response_schema"):
            dialect.refuse(wrong, param=path)


def _old(model: str) -> bool:
    return bool(re.search(r"gemini-[12]", model))


def _check_thinking(dialect: Gemini, thinking: dict[str, Any], model: str) -> None:
    only(
        dialect,
        thinking,
        ("includeThoughts", "thinkingBudget", "thinkingLevel"),
        "generation_config.thinking_config",
    )
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if not dialect.rules(model).effort:
        dialect.refuse("Thinking is not enabled for this model.")
    if level is not None and budget is not None:
        dialect.refuse("You can only set only one of thinking budget and thinking level.")
    if level is not None:
        if _old(model):
            dialect.refuse("Thinking level is not supported for this model.")
        if str(level).lower() not in ("minimal", "low", "medium", "high"):
            dialect.refuse(
                "Invalid value at 'generation_config.thinking_config.thinking_level'"
                f' (type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), "{level}"'
            )
        if str(level).lower() not in dialect.rules(model).levels:
            dialect.refuse(
                f"Thinking level {str(level).upper()} is not supported for this model. Please retry with other thinking"
                " level."
            )
    if budget is not None:
        _check_budget(dialect, budget, model)


def _check_budget(dialect: Gemini, budget: Any, model: str) -> None:
    if not isinstance(budget, int):
        dialect.refuse(
            f"Invalid value at 'generation_config.thinking_config.thinking_budget' (TYPE_INT32), {budget}"
        )
    if budget == -1:
        return
    if "pro" in model and budget == 0:
        dialect.refuse("Budget 0 is invalid. This model only works in thinking mode.")
    least, most = (128, 32768) if "pro" in model else (512, 24576) if "lite" in model else (0, 24576)
    if budget != 0 and not least <= budget <= most:
        dialect.refuse(
            f"The thinking budget {budget} is invalid. Please choose a value between {least} and {most}."
        )


def _check_tools(dialect: Gemini, body: dict[str, Any], model: str) -> None:
    for index, tool in enumerate(body.get("tools") or ()):
        known = (
            "functionDeclarations",
            "googleSearch",
            "codeExecution",
            "urlContext",
            "googleMaps",
            "fileSearch",
        )
        only(dialect, tool, known, f"tools[{index}]")
        if tool.get("functionDeclarations") == []:
            dialect.refuse(
                f"* GenerateContentRequest.tools[{index}].tool_type: required one_of 'tool_type' must have one"
                " initialized field\n"
            )
    seen: set[str] = set()
    for index, function in enumerate(functions_of(body)):
        path = f"tools[0].function_declarations[{index}]"
        _check_function(dialect, function, path)
        if function["name"] in seen:
            dialect.refuse(f"Duplicate function declaration found: {function['name']}")
        seen.add(function["name"])
    choice = body.get("toolConfig")
    if choice is not None:
        only(dialect, choice, ("functionCallingConfig", "retrievalConfig"), "tool_config")
        inner = choice.get("functionCallingConfig") or {}
        only(dialect, inner, ("mode", "allowedFunctionNames"), "tool_config.function_calling_config")
        if inner.get("mode") not in (None, "AUTO", "ANY", "NONE", "VALIDATED"):
            dialect.refuse(
                "Invalid value at 'tool_config.function_calling_config.mode'"
                " (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode),"
                f' "{inner["mode"]}"'
            )
        if not functions_of(body) and inner.get("mode") == "ANY":
            dialect.refuse("Function calling config is set without function_declarations.")


def _check_function(dialect: Gemini, function: dict[str, Any], path: str) -> None:
    known = names("name description parameters parametersJsonSchema response responseJsonSchema behavior")
    only(dialect, function, known, path)
    if not re.match(NAME, str(function.get("name", ""))):
        dialect.refuse(
            f"* GenerateContentRequest.{path}.name: Invalid function name. Must start with a letter or an underscore."
            " Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a"
            " maximum length of 64.\n"
        )
    if "parameters" in function and "parametersJsonSchema" in function:
        dialect.refuse(
            f"* GenerateContentRequest.{path}: only one of parameters and parameters_json_schema may be set\n"
        )
    if "parameters" in function:
        for place, wrong in schemas.gemini(function["parameters"], f"{path}.parameters"):
            dialect.refuse(wrong, param=place)
        if str(function["parameters"].get("type")).lower() != "object":
            dialect.refuse(f"* GenerateContentRequest.{path}.parameters.type: must be OBJECT\n")


def _check_content(dialect: Gemini, content: Any, index: int) -> None:
    path = f"contents[{index}]"
    if not isinstance(content, dict):
        dialect.refuse(
            f"Invalid value at '{path}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)"
        )
    only(dialect, content, ("role", "parts"), path)
    if content.get("role", "user") not in ("user", "model"):
        dialect.refuse("Please use a valid role: user, model.")
    if not content.get("parts"):
        dialect.refuse(f"* GenerateContentRequest.{path}.parts: contents.parts must not be empty.\n")
    for number, part in enumerate(content["parts"]):
        place = f"{path}.parts[{number}]"
        only(dialect, part, PART_FIELDS, place)
        kinds = [name for name in PARTS if name in part]
        if len(kinds) > 1:
            dialect.refuse(f"Invalid value at '{place}' (oneof), oneof field 'data' is already set.")
        if not kinds or (part.get("text") == "" and not part.get("thoughtSignature")):
            dialect.refuse(
                f"* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field\n"
            )
        _check_part(dialect, part, place, content.get("role", "user"))


def _check_part(dialect: Gemini, part: dict[str, Any], place: str, role: str) -> None:
    if "text" in part and not isinstance(part["text"], str):
        dialect.refuse(f"Invalid value at '{place}.text' (TYPE_STRING), {part['text']}")
    for name, field, owner in (("functionCall", "args", "model"), ("functionResponse", "response", "user")):
        inner = part.get(name)
        if inner is None:
            continue
        snake = re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)
        only(dialect, inner, ("id", "name", field, "parts", "willContinue", "scheduling"), f"{place}.{snake}")
        if not inner.get("name"):
            dialect.refuse(f"* GenerateContentRequest.{place}.{snake}.name: Name cannot be empty.\n")
        if not isinstance(inner.get(field, {}), dict) or (field == "response" and field not in inner):
            dialect.refuse(
                f"Invalid value at '{place}.{snake}.{field}' (type.googleapis.com/google.protobuf.Struct),"
                f' "{inner.get(field)}"'
            )
        if role != owner:
            dialect.refuse(f"Please ensure that {snake} parts are in a turn of role '{owner}'.")
        for index, picture in enumerate(inner.get("parts") or ()):
            _check_picture(dialect, picture.get("inlineData") or {}, f"{place}.{snake}.parts[{index}]")
    if "inlineData" in part:
        _check_picture(dialect, part["inlineData"], place)


def _check_picture(dialect: Gemini, data: dict[str, Any], place: str) -> None:
    only(dialect, data, ("mimeType", "data", "displayName"), f"{place}.inline_data")
    match pictures.wrong_with(data.get("data"), data.get("mimeType")):
        case "media_type" if not str(data.get("mimeType")).startswith(
            ("audio/", "video/", "application/pdf", "text/")
        ):
            dialect.refuse(f"Unsupported MIME type: {data.get('mimeType')}")
        case "base64":
            start = str(data.get("data"))[:20]
            dialect.refuse(
                f"Invalid value at '{place}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"{start}\""
            )
        case "broken" | "mismatch":
            dialect.raise_fault("bad_image")


def _named(parts: list[dict[str, Any]], kind: str) -> Iterator[tuple[str, str | None]]:
    for part in parts:
        if kind in part:
            yield part[kind]["name"], part[kind].get("id")


def _check_turns(dialect: Gemini, contents: list[dict[str, Any]]) -> None:
    expected: list[tuple[str, str | None]] = []
    for index, content in enumerate(contents):
        calls = list(_named(content["parts"], "functionCall"))
        responses = list(_named(content["parts"], "functionResponse"))
        if responses and not expected:
            dialect.refuse(
                "Please ensure that function response turn comes immediately after a function call turn."
            )
        if len(responses) != len(expected):
            dialect.refuse(
                "Please ensure that the number of function response parts is equal to the number of function call"
                " parts of the function call turn."
            )
        _check_names(dialect, expected, responses, index)
        if calls and (index == 0 or contents[index - 1].get("role") == "model"):
            dialect.refuse(
                "Please ensure that function call turn comes immediately after a user turn or after a function"
                " response turn."
            )
        expected = calls
    if expected:
        dialect.refuse("Please ensure that function call turn is followed by a function response turn.")
    if contents[-1].get("role") == "model":
        dialect.refuse(
            "Please ensure that single turn requests end with a user role or the role field is empty."
        )


def _check_names(
    dialect: Gemini, calls: list[tuple[str, str | None]], responses: list[tuple[str, str | None]], index: int
) -> None:
    """Responses name their calls; ids that were given come back."""
    if sorted(name for name, _ in calls) != sorted(name for name, _ in responses):
        dialect.refuse(
            f"* GenerateContentRequest.contents[{index}].parts: the names of the function responses are not those of"
            " the function calls\n"
        )
    ids = [call_id for _, call_id in calls if call_id]
    given = [call_id for _, call_id in responses if call_id]
    if sorted(ids) != sorted(given):
        dialect.refuse(
            f"* GenerateContentRequest.contents[{index}].parts: the ids of the function responses are not those of the"
            " function calls\n"
        )
